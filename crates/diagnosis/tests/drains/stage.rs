//! Samples by what a test needs of them.

use std::time::Duration;

use sexton_diagnosis::drain::{Figures, Sample, Settings, Start, Tracker};
use sexton_model::Timestamp;
use sexton_model::drain::{DrainReport, PastDrain};
use sexton_model::process_state::{HeldMemory, LiveThread, ProcessState, ThreadFate, WaitPlace};
use sexton_model::reading::{ObstacleKind, Reading};
use sexton_model::task::{TaskState, ThreadReading};

pub(crate) const GIB: u64 = 1 << 30;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const PID: i32 = 7;
/// Memory of the host when nothing runs.
pub(crate) const HOST: u64 = 124 * GIB;

pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

pub(crate) fn at(seconds: f64) -> Timestamp {
    Timestamp::from_microsecond((seconds * 1e6) as i64).unwrap()
}

pub(crate) fn denied<T>() -> Reading<T> {
    Reading::unreadable(ObstacleKind::Denied, "/sys/fs/cgroup/memory/x: permission denied")
}

pub(crate) fn figures(charge: u64, shmem: u64, available: u64) -> Figures {
    Figures {
        charge_bytes: Reading::Value(charge),
        shmem_bytes: Reading::Value(shmem),
        available_bytes: Reading::Value(available),
    }
}

/// A run of its own cgroup that holds `held`.
pub(crate) fn start(held: u64) -> Start {
    Start {
        baseline: figures(0, 0, HOST),
        exclusive: Reading::Value(true),
        alive: figures(held, held, HOST - held),
        resident_bytes: Some(held),
    }
}

pub(crate) fn thread(tid: i32, fate: ThreadFate, place: WaitPlace, stack: &[&str]) -> LiveThread {
    LiveThread {
        thread: ThreadReading {
            tid,
            comm: "worker".to_owned(),
            state: TaskState::Uninterruptible,
            exiting: fate == ThreadFate::Leaving,
            status: Reading::Absent,
            wchan: Reading::Absent,
            kernel_stack: match stack {
                [] => Reading::Absent,
                frames => Reading::Value(frames.iter().map(|frame| (*frame).to_owned()).collect()),
            },
        },
        fate,
        place,
    }
}

pub(crate) fn running() -> ProcessState {
    ProcessState::Running { blocked: Vec::new() }
}

pub(crate) fn exiting(threads: Vec<LiveThread>) -> ProcessState {
    ProcessState::Exiting { leader_dead: true, threads, memory: HeldMemory::Unmapped }
}

/// One thread that leaves, without a stack that could be read.
pub(crate) fn leaving() -> ProcessState {
    exiting(vec![thread(9, ThreadFate::Leaving, WaitPlace::Nowhere, &[])])
}

pub(crate) fn sample(elapsed: f64, process: ProcessState, memory: Figures) -> Sample {
    let threads_alive = match &process {
        ProcessState::Exiting { threads, .. } => Reading::Value(threads.len() as u64),
        ProcessState::Gone => Reading::Value(0),
        _ => Reading::Value(3),
    };
    Sample {
        at: at(elapsed),
        elapsed: seconds(elapsed),
        process,
        threads_alive,
        cpu_seconds: None,
        memory,
        work_done: None,
    }
}

/// Memory of which `held` bytes are still out, in charge, `Shmem` and `MemAvailable` alike.
pub(crate) fn holding(held: u64) -> Figures {
    figures(held, held, HOST - held)
}

pub(crate) struct Stage {
    pub(crate) tracker: Tracker,
}

impl Stage {
    pub(crate) fn new(start: Start) -> Self {
        Self::with(start, Vec::new())
    }

    pub(crate) fn with(start: Start, history: Vec<PastDrain>) -> Self {
        Self { tracker: Tracker::new(PID, Settings::default(), start, history, at(0.0)) }
    }

    pub(crate) fn look(&mut self, elapsed: f64, process: ProcessState, memory: Figures) -> DrainReport {
        self.tracker.feed(&sample(elapsed, process, memory))
    }
}
