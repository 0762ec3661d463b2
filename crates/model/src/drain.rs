//! The drain: from the wish to stop a run until its memory is back. `status.drain` of the supervisor.
//!
//! Fed by `host`, concluded by `diagnosis::drain`. What is known of a drain and what is not are kept apart: a figure
//! that could not be read is a [`Reading`] without value, a figure that cannot be concluded is `null` with its reason.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::reading::Reading;
use crate::task::ProcessRef;

/// How far a drain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainPhase {
    /// The engine ends or hands back its jobs; nobody has asked the process to exit.
    Quiescing,
    /// It was asked to exit, or is dying: threads are alive, the leader perhaps dead; or it waits to be reaped.
    Exiting,
    /// The process is gone and its memory is not all back.
    Releasing,
    /// The process is gone and what it held is back to the baseline, within [`DrainReport::tolerance_bytes`].
    Released,
}

impl std::fmt::Display for DrainPhase {
    /// The JSON name.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// By what the memory that is still to come back is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainMeasure {
    /// Charge of cgroups that nobody but the run was in: certain.
    Charge,
    /// Charge of a cgroup that others share: their memory moves it too.
    SharedCharge,
    /// `MemAvailable` of the host, where no charge can be read: everybody's memory moves it.
    HostAvailable,
    /// Nothing that could be read tells.
    None,
}

/// How somebody holds a process or its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// Traces a thread of the process: nobody can reap it.
    Traces,
    /// Has open a memfd or another shared-memory file that the run had open too.
    SharedMemory,
    /// Has open a shared-memory file of a size that fits; whether the run used it is not known.
    PerhapsSharedMemory,
    /// Is a member of the run's own cgroup.
    CgroupMember,
}

/// Somebody who holds the process, or memory that outlives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// PID in the reader's namespace.
    pub pid: i32,
    /// Its name of up to 15 bytes, lossy UTF-8; empty where that could not be read.
    pub name: String,
    /// How.
    pub what: Hold,
    /// What it holds: `memfd:pool`, a path; `null` where there is nothing to name.
    pub object: Option<String>,
    /// Bytes of that in memory.
    pub bytes: Option<u64>,
}

/// A thread that a GPU driver keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckThread {
    /// Its id.
    pub tid: i32,
    /// Its name.
    pub name: String,
    /// The kernel module.
    pub module: String,
    /// Kernel function that it sleeps in.
    pub wchan: Reading<String>,
    /// Functions of its kernel stack, innermost first, without offsets. Empty where the stack is not readable.
    pub functions: Vec<String>,
}

/// One look at a drain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrainReport {
    /// The process that drains.
    pub pid: i32,
    /// How far it is.
    pub phase: DrainPhase,
    /// Since when.
    pub since: Timestamp,
    /// Since the drain began, seconds.
    pub elapsed_seconds: f64,
    /// Nothing has moved for longer than a drain's silences last. Not said of a process that runs and is not dying: how long
    /// its work may take is not for the kernel to tell.
    pub stalled: bool,
    /// Since threads, stacks or memory last moved, seconds.
    pub seconds_without_progress: f64,
    /// Who holds the process or its memory, as far as could be found.
    pub held_by: Vec<Holder>,
    /// The process is over and this parent has not waited for it.
    pub unreaped_by: Option<ProcessRef>,
    /// A thread that a GPU driver keeps: every drain of pinned memory passes through one; it is stuck where `stalled` too.
    pub stuck_in_driver: Option<StuckThread>,
    /// A core dump is being written: a SIGKILL now cuts it short.
    pub core_dumping: bool,
    /// Threads that are not dead.
    pub threads_alive: Reading<u64>,
    /// By what the next figures are told.
    pub measure: DrainMeasure,
    /// Bytes that are still to come back: what is above the baseline now.
    pub held_bytes: Reading<u64>,
    /// Bytes that were above the baseline when the drain began, or more where it grew since.
    pub held_at_start_bytes: Reading<u64>,
    /// What the measure must come back to: a charge, or bytes of `MemAvailable`.
    pub baseline_bytes: Reading<u64>,
    /// So much above the baseline counts as back: kernel memory of a cgroup and what others do is never exactly 0.
    pub tolerance_bytes: u64,
    /// How fast memory comes back now; `null` before there are two looks to compare.
    pub rate_bytes_per_second: Option<f64>,
    /// Seconds until it is released.
    pub eta_seconds: Option<f64>,
    /// What the estimate rests on, or why there is none.
    pub eta_reason: String,
    /// All of it in one plain sentence.
    pub summary: String,
    /// What an operator can do about it; `null` while waiting is right.
    pub action: Option<String>,
}

/// A drain of the past: what the next one is estimated from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastDrain {
    /// When it was over.
    pub at: Timestamp,
    /// Bytes that came back.
    pub bytes: u64,
    /// From the first sign of death until the process was gone, seconds.
    pub exiting_seconds: f64,
    /// From then until the memory was back, seconds.
    pub releasing_seconds: f64,
}

impl PastDrain {
    /// From the first sign of death until the memory was back, seconds.
    pub fn seconds(&self) -> f64 {
        self.exiting_seconds + self.releasing_seconds
    }
}
