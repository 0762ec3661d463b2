//! What is known about an ending: everything that the judgement rests on, as plain data.
//!
//! It is stored beside the exit record, so that a later version can judge the same death again.

use serde::{Deserialize, Serialize};
use sexton_model::Timestamp;
use sexton_model::baseline::CgroupBaseline;
use sexton_model::cgroup::MemoryCgroup;
use sexton_model::kernel::KernelEvent;
use sexton_model::kernel::trace::SignalSent;
use sexton_model::reading::Reading;
use sexton_model::wait::WaitStatus;

/// A signal that the supervisor sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnSignal {
    /// Its number.
    pub signal: i32,
    /// When.
    pub at: Timestamp,
    /// What was found of a prover that lived and did not work, where that is why it was sent.
    #[serde(default)]
    pub watchdog: Option<String>,
}

/// Which tasks of the kernel's are the run's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    /// PID of the main process, in our PID namespace; `null` when there was none.
    pub pid: Option<i32>,
    /// Ids of its threads, as far as they were seen: a kernel line may name any of them.
    pub thread_ids: Vec<i32>,
    /// Names of its threads, of up to 15 bytes.
    pub names: Vec<String>,
    /// Whether our PID namespace is the kernel's first: only then do the numbers of kernel lines mean the same here.
    pub numbers_are_global: bool,
}

/// A cgroup that the run was in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Membership {
    /// Counters when the run came into it.
    pub baseline: Reading<CgroupBaseline>,
    /// What it said at the death, before the reap.
    pub at_death: Reading<MemoryCgroup>,
    /// Kills that its counter had shown while the run lived on: they hit others.
    #[serde(default)]
    pub kills_survived: u64,
}

/// The kernel log since the run began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelLog {
    /// What it said, oldest first.
    pub events: Vec<KernelEvent>,
    /// Whether nothing was overwritten before it was read.
    pub whole: bool,
}

/// Everything that is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// How it ended.
    pub wait: WaitStatus,
    /// Why the program never ran, where that is so.
    pub start_error: Option<String>,
    /// Signals that the supervisor itself sent to this run, oldest first.
    pub own_signals: Vec<OwnSignal>,
    /// When the wait status was taken.
    pub at: Timestamp,
    /// The run's tasks.
    pub tasks: Tasks,
    /// The memory cgroups that it was in, the last one first.
    pub memberships: Vec<Membership>,
    /// How long before the death its cgroup was last looked at, seconds: it may have moved since. `null` where nobody did.
    pub cgroup_last_seen_seconds: Option<f64>,
    /// By how much `oom_kill` of `/proc/vmstat` rose during the run: every such kill on the host.
    pub vmstat_oom_kills: Reading<u64>,
    /// The kernel log since the run began.
    pub kernel_log: Reading<KernelLog>,
    /// SIGKILLs sent to it, by the signal trace; absent where that is off.
    pub kills_sent: Reading<Vec<SignalSent>>,
    /// Marks that a userspace killer left on the cgroup, in words; absent where there is none.
    pub userspace_killer: Reading<String>,
    /// The end of its output.
    pub output: Reading<String>,
}

impl Facts {
    /// Facts with nothing but a wait status: every other source absent.
    pub fn of(wait: WaitStatus, at: Timestamp) -> Self {
        Self {
            wait,
            start_error: None,
            own_signals: Vec::new(),
            at,
            tasks: Tasks::default(),
            memberships: Vec::new(),
            cgroup_last_seen_seconds: None,
            vmstat_oom_kills: Reading::Absent,
            kernel_log: Reading::Absent,
            kills_sent: Reading::Absent,
            userspace_killer: Reading::Absent,
            output: Reading::Absent,
        }
    }
}
