//! What `/proc` says about one process and its threads, before anyone draws a conclusion.
//!
//! Filled in by `host::task`, judged by `diagnosis::process_state`.
//! Sources: proc(5), kernel `Documentation/filesystems/proc.rst`, `fs/proc/array.c`.

use serde::{Deserialize, Serialize};

use crate::reading::Reading;
use crate::run::CgroupPath;
use crate::wait::WaitStatus;

/// Bit of SIGKILL in [`TaskStatus::pending_thread`] and [`TaskStatus::pending_process`].
///
/// In the thread mask it means "told to die": the kernel sets it in every thread of a process on which *any* fatal
/// signal was delivered (`complete_signal()`), so it is not proof that somebody sent SIGKILL.
pub const SIGKILL_BIT: u64 = 1 << (9 - 1);

/// The state letter of `/proc/PID/stat` field 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "char", from = "char")]
pub enum TaskState {
    /// `R`: on a CPU or waiting for one.
    Running,
    /// `S`: in a sleep that signals end.
    Sleeping,
    /// `D`: in a sleep that no signal ends. Threads in a frozen v1 freezer cgroup show it too.
    Uninterruptible,
    /// `T`: stopped by SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU.
    Stopped,
    /// `t`: stopped by its tracer.
    TracingStop,
    /// `Z`: over; only its status waits to be collected. For a leader: *its* life is over, the process' may not be.
    Zombie,
    /// `X`, or `x` before Linux 4.14: being removed at this moment.
    Dead,
    /// `I`: an idle kernel thread, or a thread parked while another one dumps core.
    Idle,
    /// Any other letter (`P`, `W`, `K` of older kernels, or one not invented yet).
    Other(char),
}

impl TaskState {
    /// Whether the task executes no instruction any more.
    pub fn is_dead(self) -> bool {
        matches!(self, Self::Zombie | Self::Dead)
    }
}

impl From<char> for TaskState {
    fn from(letter: char) -> Self {
        match letter {
            'R' => Self::Running,
            'S' => Self::Sleeping,
            'D' => Self::Uninterruptible,
            'T' => Self::Stopped,
            't' => Self::TracingStop,
            'Z' => Self::Zombie,
            'X' | 'x' => Self::Dead,
            'I' => Self::Idle,
            other => Self::Other(other),
        }
    }
}

impl From<TaskState> for char {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Running => 'R',
            TaskState::Sleeping => 'S',
            TaskState::Uninterruptible => 'D',
            TaskState::Stopped => 'T',
            TaskState::TracingStop => 't',
            TaskState::Zombie => 'Z',
            TaskState::Dead => 'X',
            TaskState::Idle => 'I',
            TaskState::Other(letter) => letter,
        }
    }
}

/// Memory that a task maps and that is in RAM, in bytes, from `/proc/…/status`. Threads of one process share it: it is
/// never to be added up over threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResidentMemory {
    /// `VmRSS`, the sum of the three below.
    pub total_bytes: u64,
    /// `RssAnon`. `null` before Linux 4.5.
    pub anonymous_bytes: Option<u64>,
    /// `RssShmem`: shared memory, `cuMemHostAlloc` included. `null` before Linux 4.5.
    pub shared_bytes: Option<u64>,
    /// `RssFile`. `null` before Linux 4.5.
    pub file_bytes: Option<u64>,
}

