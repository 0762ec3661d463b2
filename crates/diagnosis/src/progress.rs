//! Whether a prover that has work gets on with it.
//!
//! A hung prover answers pings: what tells is the time since the last partition ended, while work is in flight. What
//! counts, and what does not, is chosen so that one rule reads our engine and cuzk:
//!
//! * Progress is a rise of any job's `partitions_done`, or a change of `counters.total_completed`. Nothing else: states of
//!   partitions, buffers and failures go on changing in an engine whose GPU is stuck.
//! * A job is in flight while some of its partitions are not done and none has failed. cuzk lists failed jobs for ever.
//! * A job that failed on cuzk's GPU is listed for ever too, *without* a failed partition: that partition is shown as done,
//!   and what was still to come stays as it was. So a stall says whether any worker has anything in hand; where none has,
//!   its jobs are told once and then left out until they change.
//! * Only time that was observed counts: a supervisor that was frozen together with its prover has seen no stall.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::exit::InFlight;
use sexton_model::pipeline::{PartitionState, PipelineJob, PipelineStatus, WorkerState};

/// The most jobs that are named, in a stall and in an exit record.
pub const JOBS_MAX: usize = 256;

/// When to speak up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// So long without progress is a stall; `None`: never.
    pub stall: Option<Duration>,
    /// So long without an answer is silence.
    pub silence: Duration,
    /// Between two looks no more time than this is taken for observed.
    pub gap: Duration,
}

/// What has changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// No partition has ended for so long, while there was work.
    Stalled(Stall),
    /// A partition has ended, or the work is gone, after a stall.
    Moving {
        /// How long it had stood still, seconds.
        stalled_seconds: f64,
        /// Jobs in flight now.
        in_flight: usize,
    },
    /// Its status has not been readable for so long.
    Silent {
        /// For how long, seconds.
        seconds: f64,
        /// What came of the last question.
        why: String,
    },
    /// It answers again.
    Answering {
        /// How long it had not, seconds.
        silent_seconds: f64,
    },
}

/// Work without progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Stall {
    /// For how long, seconds.
    pub seconds: f64,
    /// Whether any worker has something in hand. Where none has, either the engine's dispatcher is stuck, or the jobs
    /// failed long ago and are still listed.
    pub in_hand: bool,
    /// The jobs, at most [`JOBS_MAX`].
    pub in_flight: Vec<InFlight>,
}

/// Follows one run.
#[derive(Debug, Clone)]
pub struct Progress {
    limits: Limits,
    looked_at: Option<Duration>,
    completed: Option<u64>,
    done: BTreeMap<String, usize>,
    still: Duration,
    silent: Duration,
    stalled: bool,
    said_silent: bool,
    in_flight: Vec<InFlight>,
    /// Jobs of a stall in which no worker had anything, as they were.
    told: BTreeMap<String, Vec<PartitionState>>,
}

