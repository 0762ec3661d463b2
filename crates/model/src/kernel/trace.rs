//! Events of tracefs: who sent a SIGKILL, and whom the OOM killer chose.
//!
//! Sources: `include/trace/events/signal.h`, `include/trace/events/oom.h`.

use serde::{Deserialize, Serialize};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TraceEvent {
    /// `signal_generate`.
    Signal(SignalSent),
    /// `mark_victim`.
    OomVictim(OomVictim),
}

/// A signal on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalSent {
    /// Time in µs, by the same clock as the kernel log's.
    pub at_us: u64,
    /// Thread id of the sender, in the initial PID namespace. For a signal of the kernel: who happened to run there.
    pub sender_pid: i32,
    /// Its name; none where the trace does not know it any more (`<...>`).
    pub sender_comm: Option<String>,
    /// The signal.
    pub signal: i32,
    /// How it was sent.
    pub origin: SignalOrigin,
    /// Thread id of the target, in the initial PID namespace.
    pub pid: i32,
    /// Name of the target.
    pub comm: String,
    /// Sent to the whole process, and not to one thread.
    pub group: bool,
    /// What became of it.
    pub outcome: SignalOutcome,
}

/// `si_code` of a signal (`include/uapi/asm-generic/siginfo.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalOrigin {
    /// `SI_USER`, 0: `kill(2)`.
    Kill,
    /// `SI_KERNEL`, 128: the kernel itself: OOM killer, seccomp, `cgroup.kill`, a lost tracer, ….
    Kernel,
    /// `SI_TKILL`, -6: `tkill(2)` or `tgkill(2)`.
    Tkill,
    /// `SI_QUEUE`, -1: `sigqueue(3)`, `pidfd_send_signal(2)` with a siginfo.
    Queue,
    /// Another code.
    Code(i32),
}

impl From<i32> for SignalOrigin {
    fn from(code: i32) -> Self {
        match code {
            0 => Self::Kill,
            128 => Self::Kernel,
            -6 => Self::Tkill,
            -1 => Self::Queue,
            other => Self::Code(other),
        }
    }
}

/// `res=` of `signal_generate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalOutcome {
    /// Given to the target.
    Delivered,
    /// The target ignores it.
    Ignored,
    /// One of that kind waited there already.
    AlreadyPending,
    /// Not given, or without its details: the queue was full.
    Lost,
}

impl From<u32> for SignalOutcome {
    fn from(result: u32) -> Self {
        match result {
            0 => Self::Delivered,
            1 => Self::Ignored,
            2 => Self::AlreadyPending,
            _ => Self::Lost,
        }
    }
}

/// A process that the OOM killer marked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomVictim {
    /// Time in µs, by the same clock as the kernel log's.
    pub at_us: u64,
    /// Its id, in the initial PID namespace.
    pub pid: i32,
    /// Its name (Linux ≥ 6.10).
    pub comm: Option<String>,
    /// Its user (Linux ≥ 6.10).
    pub uid: Option<u32>,
}

/// What was read from a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The events, oldest first.
    pub events: Vec<TraceEvent>,
    /// Events that the buffer had no room for.
    pub lost: u64,
}
