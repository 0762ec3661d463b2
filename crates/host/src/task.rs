//! Processes and their threads, from a `/proc` that may be a fake one.
//!
//! Processes end while they are read: that is an ordinary outcome here. A thread that vanishes is left out, a process
//! that vanishes is [`Reading::Absent`].

mod folder;
mod following;
pub(crate) mod parse;
mod shared;
mod thread;
mod tree;

use std::fs;
use std::path::PathBuf;

use sexton_model::reading::{Missing, ObstacleKind, Reading};
use sexton_model::task::{ProcessReading, ProcessRef, ThreadReading};
use sexton_model::wait::WaitStatus;

use crate::files::{parsed, unreadable};
use folder::{TaskFolder, numbered_entries};
use thread::Closeness;

/// The reader: a proc(5) file system.
#[derive(Debug, Clone)]
pub struct Tasks {
    root: PathBuf,
}

impl Tasks {
    /// Reads `/proc`.
    pub fn system() -> Self {
        Self::under("/proc")
    }

    /// Reads a tree that looks like `/proc`.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Reads process `pid`; for the id of any of its threads, the process of that thread.
    ///
    /// Absent: there is no such process, or it ended during the reading. Unreadable: it may exist (a `/proc` that hides
    /// the processes of others, or is no `/proc`).
    pub fn process(&self, pid: i32) -> Reading<ProcessReading> {
        match self.try_process(pid) {
            Err(Missing::Unreadable(obstacle)) if obstacle.kind == ObstacleKind::Vanished => Reading::Absent,
            result => result.into(),
        }
    }

    /// A file of the whole system.
    fn text(&self, file: &str) -> Reading<String> {
        let path = self.root.join(file);
        match fs::read_to_string(&path) {
            Ok(text) => Reading::Value(text),
            Err(error) => unreadable(&path, &error),
        }
    }

    fn path_of(&self, pid: i32) -> PathBuf {
        self.root.join(pid.to_string())
    }

    /// Opens the folder of `pid`. A `/proc` mounted with `hidepid=2` answers ENOENT for processes of other users, so
    /// "no such process" is believed only where PID 1 can be seen.
    fn process_folder(&self, pid: i32) -> Reading<TaskFolder> {
        let path = self.path_of(pid);
        match TaskFolder::open(&path) {
            Reading::Absent if !self.path_of(1).exists() => Reading::unreadable(
                ObstacleKind::Denied,
                format!(
                    "{}: not visible, and neither is PID 1: run as root, or mount proc without hidepid",
                    path.display()
                ),
            ),
            folder => folder,
        }
    }

    fn try_process(&self, asked: i32) -> Result<ProcessReading, Missing> {
        let mut folder = self.process_folder(asked).required()?;
        let pid = folder.status().value().map_or(asked, |status| status.tgid);
        if pid != asked {
            folder = self.process_folder(pid).required()?;
        }
        let stat = folder.stat().required()?;
        let (leader, others) = self.threads(pid)?;
        let ticks_per_second = procfs::ticks_per_second() as f64;
        let reading = ProcessReading {
            pid,
            start_ticks: stat.starttime,
            age_seconds: self.age(stat.starttime as f64 / ticks_per_second),
            user_seconds: stat.utime as f64 / ticks_per_second,
            system_seconds: stat.stime as f64 / ticks_per_second,
            parent: if stat.ppid > 0 { Reading::Value(self.process_ref(stat.ppid)) } else { Reading::Absent },
            tracers: self.tracers(&leader, &others),
            executable: self.executable(pid, &others),
            cgroups: folder.parsed("cgroup", parse::cgroups),
            exit_status: if leader.state.is_dead() { exit_status(&stat, &folder) } else { Reading::Absent },
            leader,
            others,
        };
        // The folder is bound to the process it was opened for. If it still answers, no other process has taken the
        // number in the meantime, and the threads that were read by path are those of this process.
        folder.stat().required()?;
        Ok(reading)
    }

