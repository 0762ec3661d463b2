//! The state of a process as one sentence, and what to do about it.

use sexton_model::process_state::{HeldMemory, LiveThread, ProcessState, ThreadFate, WaitPlace};
use sexton_model::reading::Reading;
use sexton_model::task::{ProcessRef, TaskState};
use sexton_model::units::Bytes;
use sexton_model::wait::WaitStatus;

/// A state in words. Both lines are lower case, without full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What is so.
    pub sentence: String,
    /// What to do about it.
    pub action: String,
}

/// How many threads a sentence names; the others are counted.
const NAMED_THREADS: usize = 3;

/// Puts `state` of process `pid` into words.
pub fn explain(pid: i32, state: &ProcessState) -> Explanation {
    let (sentence, action) = match state {
        ProcessState::Running { blocked } if blocked.is_empty() => {
            (format!("process {pid} is running"), "nothing to do".to_owned())
        }
        ProcessState::Running { blocked } => (
            format!("process {pid} is running, but no signal reaches {}", threads_in_words(blocked)),
            remedy(pid, blocked).unwrap_or_else(|| "look again: such a sleep is short as a rule".to_owned()),
        ),
        ProcessState::Stopped => {
            (format!("process {pid} is stopped by a signal"), format!("continue it: kill -CONT {pid}"))
        }
        ProcessState::StoppedByTracer { tracer, threads } => (
            format!("{} has stopped {} of process {pid}", tracer_in_words(tracer), counted(threads.len(), "thread")),
            format!("let {} continue or detach", pronoun(tracer)),
        ),
        ProcessState::DumpingCore { memory } => (
            format!("process {pid} is writing a core dump and {}", memory_in_words(memory)),
            "wait until it is written: SIGKILL would cut it short (to have none, set RLIMIT_CORE to 0 before the start)"
                .to_owned(),
        ),
        ProcessState::KilledButStuck { threads, memory } => (
            format!(
                "process {pid} was told to die and cannot, since no signal reaches {}; it {}",
                threads_in_words(threads),
                memory_in_words(memory)
            ),
            remedy(pid, threads).unwrap_or_else(|| WAIT_FOR_KERNEL.to_owned()),
        ),
        ProcessState::Exiting { leader_dead, threads, memory } => exiting(pid, *leader_dead, threads, memory),
        ProcessState::HeldByTracer { tracer, stopped, memory } => (
            if stopped.is_empty() {
                format!("process {pid} is dead, but {} has not waited for it", tracer_in_words(tracer))
            } else {
                format!(
                    "the leader of process {pid} is dead, but {} has stopped {}; the process {}",
                    tracer_in_words(tracer),
                    threads_in_words(stopped),
                    memory_in_words(memory)
                )
            },
            format!("let {} continue or detach, or end it: no parent can reap the process before", pronoun(tracer)),
        ),
        ProcessState::Unreaped { parent, status } => unreaped(pid, parent.as_ref(), status),
        ProcessState::Gone => (
            format!("there is no process {pid}"),
            "nothing to do; memory that outlived it shows in the charge of its cgroup".to_owned(),
        ),
        ProcessState::Unknown { obstacle } => (
            format!("process {pid} cannot be read: {obstacle}"),
            "ask again as root, in the PID namespace of the process".to_owned(),
        ),
    };
    Explanation { sentence, action }
}

const WAIT_FOR_KERNEL: &str =
    "wait: it ends when the kernel lets go of these threads; further signals change nothing";

fn exiting(pid: i32, leader_dead: bool, threads: &[LiveThread], memory: &HeldMemory) -> (String, String) {
    let held = memory_in_words(memory);
    let leader = if leader_dead { "its leader is dead" } else { "its leader is on its way out" };
    let all_run_on = threads.iter().all(|thread| thread.fate == ThreadFate::RunsOn);
    if threads.is_empty() {
        let sentence =
            format!("process {pid} is exiting: {leader} and its last thread leaves at this moment");
        (sentence, "look again".to_owned())
    } else if leader_dead && all_run_on {
        let sentence = format!(
            "the leader of process {pid} ended alone, and nothing told its other threads to end: {}; the process {held}",
            threads_in_words(threads)
        );
        (sentence, format!("it ends with its last thread; to end it now: kill -KILL {pid}"))
    } else {
        let sentence = format!(
            "process {pid} is exiting: {leader}, still there: {}; it {held}, and no parent can reap it yet",
            threads_in_words(threads)
        );
        (sentence, remedy(pid, threads).unwrap_or_else(|| WAIT_FOR_KERNEL.to_owned()))
    }
}

