//! What `/status` says: a picture of the engine at one moment.

use std::collections::BTreeMap;
use std::time::Instant;

use sexton_model::SCHEMA_VERSION;
use sexton_model::pipeline::{
    Allocations, Buffers, Counters, CpuWorker, EngineState, JobCounts, JobState, MemoryStatus,
    PartitionState, PipelineJob, PipelinePartition, PipelineStatus, QueueStatus, SynthesisStatus,
    WorkerState,
};

use super::job::Job;
use super::ledger::{Gate, Ledger};
use super::{Engine, State};

const WITH_BUDGET: &str = "used: proving keys by their size in memory, and an estimate for each proof in progress; \
                           not measured, and not yet enforced";
const WITHOUT_BUDGET: &str = "no budget: SEXTON_MEMORY_BUDGET_BYTES is not set; used: proving keys by their size in \
                              memory, and an estimate for each proof in progress";

impl Engine {
    /// The engine now.
    #[must_use]
    pub fn status(&self) -> PipelineStatus {
        let shared = &self.shared;
        // The backend has locks of its own: it is asked before ours is taken.
        let keys = shared.backend.resident();
        let state = shared.lock();
        let now = Instant::now();
        let ledger = &state.ledger;
        let in_progress = state.workers.iter().filter_map(|slot| slot.job.as_ref());
        let working: u64 = in_progress.map(|(_, shape, _)| crate::memory::working_bytes(*shape)).sum();
        let used_bytes = working + keys.iter().map(|key| key.bytes).sum::<u64>();
        let total_bytes = shared.settings.budget_bytes;
        let synthesizing = ledger.alive().filter(|(_, job)| job.state() == JobState::Synthesizing).count();
        let proving = ledger.alive().filter(|(_, job)| job.state() == JobState::Proving).count();
        PipelineStatus {
            schema_version: Some(SCHEMA_VERSION),
            uptime_secs: now.saturating_duration_since(shared.started_at).as_secs_f64(),
            memory: MemoryStatus {
                total_bytes,
                used_bytes,
                available_bytes: total_bytes.map(|total| total.saturating_sub(used_bytes)),
                note: Some(if total_bytes.is_some() { WITH_BUDGET } else { WITHOUT_BUDGET }.to_owned()),
            },
            synthesis: SynthesisStatus {
                max_concurrent: u32::try_from(state.workers.len()).unwrap_or(u32::MAX),
                active: u32::try_from(synthesizing).unwrap_or(u32::MAX),
            },
            pipelines: ledger.alive().map(|(_, job)| pipeline(job, now)).collect(),
            gpu_workers: Vec::new(),
            allocations: Allocations { srs: keys, pce: Vec::new() },
            counters: counters(ledger),
            buffers: Buffers {
                synth_in_flight: synthesizing,
                provers_in_flight: proving,
                ..Buffers::default()
            },
            state: Some(state.engine_state()),
            quiesced: Some(ledger.gate() != Gate::Open),
            run_id: shared.settings.run_id.clone(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            queue: Some(QueueStatus {
                capacity: ledger.limits().queue_jobs,
                depth_by_priority: ledger.queue().depth_by_priority(),
                oldest_wait_seconds: ledger.oldest_wait(now).map(|wait| wait.as_secs_f64()),
            }),
            cpu_workers: Some(cpu_workers(&state, now)),
            jobs: Some(job_counts(ledger)),
            timings: Some(by_circuit(ledger, |totals| totals.stages.clone())),
            last_error: ledger.last_error().map(str::to_owned),
        }
    }

    /// True while the keys asked for at the start are in memory and jobs are taken.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.shared.lock().engine_state() == EngineState::Ready
    }
}

fn pipeline(job: &Job, now: Instant) -> PipelineJob {
    let timings = job.timings(now);
    let proving = timings.prove_us.map(|prove_us| (prove_us + timings.verify_us.unwrap_or(0)) / 1_000);
    PipelineJob {
        job_id: job.id.clone(),
        proof_kind: job.circuit.to_owned(),
        started_secs_ago: now.saturating_duration_since(job.accepted_at()).as_secs_f64(),
        total_partitions: 1,
        partitions_done: 0,
        partitions: vec![PipelinePartition {
            index: 0,
            state: match job.state() {
                JobState::Synthesizing => PartitionState::Synthesizing,
                JobState::Proving => PartitionState::Gpu,
                _ => PartitionState::Pending,
            },
            synth_ms: timings.synthesis_us.map(|micros| micros / 1_000),
            gpu_ms: proving,
        }],
        circuit: Some(job.shape.clone()),
        priority: Some(job.priority),
    }
}

fn counters(ledger: &Ledger) -> Counters {
    let completed_by_kind = by_circuit(ledger, |totals| totals.done);
    let failed_by_kind = by_circuit(ledger, |totals| totals.failed);
    Counters {
        total_completed: completed_by_kind.values().sum(),
        total_failed: failed_by_kind.values().sum(),
        completed_by_kind,
        failed_by_kind,
        queue_depth: u32::try_from(ledger.queue().len()).unwrap_or(u32::MAX),
    }
}

fn by_circuit<T>(ledger: &Ledger, value: impl Fn(&super::ledger::Totals) -> T) -> BTreeMap<String, T> {
    ledger.totals().iter().map(|(circuit, totals)| ((*circuit).to_owned(), value(totals))).collect()
}

fn job_counts(ledger: &Ledger) -> JobCounts {
    let totals = || ledger.totals().values();
    JobCounts {
        accepted: ledger.accepted(),
        queued: ledger.queue().len() as u64,
        running: ledger.running().len() as u64,
        done: totals().map(|totals| totals.done).sum(),
        failed: totals().map(|totals| totals.failed).sum(),
        cancelled: totals().map(|totals| totals.cancelled).sum(),
        handed_back: totals().map(|totals| totals.handed_back).sum(),
        answers_kept: ledger.answers_kept() as u64,
    }
}

fn cpu_workers(state: &State, now: Instant) -> Vec<CpuWorker> {
    let worker = |(worker_id, slot): (u32, &super::worker::Slot)| CpuWorker {
        worker_id,
        state: if slot.job.is_some() { WorkerState::Proving } else { WorkerState::Idle },
        current_job: slot.job.as_ref().map(|(id, _, _)| id.clone()),
        busy_secs: slot.job.as_ref().map(|(_, _, since)| now.saturating_duration_since(*since).as_secs_f64()),
    };
    (0..).zip(&state.workers).map(worker).collect()
}
