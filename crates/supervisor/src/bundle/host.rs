//! The host around the runs: cgroups, memory, mounts, kernel log, processes, GPU.

use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Serialize;
use sexton_host::files::Files;
use sexton_host::mounts::MOUNTINFO;
use sexton_host::task::Tasks;
use sexton_host::{cgroup, memory, pressure};
use sexton_model::kernel::{KernelWindow, LogMark};
use sexton_model::reading::{ObstacleKind, Reading};
use sexton_model::task::ProcessReading;
use sexton_model::units::Bytes;

use super::part::{Answer, Part};
use crate::bounded;
use crate::daemon::tracking;
use crate::doctor::sight::{self, Subject};

/// How many processes are looked at: those of a prover are three and its helpers.
const PROCESSES_MAX: usize = 256;
/// How much of the kernel log, from its end.
const KERNEL_LOG_BYTES: usize = 4 << 20;
/// How long the GPU's helper may take, and what it may say.
const GPU_PATIENCE: Duration = Duration::from_secs(3);
const GPU_BYTES: u64 = 1 << 20;

/// Files that every bundle has, besides those of the cgroup.
const FILES: [&str; 6] = [
    pressure::MEMORY,
    pressure::CPU,
    pressure::IO,
    MOUNTINFO,
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/random/boot_id",
];

/// Cgroup, memory, pressure and mounts: each file by its path below `host/` for people, and all of them as one snapshot,
/// which the readers read again.
pub fn files(subject: Subject) -> Part {
    let (files, mut part) = (Files::system(), Part::default());
    let mut paths: Vec<PathBuf> = memory::FILES.iter().chain(&FILES).map(PathBuf::from).collect();
    paths.push(PathBuf::from(format!("/proc/{}/cgroup", subject.pid())));
    match cgroup::locate_process(&files, subject.pid()) {
        Reading::Value(hierarchy) => {
            part.add("memory cgroup", Answer::Found, hierarchy.own_folder().display().to_string());
            paths.extend(hierarchy.files());
        }
        Reading::Absent => {
            part.add("memory cgroup", Answer::Absent, "no memory controller, or no such process")
        }
        Reading::Unreadable(obstacle) => part.add("memory cgroup", Answer::Unreadable, obstacle.detail),
    }
    paths.sort();
    paths.dedup();
    let snapshot = files.record(&paths);
    let recorded = Files::Snapshot(snapshot.clone());
    for path in &paths {
        let name = format!("host{}", path.display());
        part.read(path.display().to_string(), name, recorded.bytes(path));
    }
    part.file("host/files.bin", snapshot.encode());
    part
}

/// A process of the tree, or why it is not there.
#[derive(Debug, Serialize)]
struct Seen {
    pid: i32,
    process: Reading<ProcessReading>,
}

/// Supervisor, keeper, prover, and whatever is below them.
pub fn processes(subject: Subject) -> Part {
    if let Subject::Us(_) = subject {
        return Part::finding("processes", Answer::Absent, "no supervisor, keeper or prover lives");
    }
    let mut pids = sight::family(subject);
    pids.retain(|pid| *pid != std::process::id() as i32);
    pids.sort_unstable();
    pids.dedup();
    let (there, tasks) = (pids.len(), Tasks::system());
    pids.truncate(PROCESSES_MAX);
    let seen: Vec<Seen> = pids.into_iter().map(|pid| Seen { pid, process: tasks.process(pid) }).collect();
    let mut part = Part::default();
    let answer = if there > PROCESSES_MAX { Answer::Truncated } else { Answer::Found };
    part.add("processes", answer, format!("{} of {there}", seen.len()));
    part.json("processes.json", &seen);
    part.file("processes.txt", table(&seen).into_bytes());
    part
}

fn table(seen: &[Seen]) -> String {
    let mut table =
        format!("{:>8} {:>8} S {:>8} {:<16} {:>10} executable\n", "pid", "parent", "threads", "name", "rss");
    for Seen { pid, process } in seen {
        let row = match process {
            Reading::Value(process) => {
                let parent = process.parent.value().map_or(0, |parent| parent.pid);
                let status = process.threads().find_map(|thread| thread.status.value()?.memory);
                let rss = status.map_or("-".to_owned(), |memory| Bytes(memory.total_bytes).to_string());
                format!(
                    "{parent:>8} {} {:>8} {:<16} {rss:>10} {}",
                    char::from(process.leader.state),
                    process.others.len() + 1,
                    process.leader.comm,
                    process.executable
                )
            }
            other => format!("{:>8} - {other:?}", "-"),
        };
        // Writing to a string does not fail.
        let _ = writeln!(table, "{pid:>8} {}", row.escape_debug());
    }
    table
}

/// What the kernel said since `mark`.
pub fn kernel_log(mark: LogMark) -> Part {
    const WHAT: &str = "kernel log";
    let window = match tracking::kernel_log().since(&mark) {
        Reading::Value(window) => window,
        Reading::Absent => return Part::finding(WHAT, Answer::Absent, "not there"),
        Reading::Unreadable(obstacle) => return Part::finding(WHAT, Answer::Unreadable, obstacle.detail),
    };
    let since = if mark == LogMark::default() { "since boot" } else { "since the oldest run began" };
    let (text, cut) = lines(&window);
    let answer = if cut || !window.is_whole() { Answer::Truncated } else { Answer::Found };
    let missing = match (window.gaps, cut) {
        (0, false) => String::new(),
        (gaps, _) => format!("; gaps: {gaps}, records lost: {}, cut at the beginning: {cut}", window.lost),
    };
    let mut part = Part::finding(WHAT, answer, format!("{} records {since}{missing}", window.records.len()));
    part.file("kernel.log", text.into_bytes());
    part
}