/// The part of `/proc/PID/task/TID/status` that tells how a task lives or dies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// `PPid`: who must wait for the process; 0 when that is outside the reader's PID namespace.
    pub parent_pid: i32,
    /// `TracerPid`: 0 when nobody traces it, or the tracer is outside the reader's PID namespace.
    pub tracer_pid: i32,
    /// `Threads`: how many threads the process has, dead but unreaped ones included.
    pub threads: u64,
    /// `SigPnd`: mask of signals pending for this thread, bit n − 1 for signal n.
    pub pending_thread: u64,
    /// `ShdPnd`: mask of signals pending for the process.
    pub pending_process: u64,
    /// `CoreDumping`. `null` before Linux 4.15 and for a task without memory.
    pub core_dumping: Option<bool>,
    /// `null` for a task that maps none: a zombie, one far into its exit, a kernel thread.
    pub memory: Option<ResidentMemory>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReading {
    /// Thread id; the leader's equals the PID.
    pub tid: i32,
    /// Name of up to 15 bytes, set by the thread itself: any bytes, shown as lossy UTF-8.
    pub comm: String,
    /// State letter.
    pub state: TaskState,
    /// It is inside `do_exit()` (`PF_EXITING`): no signal changes its course any more.
    pub exiting: bool,
    /// The `status` file.
    pub status: Reading<TaskStatus>,
    /// Kernel function that it sleeps in. Absent for a task that does not sleep.
    pub wchan: Reading<String>,
    /// Kernel stack, innermost frame first, `function+0x1a/0x30 [module]`; needs root. Read only for threads that may
    /// be stuck: in state D, or of a process whose leader is dead or exiting; else absent.
    pub kernel_stack: Reading<Vec<String>>,
}

/// A shared-memory file that a process has open: a memfd, a file of `/dev/shm`, a System V segment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SharedFile {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`: with `device` it names one file.
    pub inode: u64,
    /// As the link shows it, without ` (deleted)`: `memfd:pool`, `/dev/shm/x`.
    pub name: String,
    /// Bytes of it in memory or swap.
    pub bytes: u64,
}

/// Another process, as much of it as a sentence about the first one needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRef {
    /// PID in the reader's namespace.
    pub pid: i32,
    /// Its name, lossy UTF-8.
    pub comm: Reading<String>,
    /// State of its leader: a stopped parent reaps nobody.
    pub state: Reading<TaskState>,
}

/// A process as one reader saw it: not an atomic snapshot. Threads that ended between the listing and their turn are
/// left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessReading {
    /// PID in the reader's namespace: of the thread-group leader, whichever thread was asked for.
    pub pid: i32,
    /// Start time, clock ticks since boot; with `pid` it names one process of this boot.
    pub start_ticks: u64,
    /// Seconds since the start.
    pub age_seconds: Reading<f64>,
    /// CPU time in user mode, all threads, seconds.
    pub user_seconds: f64,
    /// CPU time in the kernel, all threads, seconds.
    pub system_seconds: f64,
    /// Who must wait for it. Absent when that process is outside the reader's PID namespace (PPid 0).
    pub parent: Reading<ProcessRef>,
    /// Processes that trace a thread of it, each once.
    pub tracers: Vec<ProcessRef>,
    /// The leader: its death makes the process look dead in `ps`.
    pub leader: ThreadReading,
    /// The other threads, by tid.
    pub others: Vec<ThreadReading>,
    /// Path of the executable, from the first thread that still has one; ends in ` (deleted)` when it was unlinked.
    pub executable: Reading<String>,
    /// `/proc/PID/cgroup`. The v1 lines of a zombie read `/`, whatever they were in life.
    pub cgroups: Reading<Vec<CgroupPath>>,
    /// `stat` field 52, once the leader is dead, else absent. Unreadable without ptrace access, where the kernel
    /// prints 0: that is not "exit 0".
    pub exit_status: Reading<WaitStatus>,
}

impl ProcessReading {
    /// The leader, then the others.
    pub fn threads(&self) -> impl Iterator<Item = &ThreadReading> {
        std::iter::once(&self.leader).chain(&self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_letters_come_back_as_they_were() {
        for letter in ('A'..='Z').chain('a'..='z').filter(|letter| *letter != 'x') {
            assert_eq!(char::from(TaskState::from(letter)), letter);
        }
        assert_eq!(TaskState::from('x'), TaskState::Dead);
        assert_eq!(serde_json::to_string(&TaskState::TracingStop).unwrap(), r#""t""#);
    }
}
