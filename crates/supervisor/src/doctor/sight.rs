//! What is to be seen here, read once, each thing in bounded time.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{Access, StatVfs, access, statvfs};
use sexton_host::cgroup::{self, MemoryHierarchy};
use sexton_host::files::Files;
use sexton_host::task::Tasks;
use sexton_host::{memory, pressure, tracefs};
use sexton_model::Timestamp;
use sexton_model::cgroup::MemoryCgroup;
use sexton_model::kernel::LogMark;
use sexton_model::memory::{MemoryPolicy, Pressure, Vmstat};
use sexton_model::reading::{ObstacleKind, Reading};
use sexton_process::Pidfd;

use crate::bounded;
use crate::daemon::tracking::{INITIAL_PID_NAMESPACE, kernel_log};
use crate::place::Place;
use crate::{journal, runs};

/// How long any one reading may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whose cgroup is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The living prover's.
    Prover(i32),
    /// That of a supervisor whose prover is down: the next one will be in the same.
    Supervisor(i32),
    /// Our own: a supervisor that is started from here will be in it.
    Us(i32),
}

impl Subject {
    /// Its PID.
    pub fn pid(self) -> i32 {
        match self {
            Self::Prover(pid) | Self::Supervisor(pid) | Self::Us(pid) => pid,
        }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Prover(pid) => write!(f, "the cgroup of the prover (pid {pid})"),
            Self::Supervisor(pid) => write!(f, "the cgroup of the supervisor (pid {pid})"),
            Self::Us(_) => f.write_str("the cgroup of this shell; no supervisor runs"),
        }
    }
}

/// Rights that decide what can be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// CAP_SYS_PTRACE.
    pub sys_ptrace: bool,
    /// CAP_SYS_ADMIN.
    pub sys_admin: bool,
}

/// `Max core file size`: `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreLimit {
    /// What a program may raise its own limit to, bytes.
    pub hard_bytes: Option<u64>,
}

/// The file system of the state folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The state folder, or what exists of the path to it.
    pub folder: PathBuf,
    /// Bytes that we may still write.
    pub available_bytes: u64,
    /// Files that we may still make; `None` where the file system does not count them.
    pub available_files: Option<u64>,
    /// Whether we may write there at all.
    pub is_writable: bool,
}

/// The wall clock, beside the latest time in our own records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    /// Now.
    pub now: Timestamp,
    /// Time of the last journal line.
    pub last_event: Option<Timestamp>,
    /// The kernel's clock source.
    pub source: Reading<String>,
}

/// All that the checks look at.
#[derive(Debug, Clone)]
pub struct Sight {
    /// Whose cgroup.
    pub subject: Subject,
    /// Processes that are no strangers in it.
    pub family: Vec<i32>,
    /// The cgroup.
    pub cgroup: Reading<MemoryCgroup>,
    /// Whether we may make cgroups below it.
    pub cgroup_is_writable: Reading<bool>,
    /// The end of the kernel log, where it can be read.
    pub kernel_log: Reading<LogMark>,
    /// Counts since boot.
    pub vmstat: Reading<Vmstat>,
    /// Settings for want of memory.
    pub policy: MemoryPolicy,
    /// Pressure on memory.
    pub pressure: Reading<Pressure>,
    /// Where tracefs is mounted.
    pub tracefs: Reading<PathBuf>,
    /// Whether the kernel has one.
    pub tracefs_exists: bool,
    /// What we may do.
    pub capabilities: Capabilities,
    /// Whether our PID namespace is the kernel's first.
    pub is_initial_pid_namespace: Reading<bool>,
    /// Whether processes of others can be seen.
    pub sees_pid_1: Reading<()>,
    /// `kernel.yama.ptrace_scope`.
    pub ptrace_scope: Reading<u32>,
    /// `kernel.core_pattern`.
    pub core_pattern: Reading<String>,
    /// Limit of core files.
    pub core_limit: Reading<CoreLimit>,
    /// Room for records.
    pub disk: Reading<Disk>,
    /// The clock.
    pub clock: Clock,
    /// `pidfd_open(2)`.
    pub pidfd: Reading<()>,
    /// `PIDFD_GET_INFO`, tried on a child: whether it tells the status of a process that somebody else reaped.
    pub pidfd_exit_info: Reading<()>,
    /// `PR_SET_CHILD_SUBREAPER`.
    pub subreaper: Reading<()>,
    /// The program that reads the GPU.
    pub gpu_sampler: Reading<PathBuf>,
}

