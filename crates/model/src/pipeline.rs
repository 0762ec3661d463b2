//! What a prover says about its own work: its `/status` page, job states and priorities.
//!
//! The page is a superset of cuzk's `/status` (filecoin-project/curio, `extern/cuzk/cuzk-core/src/status.rs`), with
//! its names and types exactly. What only our engine says is optional here, so that one type reads both.
//! Durations named `_secs` or `_seconds` are seconds, `_ms` milliseconds, `_us` microseconds, all since a moment
//! of the prover's monotonic clock; sizes are bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How urgent a job is. A higher one overtakes every waiting lower one; equals keep their order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Work that may wait for everything else.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Before normal work.
    High,
    /// Before everything: a proof with a deadline on a chain.
    Critical,
}

impl Priority {
    /// Every priority, the least urgent first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Normal, Self::High, Self::Critical];

    /// The name used in JSON and in metric labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// Where a job is. The last four are endings: a job reaches exactly one of them, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Accepted, waiting for a worker.
    Queued,
    /// A worker reads the key and makes the witness.
    Synthesizing,
    /// A worker computes the proof and verifies it.
    Proving,
    /// Ended: proved, and the proof verified by the engine itself.
    Done,
    /// Ended: the error says why.
    Failed,
    /// Ended: asked for by the client.
    Cancelled,
    /// Ended without having been proved, because the engine drains: the request is given back to be submitted elsewhere.
    HandedBack,
}

impl JobState {
    /// Every state, in the order of a job's life.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Synthesizing,
        Self::Proving,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::HandedBack,
    ];

    /// True for the four endings.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled | Self::HandedBack)
    }

    /// The name used in JSON and in metric labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Synthesizing => "synthesizing",
            Self::Proving => "proving",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::HandedBack => "handed_back",
        }
    }
}

/// Whether the engine takes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineState {
    /// Keys asked for at the start are still being read or made.
    Starting,
    /// Takes and proves jobs.
    Ready,
    /// Proves what it has, takes nothing new; can be taken back.
    Quiesced,
    /// Quiesced for good: what runs is finished, what waits is handed back, then the process exits.
    Draining,
}

/// The prover's `GET /status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PipelineStatus {
    /// [`crate::SCHEMA_VERSION`]; absent from cuzk.
    #[serde(default)]
    pub schema_version: Option<u32>,
    /// Seconds since the prover started.
    pub uptime_secs: f64,
    /// The memory budget.
    pub memory: MemoryStatus,
    /// Witness generation.
    pub synthesis: SynthesisStatus,
    /// Jobs that were accepted and have not ended (cuzk also lists those ended less than 30 s ago, and failed ones for ever).
    pub pipelines: Vec<PipelineJob>,
    /// Workers that drive a GPU: none when the engine proves on the CPU.
    pub gpu_workers: Vec<GpuWorker>,
    /// Large things kept in memory between jobs.
    pub allocations: Allocations,
    /// Totals since the start.
    pub counters: Counters,
    /// What is between two stages now.
    pub buffers: Buffers,

    /// Whether work is taken; absent from cuzk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<EngineState>,
    /// True while nothing new is admitted (also while draining); absent from cuzk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiesced: Option<bool>,
    /// `SEXTON_RUN_ID` as handed over by the supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Version of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Waiting jobs; absent from cuzk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueStatus>,
    /// Workers that prove on the CPU; absent from cuzk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_workers: Option<Vec<CpuWorker>>,
    /// Every accepted job, by where it is or how it ended; absent from cuzk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobCounts>,
    /// Stage times of the proofs that were done, by circuit; absent from cuzk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<BTreeMap<String, StageTotals>>,
    /// The last job that failed: `id: reason`; absent from cuzk and before the first failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// The memory budget: what the prover allows itself and has accounted, not what the kernel measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStatus {
    /// The budget; `null` when none was given.
    pub total_bytes: Option<u64>,
    /// Accounted now.
    pub used_bytes: u64,
    /// `total_bytes` less `used_bytes`, at least 0; `null` when no budget was given.
    pub available_bytes: Option<u64>,
    /// What `used_bytes` counts and how far to trust it, or why there is no budget; absent from cuzk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Witness generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SynthesisStatus {
    /// Jobs that may be in synthesis at once.
    pub max_concurrent: u32,
    /// Jobs in synthesis now.
    pub active: u32,
}

