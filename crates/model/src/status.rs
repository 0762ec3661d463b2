//! What the supervisor is doing now.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::drain::DrainReport;
use crate::exit::ExitRecord;
use crate::gate::GateReport;

/// State of the supervisor towards its one prover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The process exists; it has not said yet that it is ready.
    Starting,
    /// It takes work.
    Ready,
    /// It finishes its work and takes no more.
    Quiescing,
    /// It was asked to end.
    Stopping,
    /// Its leader is dead and threads are still alive in the kernel.
    Exiting,
    /// Reaped, and its memory is not back yet.
    Releasing,
    /// The next start waits until enough memory is free.
    WaitingForMemory,
    /// The next start waits for its back-off.
    BackingOff,
    /// Down by command.
    Stopped,
    /// Down, and policy says no more restarts.
    Failed,
    /// Its drain makes no progress.
    Stalled,
}

impl std::fmt::Display for State {
    /// The JSON name.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// A process that its run has left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descendant {
    /// PID.
    pub pid: i32,
    /// Name of up to 15 bytes that it gave itself, lossy UTF-8.
    pub name: String,
}

impl std::fmt::Display for Descendant {
    /// `sleep (pid 7)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// The memory budgets, and the one that the next start takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LadderStatus {
    /// `[memory] budget`, bytes.
    pub full_bytes: u64,
    /// That of the next start, bytes.
    pub step_bytes: u64,
    /// All of them, bytes, the largest first; none is below the floor.
    pub steps_bytes: Vec<u64>,
    /// Why it is not the full one; `null` where it is.
    pub reason: Option<String>,
    /// When the next larger one may be tried; `null`: not before something changes.
    pub larger_at: Option<Timestamp>,
}

/// `supervisor status --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SupervisorStatus {
    /// [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the supervised prover (`--name`).
    pub name: String,
    /// What it is doing.
    pub state: State,
    /// One plain sentence on what it waits for or why it is down; `null` when there is nothing to say.
    pub reason: Option<String>,
    /// The current run.
    pub run_id: Option<String>,
    /// PID of the current run.
    pub pid: Option<i32>,
    /// PID of the supervisor itself.
    pub supervisor_pid: i32,
    /// PID of the keeper, the prover's parent; `null` while there is none.
    pub keeper_pid: Option<i32>,
    /// Whether this supervisor found the run alive instead of starting it.
    pub adopted: bool,
    /// SHA-256 of the current run's executable.
    pub exe_sha256: Option<String>,
    /// Since when the state holds.
    pub since: Timestamp,
    /// Restarts by policy since the supervisor started.
    pub restarts: u64,
    /// When the next start is due, while backing off.
    pub next_start_at: Option<Timestamp>,
    /// Memory budget handed to the current run.
    pub budget_bytes: Option<u64>,
    /// Progress of a drain under way.
    pub drain: Option<DrainReport>,
    /// What the start gate waits for.
    pub gate: Option<GateReport>,
    /// It has finished its work and takes no more; it is `quiescing` still.
    #[serde(default)]
    pub quiesced: bool,
    /// Where the memory budget stands; `null` where none is configured.
    #[serde(default)]
    pub ladder: Option<LadderStatus>,
    /// What the prover says of itself by `sd_notify`, one line.
    #[serde(default)]
    pub prover_says: Option<String>,
    /// Jobs in flight when the prover last told; `null` where it is not asked.
    #[serde(default)]
    pub in_flight: Option<u64>,
    /// How the last run ended.
    pub last_exit: Option<ExitRecord>,
    /// Processes that an ended run has left behind and that go on, as of the last change. At most 32 are named.
    #[serde(default)]
    pub descendants: Vec<Descendant>,
    /// The prover's Unix socket, as handed to it.
    pub prover_socket: Option<String>,
}