fn lines(window: &KernelWindow) -> (String, bool) {
    let line = |record: &sexton_model::kernel::KernelRecord| {
        let (seconds, micros) = (record.at_us / 1_000_000, record.at_us % 1_000_000);
        // A name with a newline must not make a line of its own.
        format!("<{}>[{seconds:>5}.{micros:06}] {}\n", record.priority, record.text.replace('\n', "\\n"))
    };
    let mut room = KERNEL_LOG_BYTES;
    let newest =
        window.records.iter().rev().map(line).take_while(|line| match room.checked_sub(line.len()) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        });
    let mut lines: Vec<String> = newest.collect();
    lines.reverse();
    let cut = lines.len() < window.records.len();
    (lines.concat(), cut)
}

/// One sample of the GPUs, by the program that may hang in the driver in our place.
pub fn gpu() -> Part {
    match sight::gpu_sampler() {
        Reading::Value(program) => sample(&program),
        Reading::Absent => Part::finding("gpu", Answer::Absent, "gpu-sampler is not installed"),
        Reading::Unreadable(obstacle) => Part::finding("gpu", Answer::Unreadable, obstacle.detail),
    }
}

fn sample(program: &Path) -> Part {
    let mut command = Command::new(program);
    let command =
        command.args(["--count", "1"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            return Part::finding("gpu", Answer::Unreadable, format!("{}: {error}", program.display()));
        }
    };
    let output = child.stdout.take();
    let read = bounded::reading(&program.display().to_string(), GPU_PATIENCE, move || {
        let mut bytes = Vec::new();
        match output.map(|output| output.take(GPU_BYTES).read_to_end(&mut bytes)) {
            Some(Ok(_)) if !bytes.is_empty() => Reading::Value(bytes),
            Some(Ok(_)) => Reading::unreadable(ObstacleKind::Failed, "gpu-sampler said nothing"),
            Some(Err(error)) => Reading::unreadable(ObstacleKind::Failed, error.to_string()),
            None => Reading::Absent,
        }
    });
    // One that hangs in the driver is not waited for: it is reaped by whoever outlives us.
    let _ = child.kill();
    let _ = child.try_wait();
    let mut part = Part::default();
    part.read("gpu", "gpu.ndjson", read);
    part
}

/// What runs here, in which version.
pub fn versions() -> Part {
    let mut part = Part::default();
    let kernel =
        std::fs::read_to_string("/proc/version").unwrap_or_else(|error| format!("unreadable: {error}\n"));
    let text = format!("supervisor {}\nkernel {kernel}arch {}\n", crate::VERSION, std::env::consts::ARCH);
    part.file("versions.txt", text.into_bytes());
    part.add("versions", Answer::Found, format!("supervisor {}", crate::VERSION));
    let driver = "/proc/driver/nvidia/version";
    part.read("nvidia driver", "nvidia-driver.txt", Files::system().bytes(Path::new(driver)));
    part
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use sexton_model::kernel::{Door, KernelRecord};

    use super::*;

    #[test]
    fn of_a_long_log_the_end_is_kept_and_a_newline_in_a_name_makes_no_line() {
        let mut window = KernelWindow::empty(Door::Kmsg);
        let record =
            |at_us, text: String| KernelRecord { seq: None, at_us, priority: 6, text, tags: Vec::new() };
        window.records = (0..10).map(|n| record(n, "x".repeat(1 << 20))).collect();
        window.records.push(record(12_000_345, "a\nb".to_owned()));
        let (text, cut) = lines(&window);
        assert!(cut && text.len() <= KERNEL_LOG_BYTES, "{}", text.len());
        assert!(text.ends_with("<6>[   12.000345] a\\nb\n"));
    }

    #[test]
    fn a_sampler_that_hangs_is_a_finding_and_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("gpu-sampler");
        std::fs::write(&program, "#!/bin/sh\nexec sleep 1000\n").unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let part = sample(&program);
        assert_eq!(part.findings[0].answer, Answer::Unreadable);
        assert!(part.findings[0].detail.contains("no answer within 3 s"), "{}", part.findings[0].detail);
        std::fs::write(&program, "#!/bin/sh\necho '{\"gpus\":[]}'\n").unwrap();
        assert_eq!(sample(&program).entries[0].bytes, b"{\"gpus\":[]}\n");
    }

    #[test]
    fn files_of_this_process_are_found_or_said_not_to_be() {
        let part = files(Subject::Us(std::process::id() as i32));
        assert!(part.entries.iter().any(|entry| entry.name == "host/proc/meminfo"));
        let answers = part.findings.iter().filter(|finding| finding.what == "/proc/meminfo");
        assert_eq!(answers.map(|finding| finding.answer).collect::<Vec<_>>(), [Answer::Found]);
        assert!(part.findings.iter().all(|finding| !finding.detail.is_empty()));
    }
}