impl Progress {
    /// Nothing is known yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            looked_at: None,
            completed: None,
            done: BTreeMap::new(),
            still: Duration::ZERO,
            silent: Duration::ZERO,
            stalled: false,
            said_silent: false,
            in_flight: Vec::new(),
            told: BTreeMap::new(),
        }
    }

    /// Jobs in flight when that was last known, at most [`JOBS_MAX`].
    pub fn in_flight(&self) -> &[InFlight] {
        &self.in_flight
    }

    /// The prover said this at `now`, on any clock that does not go back.
    pub fn answered(&mut self, now: Duration, status: &PipelineStatus) -> Vec<Change> {
        let mut changes = Vec::new();
        self.pass(now);
        if std::mem::take(&mut self.said_silent) {
            changes.push(Change::Answering { silent_seconds: self.silent.as_secs_f64() });
        }
        self.silent = Duration::ZERO;

        let in_hand = is_working(status);
        self.told.retain(|id, states| {
            status.pipelines.iter().any(|job| job.job_id == *id && states_of(job) == *states)
        });
        let jobs: Vec<&PipelineJob> = status
            .pipelines
            .iter()
            .filter(|job| is_open(job) && !self.told.contains_key(&job.job_id))
            .collect();
        let moved = self.note_progress(status);
        self.in_flight = jobs.iter().take(JOBS_MAX).map(|job| named(job)).collect();
        if moved || jobs.is_empty() {
            if std::mem::take(&mut self.stalled) {
                let stalled_seconds = self.still.as_secs_f64();
                changes.push(Change::Moving { stalled_seconds, in_flight: jobs.len() });
            }
            self.still = Duration::ZERO;
        } else if !self.stalled && self.limits.stall.is_some_and(|limit| self.still >= limit) {
            let seconds = self.still.as_secs_f64();
            changes.push(Change::Stalled(Stall { seconds, in_hand, in_flight: self.in_flight.clone() }));
            if in_hand {
                self.stalled = true;
            } else {
                self.told.extend(jobs.iter().map(|job| (job.job_id.clone(), states_of(job))));
                self.still = Duration::ZERO;
            }
        }
        changes
    }

    /// The prover did not say anything useful at `now`.
    pub fn unanswered(&mut self, now: Duration, why: &str) -> Option<Change> {
        let passed = self.pass(now);
        self.silent += passed;
        let silent = self.silent >= self.limits.silence;
        (silent && !std::mem::replace(&mut self.said_silent, silent))
            .then(|| Change::Silent { seconds: self.silent.as_secs_f64(), why: why.to_owned() })
    }

    /// Lets time pass, as far as it was observed.
    fn pass(&mut self, now: Duration) -> Duration {
        let before = self.looked_at.replace(now).unwrap_or(now);
        let passed = now.saturating_sub(before).min(self.limits.gap);
        if !self.in_flight.is_empty() {
            self.still += passed;
        }
        passed
    }

    fn note_progress(&mut self, status: &PipelineStatus) -> bool {
        let completed = status.counters.total_completed;
        let done: BTreeMap<String, usize> =
            status.pipelines.iter().map(|job| (job.job_id.clone(), job.partitions_done)).collect();
        let rose = |(id, done): (&String, &usize)| *done > self.done.get(id).copied().unwrap_or(0);
        let first = self.completed.is_none();
        let moved = self.completed != Some(completed) || done.iter().any(rose);
        self.completed = Some(completed);
        self.done = done;
        moved && !first
    }
}

/// Whether the job has not ended: some partitions are not done, and none has failed.
pub fn is_open(job: &PipelineJob) -> bool {
    job.partitions_done < job.total_partitions
        && !job.partitions.iter().any(|partition| partition.state == PartitionState::Failed)
}

/// Whether anything is being computed: a partition in synthesis or on a device, a worker with a job in hand.
pub fn is_working(status: &PipelineStatus) -> bool {
    let in_work = |state| matches!(state, PartitionState::Synthesizing | PartitionState::Gpu);
    let open = status.pipelines.iter().filter(|job| is_open(job));
    open.flat_map(|job| &job.partitions).any(|partition| in_work(partition.state))
        || status.gpu_workers.iter().any(|worker| worker.state == WorkerState::Proving)
        || status.cpu_workers.iter().flatten().any(|worker| worker.state == WorkerState::Proving)
}

/// The states of its partitions.
pub(crate) fn states_of(job: &PipelineJob) -> Vec<PartitionState> {
    job.partitions.iter().map(|partition| partition.state).collect()
}

/// As an exit record has it.
pub fn named(job: &PipelineJob) -> InFlight {
    InFlight {
        id: job.job_id.clone(),
        circuit: job.circuit.clone().unwrap_or_else(|| job.proof_kind.clone()),
        partitions_total: u32::try_from(job.total_partitions).unwrap_or(u32::MAX),
        partitions_done: u32::try_from(job.partitions_done).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
pub(crate) mod tests;