/// A job that has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PipelineJob {
    /// The id given by the client or made by the engine.
    pub job_id: String,
    /// The circuit's name; the key of [`Counters::completed_by_kind`].
    pub proof_kind: String,
    /// Seconds since it was accepted.
    pub started_secs_ago: f64,
    /// Circuit instances of this job.
    pub total_partitions: usize,
    /// Those proved.
    pub partitions_done: usize,
    /// Each of them.
    pub partitions: Vec<PipelinePartition>,
    /// The circuit with its size, such as `mimc-2^12`; absent from cuzk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit: Option<String>,
    /// Its priority; absent from cuzk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

/// One circuit instance of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelinePartition {
    /// From 0.
    pub index: usize,
    /// Where it is.
    pub state: PartitionState,
    /// Milliseconds of witness generation, so far or in all; `null` before it.
    pub synth_ms: Option<u64>,
    /// Milliseconds of proving, so far or in all; `null` before it. cuzk's name: on the CPU backend these are CPU times.
    pub gpu_ms: Option<u64>,
}

/// Where a partition is, in cuzk's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionState {
    /// Waits for synthesis.
    Pending,
    /// Its witness is being made.
    Synthesizing,
    /// Waits for a proving worker.
    SynthDone,
    /// Is being proved, on whatever device the engine has.
    Gpu,
    /// Proved.
    Done,
    /// Failed.
    Failed,
}

/// A worker that drives a GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuWorker {
    /// Unique in the prover.
    pub worker_id: u32,
    /// The CUDA ordinal of its device.
    pub gpu_ordinal: u32,
    /// What it does.
    pub state: WorkerState,
    /// Job in hand.
    pub current_job: Option<String>,
    /// Partition of that job.
    pub current_partition: Option<usize>,
    /// Seconds since it took it.
    pub busy_secs: Option<f64>,
}

/// A worker that proves on the CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuWorker {
    /// From 0.
    pub worker_id: u32,
    /// What it does.
    pub state: WorkerState,
    /// Job in hand, also when the job was cancelled meanwhile and its result will be discarded.
    pub current_job: Option<String>,
    /// Seconds since it took it.
    pub busy_secs: Option<f64>,
}

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// Waits for work.
    Idle,
    /// Has a job in hand.
    Proving,
}

/// Large things kept in memory between jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Allocations {
    /// Proving keys.
    pub srs: Vec<Allocation>,
    /// Pre-compiled constraint systems.
    pub pce: Vec<Allocation>,
}

/// One large thing kept in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// The circuit that it serves.
    pub circuit_id: String,
    /// Its size.
    pub bytes: u64,
    /// Seconds since a job used it last.
    pub last_used_secs_ago: f64,
    /// True when it could be dropped now and loaded again later.
    pub evictable: bool,
}

/// Totals since the start. They never fall.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Jobs done.
    pub total_completed: u64,
    /// Jobs failed.
    pub total_failed: u64,
    /// Jobs done, by circuit.
    pub completed_by_kind: BTreeMap<String, u64>,
    /// Jobs failed, by circuit.
    pub failed_by_kind: BTreeMap<String, u64>,
    /// Jobs waiting now (a gauge, in cuzk's place).
    pub queue_depth: u32,
}

/// What is between two stages now. An engine without separate stages reports what it has and 0 for the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffers {
    /// Witnesses being made.
    pub synth_in_flight: usize,
    /// Witnesses made and held for proving.
    pub provers_in_flight: usize,
    /// Auxiliary assignments alive.
    pub aux_in_flight: usize,
    /// Emptied prover shells alive.
    pub shells_in_flight: usize,
    /// Proofs started on a device and not collected.
    pub pending_handles: usize,
}

/// Waiting jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// Jobs that may wait at once; one more is answered 503.
    pub capacity: usize,
    /// Jobs waiting, by priority, each priority always present.
    pub depth_by_priority: BTreeMap<Priority, usize>,
    /// Seconds that the longest waiting job has waited; `null` when none waits.
    pub oldest_wait_seconds: Option<f64>,
}

