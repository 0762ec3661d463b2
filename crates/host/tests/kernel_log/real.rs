//! The log of this machine, and deaths that we cause: found through both doors.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use sexton_host::cgroup::locate_process;
use sexton_host::files::Files;
use sexton_host::kernel_log::{KernelLog, Kmsg, events};
use sexton_model::cgroup::CgroupVersion;
use sexton_model::kernel::fact::{KernelFact, OomScope};
use sexton_model::kernel::{Door, KernelEvent, LogMark};
use sexton_model::reading::Reading;
use sexton_process::klog::read_kernel_log;

use crate::skipped;

/// Both doors, each by itself; those that cannot be read here are named and left out.
fn doors() -> Vec<(Door, KernelLog)> {
    let doors = [
        (Door::Kmsg, KernelLog::system()),
        (Door::Syslog, KernelLog::at("/nowhere/kmsg").or_syslog(read_kernel_log)),
    ];
    let readable = doors.into_iter().filter(|(_, log)| match log.mark() {
        Reading::Unreadable(obstacle) => {
            skipped(obstacle);
            false
        }
        _ => true,
    });
    readable.collect()
}

/// What was found, through each door.
type Found = Vec<(Door, Vec<KernelEvent>)>;

/// Marks the log, does something, and returns what it found behind the mark, through each door. Kernel lines may come
/// a moment after the death.
fn found_after<T>(
    act: impl FnOnce() -> Option<T>,
    wanted: impl Fn(&T, &KernelEvent) -> bool,
) -> Option<(T, Found)> {
    let doors = doors();
    let marks: Vec<LogMark> = doors.iter().map(|(_, log)| log.mark().into_value().unwrap()).collect();
    let done = act()?;
    let found = doors.iter().zip(marks).map(|((door, log), mark)| {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            let window = log.since(&mark).into_value().unwrap();
            assert_eq!(window.door, *door);
            let found: Vec<_> = events(&window).into_iter().filter(|event| wanted(&done, event)).collect();
            if !found.is_empty() || Instant::now() > end {
                return (*door, found);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let found = found.collect();
    Some((done, found))
}

/// A v1 memory cgroup of our own, limited to 32 MiB; removed when dropped.
struct SmallCgroup {
    folder: PathBuf,
    /// As the kernel log names it.
    path: String,
}

impl SmallCgroup {
    fn new() -> Option<Self> {
        let own = match locate_process(&Files::system(), std::process::id() as i32) {
            Reading::Value(own) if own.version() == CgroupVersion::V1 => own.own_folder().to_owned(),
            other => {
                skipped(format!("no v1 memory controller: {other:?}"));
                return None;
            }
        };
        let name = format!("sexton-log-{}", std::process::id());
        let folder = own.join(&name);
        if let Err(error) = fs::create_dir(&folder) {
            skipped(format!("{}: {error}", folder.display()));
            return None;
        }
        let cgroup = Self { folder, path: format!("/{name}") };
        for file in ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] {
            // The second one is missing where swap is not accounted.
            let _ = fs::write(cgroup.folder.join(file), (32 << 20).to_string());
        }
        Some(cgroup)
    }
}

impl Drop for SmallCgroup {
    fn drop(&mut self) {
        let end = Instant::now() + Duration::from_secs(5);
        while fs::remove_dir(&self.folder).is_err() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Runs `script` in bash, quietly and without a core.
fn bash(script: &str) -> Option<(u32, ExitStatus)> {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("ulimit -c 0; {script}")]).stdout(Stdio::null()).stderr(Stdio::null());
    let spawned = command.spawn().map_err(|error| skipped(format!("bash: {error}")));
    let mut child = spawned.ok()?;
    Some((child.id(), child.wait().unwrap()))
}

#[test]
fn a_real_kill_at_a_cgroup_limit_is_found_through_both_doors() {
    let Some(cgroup) = SmallCgroup::new() else { return };
    let act = || {
        let procs = cgroup.folder.join("cgroup.procs");
        // tail keeps an endless line in memory.
        let (pid, status) = bash(&format!("echo $$ > '{}'; exec tail /dev/zero", procs.display()))?;
        assert_eq!(status.signal(), Some(9), "{status}");
        Some(pid as i32)
    };
    let killed = |pid: &i32, event: &KernelEvent| {
        matches!(event.fact, KernelFact::OomKilled(_)) && event.fact.pid() == Some(*pid)
    };
    let Some((pid, found)) = found_after(act, killed) else { return };
    for (door, events) in &found {
        let [KernelEvent { fact: KernelFact::OomKilled(killed), seq, .. }] = &events[..] else {
            panic!("{door:?}: {events:?}");
        };
        assert_eq!((killed.victim.comm.as_str(), killed.scope), ("tail", Some(OomScope::Memcg)), "{door:?}");
        assert_eq!(seq.is_some(), *door == Door::Kmsg);
        assert!(killed.anon_bytes.is_some_and(|bytes| (16 << 20..64 << 20).contains(&bytes)), "{killed:?}");
    }
    // The report before it may be left out by the kernel when there are many.
    for (door, log) in doors() {
        let all = events(&log.all().into_value().unwrap());
        let context = all.iter().rev().find_map(|event| match &event.fact {
            KernelFact::OomContext(context) if context.pid == Some(pid) => Some(context.clone()),
            _ => None,
        });
        let Some(context) = context else {
            skipped(format!("{door:?}: the kernel printed no report"));
            continue;
        };
        assert_eq!((context.comm.as_deref(), context.global_oom), (Some("tail"), false));
        assert!(
            context.task_memcg.as_deref().is_some_and(|path| path.ends_with(&cgroup.path)),
            "{context:?}"
        );
        assert_eq!(context.oom_memcg, context.task_memcg);
    }
}

#[test]
fn a_real_segmentation_fault_is_found_through_both_doors() {
    let exceptions = fs::read_to_string("/proc/sys/debug/exception-trace").unwrap_or_default();
    if exceptions.trim() != "1" {
        skipped("the kernel does not log faults: debug.exception-trace");
        return;
    }
    // Unlimited recursion: the stack, a small one, runs out.
    let act = || bash("ulimit -s 256; f() { f; }; f").filter(|(_, status)| status.signal() == Some(11));
    let wanted = |(pid, _): &(u32, ExitStatus), event: &KernelEvent| match &event.fact {
        // Such lines are limited to 10 in 5 seconds; then the kernel says how many it left out.
        KernelFact::Suppressed(suppressed) => suppressed.function == "show_signal_msg",
        fact => matches!(fact, KernelFact::Segfault(_)) && fact.pid() == Some(*pid as i32),
    };
    let Some(((pid, _), found)) = found_after(act, wanted) else {
        skipped("bash ended in another way");
        return;
    };
    for (door, events) in found {
        let fault = events.iter().find_map(|event| match &event.fact {
            KernelFact::Segfault(fault) => Some(fault),
            _ => None,
        });
        match fault {
            Some(fault) => {
                assert_eq!((fault.task.pid, fault.task.comm.as_str()), (pid as i32, "bash"));
                assert!(fault.address != 0 && fault.ip != 0 && fault.sp.is_some(), "{fault:?}");
                assert_eq!(fault.error, Some(6), "a write in user space to a page that is not there");
            }
            None => skipped(format!("{door:?}: left out by the kernel: {events:?}")),
        }
    }
}

/// A user's line that looks like a kernel's.
#[test]
fn a_spoofed_line_in_the_real_log_is_refused() {
    // With a newline at the end: without it the kernel waits for more, and shows the record when the next one comes.
    let spoof = "<0>Out of memory: Killed process 1 (spoofed) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n";
    let doors = doors();
    let marks: Vec<LogMark> = doors.iter().map(|(_, log)| log.mark().into_value().unwrap()).collect();
    let written = fs::OpenOptions::new()
        .write(true)
        .open("/dev/kmsg")
        .and_then(|mut kmsg| kmsg.write_all(spoof.as_bytes()));
    if let Err(error) = written {
        skipped(format!("/dev/kmsg: {error}"));
        return;
    }
    for ((door, log), mark) in doors.iter().zip(marks) {
        let end = Instant::now() + Duration::from_secs(5);
        let window = loop {
            let window = log.since(&mark).into_value().unwrap();
            if window.refused > 0 || Instant::now() > end {
                break window;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(window.refused > 0, "{door:?}: it arrived, as a user's");
        assert!(window.records.iter().all(|record| !record.text.contains("(spoofed)")), "{door:?}");
    }
}

#[test]
fn the_log_of_this_machine_is_whole_or_unreadable_with_a_reason() {
    match KernelLog::system().all() {
        Reading::Value(window) => {
            assert!(!window.records.is_empty());
            assert!(window.records.is_sorted_by_key(|record| record.seq));
            assert_eq!(window.door, Door::Kmsg);
        }
        Reading::Unreadable(obstacle) => assert!(obstacle.detail.contains("/dev/kmsg"), "{obstacle}"),
        Reading::Absent => panic!("never absent"),
    }
}

#[test]
fn a_device_that_stays_open_sees_what_is_new() {
    let path = PathBuf::from("/dev/kmsg");
    let Ok(mut kmsg) = Kmsg::open(&path) else {
        skipped("/dev/kmsg cannot be read");
        return;
    };
    let first = kmsg.read().unwrap();
    let second = kmsg.read().unwrap();
    assert!(second.from_seq.is_none_or(|seq| Some(seq) > first.to_seq), "each record once");
}
