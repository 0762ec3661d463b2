//! Is this process alive, dying, stuck, held by someone, or gone?
//!
//! `ps` and `kill -0` cannot tell: a dead leader with living threads looks like a zombie and holds all its memory, and a
//! zombie that only waits for its parent looks the same and holds none. The rules are those of the kernel's
//! `exit.c`, `signal.c` and `ptrace.c`; the order in which they are asked is the precedence.

mod explain;
mod wait_place;

use sexton_model::process_state::{HeldMemory, LiveThread, ProcessState, ThreadFate};
use sexton_model::reading::Reading;
use sexton_model::task::{ProcessReading, ProcessRef, SIGKILL_BIT, TaskState, ThreadReading};

pub use explain::{Explanation, explain};
pub use wait_place::wait_place;

/// The state of the process in `reading`.
pub fn classify(reading: &Reading<ProcessReading>) -> ProcessState {
    match reading {
        Reading::Absent => ProcessState::Gone,
        Reading::Unreadable(obstacle) => ProcessState::Unknown { obstacle: obstacle.clone() },
        Reading::Value(process) if is_dumping_core(process) => {
            ProcessState::DumpingCore { memory: held_memory(process) }
        }
        Reading::Value(process) if process.leader.state.is_dead() => with_dead_leader(process),
        Reading::Value(process) => with_living_leader(process),
    }
}

fn with_living_leader(process: &ProcessReading) -> ProcessState {
    let threads = live_threads(process);
    let any = |fate| threads.iter().any(|thread| thread.fate == fate);
    let in_state = |state| threads.iter().filter(move |thread| thread.thread.state == state);
    let traced: Vec<i32> = in_state(TaskState::TracingStop).map(|thread| thread.thread.tid).collect();

    if process.leader.exiting {
        exiting(process, threads)
    } else if any(ThreadFate::CannotDie) {
        let threads = threads.into_iter().filter(|thread| thread.fate == ThreadFate::CannotDie).collect();
        ProcessState::KilledButStuck { threads, memory: held_memory(process) }
    } else if !traced.is_empty() {
        // Before "told to die": a tracer may hold a killed thread at PTRACE_EVENT_EXIT.
        let tracer = tracer_of(process, |thread| thread.state == TaskState::TracingStop);
        ProcessState::StoppedByTracer { tracer, threads: traced }
    } else if any(ThreadFate::ToldToDie) {
        exiting(process, threads)
    } else if in_state(TaskState::Stopped).next().is_some() {
        ProcessState::Stopped
    } else {
        ProcessState::Running { blocked: in_state(TaskState::Uninterruptible).cloned().collect() }
    }
}

fn with_dead_leader(process: &ProcessReading) -> ProcessState {
    let threads = live_threads(process);
    let stopped: Vec<LiveThread> =
        threads.iter().filter(|thread| thread.thread.state == TaskState::TracingStop).cloned().collect();

    if !stopped.is_empty() {
        let tracer = tracer_of(process, |thread| thread.state == TaskState::TracingStop);
        ProcessState::HeldByTracer { tracer, stopped, memory: held_memory(process) }
    } else if !threads.is_empty() {
        exiting(process, threads)
    } else if is_held_by_tracer(process) {
        let tracer = tracer_of(process, |_| true);
        ProcessState::HeldByTracer { tracer, stopped, memory: HeldMemory::Unmapped }
    } else if process.leader.state == TaskState::Dead {
        ProcessState::Gone
    } else if !process.others.is_empty() || thread_count(process) > 1 {
        // Dead threads that nobody traces remove themselves: the last one was about to when it was read.
        exiting(process, threads)
    } else {
        ProcessState::Unreaped {
            parent: process.parent.value().cloned(),
            status: process.exit_status.clone(),
        }
    }
}

fn exiting(process: &ProcessReading, threads: Vec<LiveThread>) -> ProcessState {
    ProcessState::Exiting {
        leader_dead: process.leader.state.is_dead(),
        threads,
        memory: held_memory(process),
    }
}

/// All threads are dead: is it a tracer that must wait first? A tracer that is also the parent needs one wait for both
/// (`wait_task_zombie()`), unless it traces other dead threads too: they hold up the leader.
fn is_held_by_tracer(process: &ProcessReading) -> bool {
    let parent = process.parent.value().map(|parent| parent.pid);
    let tracer = |thread: &ThreadReading| {
        thread.status.value().map(|status| status.tracer_pid).filter(|tracer| *tracer > 0)
    };
    let leader_is_held = tracer(&process.leader).is_some_and(|tracer| Some(tracer) != parent);
    leader_is_held || process.others.iter().any(|thread| tracer(thread).is_some())
}

/// The tracer of the first traced thread for which `wanted` holds. None when it is outside our PID namespace.
fn tracer_of(process: &ProcessReading, wanted: impl Fn(&ThreadReading) -> bool) -> Option<ProcessRef> {
    let pid = process
        .threads()
        .filter(|thread| wanted(thread))
        .filter_map(|thread| thread.status.value())
        .map(|status| status.tracer_pid)
        .find(|tracer| *tracer > 0)?;
    let unnamed = ProcessRef { pid, comm: Reading::Absent, state: Reading::Absent };
    Some(process.tracers.iter().find(|tracer| tracer.pid == pid).cloned().unwrap_or(unnamed))
}

/// `CoreDumping` belongs to the memory, which a dead leader has no more: any thread may tell.
fn is_dumping_core(process: &ProcessReading) -> bool {
    process
        .threads()
        .filter_map(|thread| thread.status.value())
        .any(|status| status.core_dumping == Some(true))
}

fn thread_count(process: &ProcessReading) -> u64 {
    process.leader.status.value().map_or(1, |status| status.threads)
}

fn live_threads(process: &ProcessReading) -> Vec<LiveThread> {
    process
        .threads()
        .filter(|thread| !thread.state.is_dead())
        .map(|thread| LiveThread { thread: thread.clone(), fate: fate(thread), place: wait_place(thread) })
        .collect()
}

fn fate(thread: &ThreadReading) -> ThreadFate {
    let told_to_die = thread
        .status
        .value()
        .is_some_and(|status| (status.pending_thread | status.pending_process) & SIGKILL_BIT != 0);
    match (thread.exiting, told_to_die, thread.state) {
        (true, ..) => ThreadFate::Leaving,
        (false, true, TaskState::Uninterruptible) => ThreadFate::CannotDie,
        (false, true, _) => ThreadFate::ToldToDie,
        (false, false, _) => ThreadFate::RunsOn,
    }
}

/// Threads share their memory: whichever still has it speaks for all.
fn held_memory(process: &ProcessReading) -> HeldMemory {
    let living = || process.threads().filter(|thread| !thread.state.is_dead());
    let mapped = living().find_map(|thread| {
        let memory = thread.status.value()?.memory?;
        Some(HeldMemory::Mapped { tid: thread.tid, memory })
    });
    mapped.unwrap_or(match living().all(|thread| thread.status.value().is_some()) {
        true => HeldMemory::Unmapped,
        false => HeldMemory::Unknown,
    })
}
