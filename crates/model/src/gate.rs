//! The start gate: whether the next run may start, by what it needs and what there is. `status.gate` of the supervisor.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::headroom::Headroom;

/// How a need is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeedSource {
    /// `[memory] need`.
    Configured,
    /// What earlier runs held at most.
    Learned,
    /// The budget that is handed to the prover: it needs at least that.
    Budget,
}

/// What the next run needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// Bytes.
    pub bytes: u64,
    /// How that is known.
    pub source: NeedSource,
}

/// One look at the gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateReport {
    /// Whether the next run may start.
    pub open: bool,
    /// What it needs; `null` where nothing is known of that.
    pub need_bytes: Option<u64>,
    /// How that is known.
    pub need_source: Option<NeedSource>,
    /// What is to stay free besides.
    pub reserve_bytes: u64,
    /// What there is.
    pub headroom: Headroom,
    /// Whether it could fit if nothing else were there: no limit is smaller than need and reserve. If not, waiting does not
    /// help; but the memory of some VMs grows as it is used, and `MemTotal` with it.
    pub can_ever_fit: bool,
    /// Need and reserve less headroom, at least 0.
    pub short_by_bytes: u64,
    /// The limit that binds, in words; `null` where none is known.
    pub binding_limit: Option<String>,
    /// Bytes that an ended run is still giving back.
    pub still_releasing_bytes: u64,
    /// Seconds until enough is back; `null` where that is not known, or giving back will not be enough.
    pub eta_seconds: Option<f64>,
    /// What the estimate rests on, or why there is none.
    pub eta_reason: String,
    /// All of it in one plain sentence.
    pub summary: String,
}

/// What a run that became ready held at most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The run.
    pub run_id: String,
    /// When it ended.
    pub at: Timestamp,
    /// Program and arguments: what another program needs is another matter.
    pub command: Vec<String>,
    /// The budget that it was handed; `null`: none.
    pub budget_bytes: Option<u64>,
    /// Bytes.
    pub peak_bytes: u64,
    /// How the peak is known.
    pub measure: PeakMeasure,
}

/// How the peak of a run is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeakMeasure {
    /// Charge of its own cgroups without page cache, above the baseline: kernel memory is in it.
    Charge,
    /// Anonymous and shared memory that it mapped.
    Resident,
    /// `ru_maxrss`: mapped files are in it, kernel memory is not.
    MaxRss,
}