/// Every job accepted since the start. `accepted` is the sum of all the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCounts {
    /// Accepted.
    pub accepted: u64,
    /// Waiting now.
    pub queued: u64,
    /// With a worker now.
    pub running: u64,
    /// Ended: proved.
    pub done: u64,
    /// Ended: failed.
    pub failed: u64,
    /// Ended: cancelled.
    pub cancelled: u64,
    /// Ended: handed back.
    pub handed_back: u64,
    /// Answers of ended jobs that can still be fetched (a gauge, not part of the sum).
    pub answers_kept: u64,
}

/// Sums over the proofs of one circuit that were done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageTotals {
    /// Proofs summed up.
    pub proofs: u64,
    /// Waiting in the queue, µs.
    pub queued_us: u64,
    /// Reading or making the proving key, µs; 0 when it was in memory.
    pub key_us: u64,
    /// Making the witness, µs.
    pub synthesis_us: u64,
    /// Computing the proof, µs.
    pub prove_us: u64,
    /// Verifying it before the answer, µs.
    pub verify_us: u64,
}

/// How long one job took, by stage. A stage that was not reached is `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTimings {
    /// Waiting in the queue, µs; so far, while it waits.
    pub queued_us: u64,
    /// Reading or making the proving key, µs.
    pub key_us: Option<u64>,
    /// Making the witness, µs.
    pub synthesis_us: Option<u64>,
    /// Computing the proof, µs.
    pub prove_us: Option<u64>,
    /// Verifying it before the answer, µs.
    pub verify_us: Option<u64>,
    /// From acceptance to the answer, µs; so far, while it has not ended.
    pub total_us: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page as cuzk writes it: none of our names, and all of its own.
    const CUZK: &str = r#"{"uptime_secs":12.5,
        "memory":{"total_bytes":429496729600,"used_bytes":75161927680,"available_bytes":354334801920},
        "synthesis":{"max_concurrent":18,"active":2},
        "pipelines":[{"job_id":"a","proof_kind":"porep-c2","started_secs_ago":3.5,"total_partitions":2,
            "partitions_done":1,"partitions":[{"index":0,"state":"done","synth_ms":1200,"gpu_ms":950},
            {"index":1,"state":"synth_done","synth_ms":1300,"gpu_ms":null}]}],
        "gpu_workers":[{"worker_id":0,"gpu_ordinal":0,"state":"proving","current_job":"a","current_partition":1,
            "busy_secs":0.25}],
        "allocations":{"srs":[{"circuit_id":"porep-32g","bytes":47000000000,"last_used_secs_ago":1.0,
            "evictable":false}],"pce":[]},
        "counters":{"total_completed":7,"total_failed":1,"completed_by_kind":{"porep-c2":7},
            "failed_by_kind":{"porep-c2":1},"queue_depth":4},
        "buffers":{"synth_in_flight":1,"provers_in_flight":2,"aux_in_flight":0,"shells_in_flight":0,
            "pending_handles":1}}"#;

    #[test]
    fn a_page_of_cuzk_is_read_with_the_same_type() {
        let page: PipelineStatus = serde_json::from_str(CUZK).unwrap();
        assert_eq!(page.pipelines[0].partitions[1].state, PartitionState::SynthDone);
        assert_eq!(page.memory.total_bytes, Some(400 << 30));
        assert_eq!((page.schema_version, page.quiesced, page.queue), (None, None, None));
    }

    #[test]
    fn every_name_of_cuzk_is_written_again() {
        fn names(value: &serde_json::Value, path: &str, into: &mut Vec<String>) {
            match value {
                serde_json::Value::Object(map) => {
                    for (key, value) in map {
                        let path = format!("{path}.{key}");
                        names(value, &path, into);
                        into.push(path);
                    }
                }
                serde_json::Value::Array(items) => {
                    items.iter().for_each(|item| names(item, &format!("{path}[]"), into));
                }
                _ => {}
            }
        }
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        names(&serde_json::from_str(CUZK).unwrap(), "", &mut theirs);
        let page: PipelineStatus = serde_json::from_str(CUZK).unwrap();
        names(&serde_json::to_value(&page).unwrap(), "", &mut ours);
        for name in theirs {
            assert!(ours.contains(&name), "{name} is lost");
        }
    }

    #[test]
    fn names_are_those_of_the_json() {
        for priority in Priority::ALL {
            assert_eq!(serde_json::to_value(priority).unwrap(), priority.name());
        }
        for state in JobState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        assert!(Priority::Critical > Priority::High && Priority::Normal > Priority::Low);
    }
}
