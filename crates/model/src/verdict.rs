//! Why a run ended: cause, level, confidence, and the evidence that was looked at.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Cause of death.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Exited with 0.
    CleanExit,
    /// Exited with another code.
    ErrorExit,
    /// A Rust panic ended it.
    Panic,
    /// `abort(3)`.
    Abort,
    /// Invalid memory access.
    Segfault,
    /// Illegal instruction, division by zero, breakpoint or a similar processor trap.
    Trap,
    /// Access to memory that exists no longer: a truncated file mapping, a bad page.
    BusError,
    /// Killed by the kernel at the memory limit of its own cgroup.
    OomOwnLimit,
    /// Killed by the kernel at the memory limit of a cgroup above its own.
    OomAncestorLimit,
    /// Killed by the kernel because the host ran out of memory.
    OomHost,
    /// Killed by a userspace killer (systemd-oomd, earlyoom).
    OomUserspace,
    /// Signs of an OOM kill without proof.
    OomSuspected,
    /// Asked from outside by a catchable signal.
    Terminated,
    /// SIGKILL from a known process.
    KilledByProcess,
    /// SIGKILL from nobody knows whom.
    KilledUnknown,
    /// We asked it to stop and it did.
    StoppedBySupervisor,
    /// We asked it to stop, it did not in time, and we killed it.
    KilledBySupervisor,
    /// We ended it because it made no progress.
    Watchdog,
    /// It never ran: `exec` failed.
    StartFailed,
    /// The GPU or its driver ended it.
    GpuFault,
    /// The evidence does not say.
    Unknown,
}

/// How much the evidence says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Nothing points anywhere.
    Unknown,
    /// One reading among others.
    Possible,
    /// Nothing else fits well.
    Likely,
    /// Proved.
    Certain,
}

/// Whose memory limit it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The limit of the run's own cgroup.
    Own,
    /// The limit of a cgroup above.
    Ancestor,
    /// A limit outside what this namespace shows.
    Hidden,
    /// The host's memory.
    Host,
}

/// A verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Cause of death.
    pub cause: Cause,
    /// Whose limit, for the OOM causes.
    pub level: Option<Level>,
    /// How sure.
    pub confidence: Confidence,
    /// One plain sentence.
    pub summary: String,
}

/// Where a piece of evidence comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Source {
    /// `wait(2)`.
    #[serde(rename = "wait_status")]
    WaitStatus,
    /// The OOM kill counter of a cgroup.
    #[serde(rename = "cgroup.oom_kill")]
    CgroupOomKill,
    /// Limits and usage of a cgroup.
    #[serde(rename = "cgroup.limit")]
    CgroupLimit,
    /// `/dev/kmsg` or `syslog(2)`.
    #[serde(rename = "kernel_log")]
    KernelLog,
    /// `oom_kill` of `/proc/vmstat`.
    #[serde(rename = "vmstat.oom_kill")]
    VmstatOomKill,
    /// Who sent the signal, from tracefs.
    #[serde(rename = "signal_sender")]
    SignalSender,
    /// Pressure stall information.
    #[serde(rename = "memory_pressure")]
    MemoryPressure,
    /// Other processes of the run.
    #[serde(rename = "member_processes")]
    MemberProcesses,
    /// A core dump.
    #[serde(rename = "core_dump")]
    CoreDump,
    /// What the prover wrote.
    #[serde(rename = "output")]
    Output,
    /// Xid messages of the NVIDIA driver.
    #[serde(rename = "gpu_xid")]
    GpuXid,
    /// What we did ourselves.
    #[serde(rename = "own_action")]
    OwnAction,
}

/// What a source answered. *Unreadable* is never *empty*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It speaks of this death.
    Hit,
    /// Readable, and nothing there.
    Empty,
    /// Could not be read; `detail` says why.
    Unreadable,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Where.
    pub source: Source,
    /// What it answered.
    pub answer: Answer,
    /// The value found, or why it could not be read.
    pub detail: String,
    /// When it was looked at.
    pub at: Timestamp,
}

macro_rules! display_as_json_name {
    ($($type:ty),*) => {$(
        /// The JSON name.
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.serialize(f)
            }
        }
    )*};
}

display_as_json_name!(Cause, Confidence, Level, Source, Answer);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_contract() {
        assert_eq!(Cause::OomOwnLimit.to_string(), "oom_own_limit");
        assert_eq!(Source::CgroupOomKill.to_string(), "cgroup.oom_kill");
        assert_eq!(Answer::Unreadable.to_string(), "unreadable");
        assert_eq!(serde_json::to_string(&Level::Hidden).unwrap(), "\"hidden\"");
    }

    #[test]
    fn confidence_is_ordered() {
        assert!(Confidence::Unknown < Confidence::Possible && Confidence::Likely < Confidence::Certain);
    }
}
