//! One line of the journal.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Timestamp;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A supervisor took over this name.
    SupervisorStarted,
    /// It is leaving.
    SupervisorStopped,
    /// A state was left for another; `from`, `to`, `reason`.
    StateChanged,
    /// A run is about to be made.
    RunStarting,
    /// Its process runs its program.
    RunStarted,
    /// Its program says that it takes work.
    RunReady,
    /// A living run was taken over.
    RunAdopted,
    /// A run ended; `wait`, `cause`.
    RunEnded,
    /// A restart was scheduled; `delay_seconds`, `attempt`.
    RestartScheduled,
    /// Somebody asked for something; `command`.
    Commanded,
    /// We sent a signal; `signal`, `reason`.
    Signalled,
    /// The kernel's OOM killer ended another process of the run's cgroup; `kills` or `victim`.
    MemberOomKilled,
    /// A child of the run's main process ended, and that does not wait for it; `name`, `pid`, `status`, `parent_name`,
    /// `parent_pid`.
    WrapperOutlivesProver,
    /// The run sleeps in a cgroup that is out of memory and must not kill (or does so no more); `stalled`.
    StalledUnderOom,
    /// A run ended, and processes that it started go on; `descendants`, each with `pid` and `name`.
    DescendantsLeft,
    /// The keeper is gone; the supervisor is the parent now.
    KeeperLost,
    /// The run is not ready in time; `seconds`, `why`.
    ReadinessOverdue,
    /// No partition has ended for too long, while there is work; `seconds`, `in_hand`, `in_flight`.
    ProgressStalled,
    /// One has ended after a stall, or the work is gone; `stalled_seconds`, `in_flight`.
    ProgressResumed,
    /// The run's status cannot be read; `seconds`, `why`.
    StatusSilent,
    /// It can be read again; `silent_seconds`.
    StatusAnswering,
    /// The run did not say in time that it lives, as it had promised by `sd_notify`; `seconds`, `why`.
    HeartbeatLost,
    /// The run said something of itself by `sd_notify`; what it said.
    Notified,
    /// Something came to the notification socket that is not taken; `why`, `pid`, `messages`.
    NotifyRefused,
    /// The run has finished its work and takes no more; `abandoned`: jobs that are still listed and nobody works on.
    Quiesced,
    /// It has not, or that cannot be told; `why`, `in_flight`.
    QuiesceFailed,
    /// It takes work again; or not, then `why`.
    Unquiesced,
    /// The drain of a run makes no progress; `phase`, `held_bytes`, `held_by`, `summary`, `action`.
    DrainStalled,
    /// It goes on after a stall; `phase`, `held_bytes`.
    DrainResumed,
    /// The memory of an ended run is back; `bytes`, `exiting_seconds`, `releasing_seconds`.
    MemoryReleased,
    /// It is not, and is waited for no longer; `held_bytes`, `held_by`, `summary`, `action`.
    MemoryNotReleased,
    /// The run writes a core file; `size_limited`.
    CoreDumping,
    /// Processes of a run that outlived its main one were stopped; `terminated`, `killed`, `stuck`.
    TreeStopped,
    /// The next start waits for memory; `summary`, `need_bytes`, `headroom_bytes`, `binding_limit`, `eta_seconds`.
    GateShut,
    /// It waits no longer; `waited_seconds`, `summary`, `budget_bytes` where a smaller one was taken for it.
    GateOpened,
    /// It did not fit in time, at any budget; `summary`, `binding_limit`.
    GateTimedOut,
    /// The budget for the next start is another one; `from_bytes`, `to_bytes`, `why`.
    BudgetChanged,
    /// The configuration was read again; `changes`, `after_restart`: those that wait for a new supervisor.
    ConfigReloaded,
    /// It has faults, and the one before stays in force; `faults`.
    ConfigRefused,
    /// A hook did not do its work; `command`, `event`, `event_seq`, `why`, `output`.
    HookFailed,
    /// A kind that this version does not know (written by a newer one).
    #[serde(other)]
    Other,
}

/// A line of `journal.ndjson` and of `GET /v1/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Counts up by one over the life of a state folder.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: EventKind,
    /// Which run it belongs to.
    pub run_id: Option<String>,
    /// What else there is to say, by kind.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}
