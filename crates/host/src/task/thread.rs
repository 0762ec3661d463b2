//! One thread.

use std::path::Path;

use procfs::process::Status;
use sexton_model::reading::{ObstacleKind, Reading};
use sexton_model::task::{ResidentMemory, TaskState, TaskStatus, ThreadReading};

use super::folder::TaskFolder;
use super::parse;

/// `PF_EXITING` of `include/linux/sched.h`, in `stat` field 9.
const PF_EXITING: u32 = 0x0000_0004;

/// Of which threads the kernel stack is read: unwinding it costs, and a prover has hundreds of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closeness {
    /// Of those in state D.
    WhereStuck,
    /// Of all.
    Everywhere,
}

/// Reads the thread `tid` below the `task` folder of its process. Absent or vanished when it has ended.
pub(super) fn read(tasks: &Path, tid: i32, closeness: Closeness) -> Reading<ThreadReading> {
    TaskFolder::open(&tasks.join(tid.to_string())).and_then(|folder| read_from(&folder, tid, closeness))
}

fn read_from(folder: &TaskFolder, tid: i32, closeness: Closeness) -> Reading<ThreadReading> {
    folder.stat().map(|stat| {
        let state = TaskState::from(stat.state);
        let looked_into =
            !state.is_dead() && (closeness == Closeness::Everywhere || state == TaskState::Uninterruptible);
        ThreadReading {
            tid,
            comm: stat.comm,
            state,
            exiting: stat.flags & PF_EXITING != 0,
            status: folder.status().map(status),
            wchan: wait_channel(folder, state),
            kernel_stack: if looked_into {
                folder.parsed("stack", parse::kernel_stack)
            } else {
                Reading::Absent
            },
        }
    })
}

/// The kernel prints `0` for a task that does not sleep, and also to a reader without ptrace access (`proc_pid_wchan()`).
fn wait_channel(folder: &TaskFolder, state: TaskState) -> Reading<String> {
    if state.is_dead() {
        return Reading::Absent;
    }
    folder.bytes("wchan").and_then(|bytes| match String::from_utf8_lossy(&bytes).trim() {
        "" | "0" if state == TaskState::Running => Reading::Absent,
        "" | "0" => Reading::unreadable(
            ObstacleKind::Denied,
            format!("{}: the kernel does not say; run as root", folder.path_of("wchan")),
        ),
        function => Reading::Value(function.to_owned()),
    })
}

pub(super) fn status(status: Status) -> TaskStatus {
    TaskStatus {
        parent_pid: status.ppid,
        tracer_pid: status.tracerpid,
        threads: status.threads,
        pending_thread: status.sigpnd,
        pending_process: status.shdpnd,
        core_dumping: status.core_dumping,
        memory: status.vmrss.map(|total| ResidentMemory {
            total_bytes: bytes(total),
            anonymous_bytes: status.rssanon.map(bytes),
            shared_bytes: status.rssshmem.map(bytes),
            file_bytes: status.rssfile.map(bytes),
        }),
    }
}

/// `status` counts in `kB`, which are KiB.
fn bytes(kib: u64) -> u64 {
    kib.saturating_mul(1024)
}