fn unreaped(pid: i32, parent: Option<&ProcessRef>, status: &Reading<WaitStatus>) -> (String, String) {
    let ending = match status {
        Reading::Value(status) => status.to_string(),
        Reading::Absent | Reading::Unreadable(_) => "status not readable from here".to_owned(),
    };
    let over = format!("process {pid} is over ({ending}) and holds no memory");
    let Some(parent) = parent else {
        let action = "look for its parent on the host, outside this container".to_owned();
        return (format!("{over}; its parent, outside this PID namespace, has not waited for it"), action);
    };
    let action = match parent.state.value() {
        Some(TaskState::Stopped) => format!("its parent is itself stopped: kill -CONT {}", parent.pid),
        Some(TaskState::TracingStop) => {
            format!("its parent is itself stopped by a tracer: detach that from {}", parent.pid)
        }
        Some(TaskState::Uninterruptible) => {
            format!("its parent is itself blocked: look at process {}", parent.pid)
        }
        _ => format!(
            "process {} must wait for its children (an error in that program); when it ends, the nearest subreaper or PID 1 reaps them",
            parent.pid
        ),
    };
    (format!("{over}; its parent {} has not waited for it", named(parent)), action)
}

/// The most specific thing to do for threads that do not end by themselves.
fn remedy(pid: i32, threads: &[LiveThread]) -> Option<String> {
    threads.iter().find_map(|LiveThread { thread, place, .. }| {
        let tid = thread.tid;
        match place {
            WaitPlace::Freezer => Some(format!(
                "thaw the cgroup of thread {tid} (see /proc/{pid}/task/{tid}/cgroup): write THAWED to its freezer.state, or 0 to cgroup.freeze on v2"
            )),
            WaitPlace::GpuDriver { module } => Some(format!(
                "wait for the driver ({module}) and look for Xid lines in the kernel log; if thread {tid} stays there, only a GPU reset or a reboot helps"
            )),
            WaitPlace::CgroupOutOfMemory => Some(
                "its cgroup is at its memory limit and may not kill: raise the limit, or set oom_kill_disable to 0"
                    .to_owned(),
            ),
            WaitPlace::NetworkFileSystem => Some("bring its file server back, or unmount by force (umount -f)".to_owned()),
            WaitPlace::Disk => Some("wait for the disk; look for I/O errors in the kernel log".to_owned()),
            WaitPlace::CoreDump => Some("wait until the core dump is written".to_owned()),
            WaitPlace::Tracer | WaitPlace::Other { .. } | WaitPlace::Nowhere | WaitPlace::Hidden => None,
        }
    })
}

fn threads_in_words(threads: &[LiveThread]) -> String {
    let named: Vec<String> = threads.iter().take(NAMED_THREADS).map(thread_in_words).collect();
    let more = match threads.len().saturating_sub(NAMED_THREADS) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

fn thread_in_words(LiveThread { thread, place, .. }: &LiveThread) -> String {
    let place = match place {
        WaitPlace::Freezer => " in a frozen cgroup".to_owned(),
        WaitPlace::Tracer => " held by its tracer".to_owned(),
        WaitPlace::GpuDriver { module } => format!(" in the GPU driver ({module})"),
        WaitPlace::CoreDump => " waiting for a core dump".to_owned(),
        WaitPlace::CgroupOutOfMemory => " waiting for memory at its cgroup's limit".to_owned(),
        WaitPlace::Disk => " waiting for a disk".to_owned(),
        WaitPlace::NetworkFileSystem => " waiting for a file server".to_owned(),
        WaitPlace::Other { function } => format!(" in {function}"),
        WaitPlace::Nowhere | WaitPlace::Hidden => String::new(),
    };
    format!("thread {} ({:?}, state {}){place}", thread.tid, thread.comm, char::from(thread.state))
}

fn memory_in_words(memory: &HeldMemory) -> String {
    match memory {
        HeldMemory::Mapped { memory, .. } => format!("holds {}", Bytes(memory.total_bytes)),
        HeldMemory::Unmapped => {
            "maps no memory any more (what is not given back shows in its cgroup's charge)".to_owned()
        }
        HeldMemory::Unknown => "holds memory that cannot be read".to_owned(),
    }
}

fn named(process: &ProcessRef) -> String {
    match &process.comm {
        Reading::Value(comm) => format!("{comm:?} (pid {})", process.pid),
        Reading::Absent | Reading::Unreadable(_) => format!("pid {}", process.pid),
    }
}

fn tracer_in_words(tracer: &Option<ProcessRef>) -> String {
    match tracer {
        Some(tracer) => format!("its tracer {}", named(tracer)),
        None => "a tracer outside this PID namespace".to_owned(),
    }
}

fn pronoun(tracer: &Option<ProcessRef>) -> String {
    match tracer {
        Some(tracer) => format!("pid {}", tracer.pid),
        None => "that tracer".to_owned(),
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