    /// The leader, then the other threads by tid.
    fn threads(&self, pid: i32) -> Result<(ThreadReading, Vec<ThreadReading>), Missing> {
        let folder = self.path_of(pid).join("task");
        let leader = thread::read(&folder, pid, Closeness::WhereStuck).required()?;
        let closeness = if leader.state.is_dead() || leader.exiting {
            Closeness::Everywhere
        } else {
            Closeness::WhereStuck
        };
        let mut tids = numbered_entries(&folder).required()?;
        tids.retain(|tid| *tid != pid);
        tids.sort_unstable();
        let others = tids.into_iter().filter_map(|tid| thread::read(&folder, tid, closeness).into_value());
        Ok((leader, others.collect()))
    }

    fn process_ref(&self, pid: i32) -> ProcessRef {
        match TaskFolder::open(&self.path_of(pid)).and_then(|folder| folder.stat()) {
            Reading::Value(stat) => {
                ProcessRef { pid, comm: Reading::Value(stat.comm), state: Reading::Value(stat.state.into()) }
            }
            Reading::Absent => ProcessRef { pid, comm: Reading::Absent, state: Reading::Absent },
            Reading::Unreadable(obstacle) => ProcessRef {
                pid,
                comm: Reading::Unreadable(obstacle.clone()),
                state: Reading::Unreadable(obstacle),
            },
        }
    }

    fn tracers(&self, leader: &ThreadReading, others: &[ThreadReading]) -> Vec<ProcessRef> {
        let mut pids: Vec<i32> = std::iter::once(leader)
            .chain(others)
            .filter_map(|thread| thread.status.value())
            .map(|status| status.tracer_pid)
            .filter(|tracer| *tracer > 0)
            .collect();
        pids.sort_unstable();
        pids.dedup();
        pids.into_iter().map(|pid| self.process_ref(pid)).collect()
    }

    /// The link of a dead leader is gone, that of a living thread is not. The link is read without the memory lock
    /// (`get_task_exe_file()`).
    fn executable(&self, pid: i32, others: &[ThreadReading]) -> Reading<String> {
        let tasks = self.path_of(pid).join("task");
        let mut answer = Reading::Absent;
        for tid in std::iter::once(pid).chain(others.iter().map(|thread| thread.tid)) {
            let path = tasks.join(tid.to_string()).join("exe");
            answer = match fs::read_link(&path) {
                Ok(target) => return Reading::Value(target.to_string_lossy().into_owned()),
                Err(error) => unreadable(&path, &error),
            };
        }
        answer
    }

    /// Uptime minus start. Both count from boot and include suspend (`CLOCK_BOOTTIME`), and both follow a time
    /// namespace; an uptime faked by lxcfs does not, which shows when it is before the start.
    fn age(&self, started_seconds: f64) -> Reading<f64> {
        self.text("uptime").and_then(|text| {
            let age = parse::uptime(&text).and_then(|uptime| match uptime - started_seconds {
                // The start is rounded to a clock tick, the uptime to 10 ms.
                age if age >= -0.02 => Ok(age.max(0.0)),
                _ => Err(format!("{uptime} s is before the start of the process, at {started_seconds} s")),
            });
            parsed(&self.root.join("uptime"), age)
        })
    }
}

/// Field 52. The kernel prints 0 there to a reader without ptrace access, so a 0 counts only where that access shows
/// elsewhere.
fn exit_status(stat: &procfs::process::Stat, folder: &TaskFolder) -> Reading<WaitStatus> {
    match stat.exit_code {
        Some(0) => match folder.ptrace_access() {
            Reading::Value(()) => Reading::Value(WaitStatus::from_raw(0)),
            Reading::Absent => Reading::unreadable(
                ObstacleKind::Denied,
                format!(
                    "{}: field 52 is 0, and nothing tells whether that is the status",
                    folder.path_of("stat")
                ),
            ),
            Reading::Unreadable(obstacle) => Reading::Unreadable(obstacle),
        },
        Some(raw) => Reading::Value(WaitStatus::from_raw(raw)),
        None => Reading::Absent,
    }
}

/// Default: `/proc`.
impl Default for Tasks {
    fn default() -> Self {
        Self::system()
    }
}