impl Sight {
    /// Looks around on this host.
    pub fn read(place: &Place, subject: Subject) -> Self {
        let mut sight = Self::of_files(&Files::system(), subject);
        sight.family = family(subject);
        let state_dir = place.state_dir.clone();
        let what = state_dir.display().to_string();
        sight.kernel_log = bounded::reading("kernel log", PATIENCE, || kernel_log().mark());
        sight.disk = bounded::reading(&what, PATIENCE, move || disk(&state_dir));
        let (path, runs_dir) = (place.journal(), place.runs_dir());
        sight.clock.last_event = bounded::within(PATIENCE, move || last_recorded(&path, &runs_dir)).flatten();
        sight.pidfd = Pidfd::open(std::process::id() as i32).map(drop).map_or_else(failed, Reading::Value);
        sight.pidfd_exit_info = bounded::reading("PIDFD_GET_INFO", PATIENCE, pidfd_exit_info);
        // Harmless: this process has no children that could leave it orphans.
        sight.subreaper = sexton_process::become_subreaper().map_or_else(failed, Reading::Value);
        sight.gpu_sampler = gpu_sampler();
        sight
    }

    /// What files tell: of this host, or of a tree that looks like one. All else is absent.
    pub fn of_files(files: &Files, subject: Subject) -> Self {
        let hierarchy = cgroup::locate_process(files, subject.pid());
        let pressure_file = Path::new(pressure::MEMORY);
        Self {
            subject,
            family: vec![subject.pid()],
            cgroup: hierarchy.clone().map(|hierarchy| hierarchy.read(files)),
            cgroup_is_writable: hierarchy.map(|hierarchy| is_writable(files, &hierarchy)),
            kernel_log: Reading::Absent,
            vmstat: memory::vmstat(files),
            policy: memory::policy(files),
            pressure: pressure::read(files, pressure_file),
            tracefs: tracefs::mounted(files),
            tracefs_exists: exists(files, "/sys/kernel/tracing"),
            capabilities: capabilities(files),
            is_initial_pid_namespace: pid_namespace(files),
            sees_pid_1: files.bytes(Path::new("/proc/1/stat")).map(drop),
            ptrace_scope: number(files, "/proc/sys/kernel/yama/ptrace_scope"),
            core_pattern: text(files, "/proc/sys/kernel/core_pattern"),
            core_limit: files.parsed(Path::new("/proc/self/limits"), core_limit),
            disk: Reading::Absent,
            clock: Clock {
                now: Timestamp::now(),
                last_event: None,
                source: text(files, "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            },
            pidfd: Reading::Absent,
            pidfd_exit_info: Reading::Absent,
            subreaper: Reading::Absent,
            gpu_sampler: Reading::Absent,
        }
    }
}

fn failed<T>(error: std::io::Error) -> Reading<T> {
    Reading::unreadable(ObstacleKind::Failed, error.to_string())
}

fn text(files: &Files, path: &str) -> Reading<String> {
    files.bytes(Path::new(path)).map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

fn number(files: &Files, path: &str) -> Reading<u32> {
    files.parsed(Path::new(path), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        text.trim_end().parse().map_err(|_| format!("{:?} is no number", text.trim_end()))
    })
}

fn on_disk(files: &Files, path: &Path) -> Option<PathBuf> {
    match files {
        Files::Root(root) => Some(root.join(path.strip_prefix("/").unwrap_or(path))),
        Files::Snapshot(_) => None,
    }
}

fn exists(files: &Files, path: &str) -> bool {
    on_disk(files, Path::new(path)).is_some_and(|path| path.is_dir())
}

fn is_writable(files: &Files, hierarchy: &MemoryHierarchy) -> bool {
    on_disk(files, hierarchy.own_folder())
        .is_some_and(|folder| access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok())
}

/// `CapEff` of `/proc/self/status`, by the numbers of capability.h.
fn capabilities(files: &Files) -> Capabilities {
    let status = text(files, "/proc/self/status").into_value().unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    Capabilities { sys_ptrace: mask & (1 << 19) != 0, sys_admin: mask & (1 << 21) != 0 }
}

fn pid_namespace(files: &Files) -> Reading<bool> {
    let Some(path) = on_disk(files, Path::new("/proc/self/ns/pid")) else { return Reading::Absent };
    match std::fs::metadata(&path) {
        Ok(metadata) => Reading::Value(metadata.ino() == INITIAL_PID_NAMESPACE),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Reading::Absent,
        Err(error) => failed(error),
    }
}

/// `Max core file size   SOFT   HARD   bytes`.
fn core_limit(bytes: &[u8]) -> Result<CoreLimit, String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().find_map(|line| line.strip_prefix("Max core file size"));
    let hard = line.and_then(|line| line.split_whitespace().nth(1)).ok_or("no line of core files")?;
    match hard {
        "unlimited" => Ok(CoreLimit { hard_bytes: None }),
        number => match number.parse() {
            Ok(bytes) => Ok(CoreLimit { hard_bytes: Some(bytes) }),
            Err(_) => Err(format!("{number:?} is no limit")),
        },
    }
}

fn disk(state_dir: &Path) -> Reading<Disk> {
    let Some(folder) = state_dir.ancestors().find(|folder| folder.exists()) else { return Reading::Absent };
    match statvfs(folder) {
        Ok(StatVfs { f_bavail, f_frsize, f_files, f_favail, .. }) => Reading::Value(Disk {
            folder: folder.to_owned(),
            available_bytes: f_bavail.saturating_mul(f_frsize),
            available_files: (f_files > 0).then_some(f_favail),
            is_writable: access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
        }),
        Err(error) => Reading::unreadable(ObstacleKind::Failed, format!("{}: {error}", folder.display())),
    }
}

/// The latest time that our own records hold.
fn last_recorded(path: &Path, runs_dir: &Path) -> Option<Timestamp> {
    let event = journal::events(path).ok().and_then(|events| events.map(|event| event.at).max());
    let runs = runs::newest(runs_dir, 1).ok();
    let run = runs.and_then(|runs| runs.entries.first().map(|entry| entry.run.started_at));
    event.max(run)
}

/// Tries it: a child of ours that has been reaped is as gone as a stranger's.
fn pidfd_exit_info() -> Reading<()> {
    let try_it = || {
        let mut command = Command::new("/proc/self/exe");
        let quiet = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn()?;
        // An unreaped child keeps its PID.
        let handle = Pidfd::open(child.id() as i32);
        child.wait()?;
        handle.map(|handle| handle.exit_status_of_stranger())
    };
    match try_it() {
        Ok(Some(_)) => Reading::Value(()),
        Ok(None) => Reading::Absent,
        Err(error) => failed(error),
    }
}

pub(crate) fn gpu_sampler() -> Reading<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    let found = folders.map(|folder| folder.join("gpu-sampler")).find(|program| program.is_file());
    found.map_or(Reading::Absent, Reading::Value)
}

/// The subject, who started it, and whom it started, where these are ours.
pub(crate) fn family(subject: Subject) -> Vec<i32> {
    let (tasks, own) = (Tasks::system(), std::process::id() as i32);
    let mut family = vec![subject.pid(), own];
    let root = match subject {
        // Prover → keeper → supervisor.
        Subject::Prover(pid) => {
            let parent = |pid| tasks.process(pid).into_value()?.parent.into_value();
            let keeper = parent(pid).map(|keeper| keeper.pid);
            let supervisor = keeper.and_then(parent).map(|supervisor| supervisor.pid);
            family.extend(keeper.into_iter().chain(supervisor).filter(|pid| *pid != 1));
            supervisor.or(keeper).filter(|pid| *pid != 1).unwrap_or(pid)
        }
        Subject::Supervisor(pid) | Subject::Us(pid) => pid,
    };
    family.extend(tasks.descendants(root).into_value().unwrap_or_default());
    family
}
