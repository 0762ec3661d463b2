//! Every job that the engine knows, and the rules of their lives. No threads, no clock: the moment is passed in.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sexton_control::prover::{Accepted, Cancellation, ProofRequest};
use sexton_model::SCHEMA_VERSION;
use sexton_model::pipeline::{JobState, StageTotals};

use super::backend::Stage;
use super::job::{Ending, Job, Sequence, fingerprint};
use super::queue::Queue;
use crate::statement::{CIRCUITS, Statement};

/// How much the engine holds for its clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Jobs that may wait.
    pub queue_jobs: usize,
    /// Answers of ended jobs that are kept; the one that ended first goes first.
    pub answers: usize,
}

/// Why a job was not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The id is that of another request.
    #[error("job {0} exists with another request: use another id")]
    Conflict(String),
    /// Admission is closed, and may open again.
    #[error("quiesced: no new jobs are taken for now")]
    Quiesced,
    /// Admission is closed for good.
    #[error("draining: this prover is about to exit")]
    Draining,
    /// The queue is full.
    #[error("the queue is full: {jobs} jobs wait")]
    Full {
        /// Jobs waiting.
        jobs: usize,
    },
}

/// Whether jobs are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Yes.
    Open,
    /// No, until it is opened again.
    Quiesced,
    /// Never again.
    Draining,
}

/// A job handed to a worker.
#[derive(Debug)]
pub struct Task {
    /// Which job.
    pub sequence: Sequence,
    /// Its id, for messages.
    pub id: String,
    /// What to prove.
    pub statement: Arc<Statement>,
}

/// Totals by circuit; every circuit is present from the start.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Jobs done.
    pub done: u64,
    /// Jobs failed.
    pub failed: u64,
    /// Jobs cancelled.
    pub cancelled: u64,
    /// Jobs handed back.
    pub handed_back: u64,
    /// Stage times of those done.
    pub stages: StageTotals,
}

/// The jobs, the queue and the totals. It holds private inputs, so it has no `Debug`.
pub struct Ledger {
    limits: Limits,
    gate: Gate,
    jobs: BTreeMap<Sequence, Job>,
    ids: HashMap<String, Sequence>,
    queue: Queue,
    deadlines: BTreeSet<(Instant, Sequence)>,
    /// In order of ending.
    ended: VecDeque<Sequence>,
    next: Sequence,
    totals: BTreeMap<&'static str, Totals>,
    last_error: Option<String>,
}

impl Ledger {
    /// An empty one, admission open.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            gate: Gate::Open,
            jobs: BTreeMap::new(),
            ids: HashMap::new(),
            queue: Queue::default(),
            deadlines: BTreeSet::new(),
            ended: VecDeque::new(),
            next: 0,
            totals: CIRCUITS.into_iter().map(|circuit| (circuit, Totals::default())).collect(),
            last_error: None,
        }
    }

    /// Takes a job under `id`, or finds it: the same request again is the same job, even while nothing is admitted.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub fn submit(
        &mut self,
        id: String,
        request: ProofRequest,
        statement: Statement,
        now: Instant,
    ) -> Result<(Accepted, bool), SubmitError> {
        if let Some(job) = self.job(&id) {
            if job.fingerprint != fingerprint(&request) {
                return Err(SubmitError::Conflict(id));
            }
            return Ok((Accepted { schema_version: SCHEMA_VERSION, id, state: job.state() }, false));
        }
        match self.gate {
            Gate::Open => {}
            Gate::Quiesced => return Err(SubmitError::Quiesced),
            Gate::Draining => return Err(SubmitError::Draining),
        }
        let jobs = self.queue.len();
        if jobs >= self.limits.queue_jobs {
            return Err(SubmitError::Full { jobs });
        }
        let sequence = self.next;
        self.next += 1;
        let job = Job::new(id.clone(), request, statement, now);
        self.queue.push(job.priority, sequence);
        self.deadlines.extend(job.deadline.map(|deadline| (deadline, sequence)));
        self.ids.insert(id.clone(), sequence);
        self.jobs.insert(sequence, job);
        Ok((Accepted { schema_version: SCHEMA_VERSION, id, state: JobState::Queued }, true))
    }

    /// Gives the most urgent waiting job to a worker.
    pub fn take(&mut self, now: Instant) -> Option<Task> {
        let sequence = self.queue.pop()?;
        let job = self.jobs.get_mut(&sequence)?;
        job.enter(Stage::Key, now);
        let statement = job.statement.clone()?;
        Some(Task { sequence, id: job.id.clone(), statement })
    }

    /// A worker begins a stage of its job.
    pub fn enter(&mut self, sequence: Sequence, stage: Stage, now: Instant) {
        if let Some(job) = self.jobs.get_mut(&sequence) {
            job.enter(stage, now);
        }
    }

    /// Ends a job. False when it had ended before (or is long forgotten): then the ending given here is discarded.
    pub fn end(&mut self, sequence: Sequence, ending: Ending, now: Instant) -> bool {
        let Some(job) = self.jobs.get_mut(&sequence) else { return false };
        let failure = match &ending {
            Ending::Failed(why) => Some(format!("{}: {why}", job.id)),
            _ => None,
        };
        if !job.end(ending, now) {
            return false;
        }
        self.queue.remove(job.priority, sequence);
        if let Some(deadline) = job.deadline {
            self.deadlines.remove(&(deadline, sequence));
        }
        self.last_error = failure.or(self.last_error.take());
        let totals = self.totals.entry(job.circuit).or_default();
        match job.state() {
            JobState::Done => {
                totals.done += 1;
                let timings = job.timings(now);
                let stages = &mut totals.stages;
                stages.proofs += 1;
                stages.queued_us += timings.queued_us;
                stages.key_us += timings.key_us.unwrap_or(0);
                stages.synthesis_us += timings.synthesis_us.unwrap_or(0);
                stages.prove_us += timings.prove_us.unwrap_or(0);
                stages.verify_us += timings.verify_us.unwrap_or(0);
            }
            JobState::Failed => totals.failed += 1,
            JobState::HandedBack => totals.handed_back += 1,
            _ => totals.cancelled += 1,
        }
        self.ended.push_back(sequence);
        while self.ended.len() > self.limits.answers {
            let Some(forgotten) = self.ended.pop_front() else { break };
            if let Some(job) = self.jobs.remove(&forgotten) {
                self.ids.remove(&job.id);
            }
        }
        true
    }

    /// Cancels a job, wherever it is. `None` when there is no such job.
    pub fn cancel(&mut self, id: &str, now: Instant) -> Option<Cancellation> {
        let sequence = *self.ids.get(id)?;
        let was = self.jobs.get(&sequence)?.state();
        let cancelled = self.end(sequence, Ending::Cancelled, now);
        let job = self.jobs.get_mut(&sequence);
        // With `answers: 0` the job is forgotten by its ending.
        let state = job.map_or(JobState::Cancelled, |job| {
            job.collected = true;
            job.state()
        });
        let result_discarded = cancelled && was != JobState::Queued;
        Some(Cancellation { schema_version: SCHEMA_VERSION, id: id.to_owned(), state, was, result_discarded })
    }

    /// Fails every job whose deadline has come; says which, and when the next one comes.
    pub fn expire(&mut self, now: Instant) -> (Vec<(String, JobState)>, Option<Instant>) {
        let mut expired = Vec::new();
        while let Some(&(deadline, sequence)) = self.deadlines.first() {
            if deadline > now {
                return (expired, Some(deadline));
            }
            self.deadlines.pop_first();
            let Some(job) = self.jobs.get(&sequence) else { continue };
            let (id, was) = (job.id.clone(), job.state());
            let allowed = deadline.saturating_duration_since(job.accepted_at());
            let why = format!("deadline of {} s passed while {}", allowed.as_secs_f64(), was.name());
            if self.end(sequence, Ending::Failed(why), now) {
                expired.push((id, was));
            }
        }
        (expired, None)
    }

    /// Closes admission, or opens it again. False, and nothing changes, once it drains.
    pub fn quiesce(&mut self, closed: bool) -> bool {
        if self.gate == Gate::Draining {
            return false;
        }
        self.gate = if closed { Gate::Quiesced } else { Gate::Open };
        true
    }

    /// Closes admission for good and hands back what waits; with `hasten` also what runs. Says which jobs.
    pub fn drain(&mut self, hasten: bool, now: Instant) -> Vec<String> {
        self.gate = Gate::Draining;
        let mut handed_back = Vec::new();
        while let Some(sequence) = self.queue.pop() {
            handed_back.push(sequence);
        }
        if hasten {
            handed_back.extend(self.running());
        }
        let ended = handed_back.into_iter().filter_map(|sequence| {
            let id = self.jobs.get(&sequence)?.id.clone();
            self.end(sequence, Ending::HandedBack, now).then_some(id)
        });
        ended.collect()
    }

    /// The job of that id.
    #[must_use]
    pub fn job(&self, id: &str) -> Option<&Job> {
        self.jobs.get(self.ids.get(id)?)
    }

    /// As [`job`](Self::job), to mark it.
    pub fn job_mut(&mut self, id: &str) -> Option<&mut Job> {
        self.jobs.get_mut(self.ids.get(id)?)
    }

    /// Jobs that have not ended, in order of arrival.
    pub fn alive(&self) -> impl Iterator<Item = (Sequence, &Job)> {
        self.jobs.iter().filter(|(_, job)| !job.state().is_ended()).map(|(sequence, job)| (*sequence, job))
    }

    /// Until when answers should wait for their clients: the last ending whose answer nobody has fetched, plus
    /// `linger`. `None` when there is none left to wait for.
    #[must_use]
    pub fn uncollected_until(&self, linger: Duration, now: Instant) -> Option<Instant> {
        let ends = self.ended.iter().rev().filter_map(|sequence| self.jobs.get(sequence));
        let last = ends.filter(|job| !job.collected).filter_map(Job::ended_at).next()?;
        Some(last + linger).filter(|until| *until > now)
    }

    /// Whether jobs are taken.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.gate
    }

    /// The jobs that wait.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// How long the longest waiting job has waited.
    #[must_use]
    pub fn oldest_wait(&self, now: Instant) -> Option<Duration> {
        let job = self.jobs.get(&self.queue.oldest()?)?;
        Some(now.saturating_duration_since(job.accepted_at()))
    }

    /// Jobs that a worker has in hand and that have not ended.
    #[must_use]
    pub fn running(&self) -> Vec<Sequence> {
        self.alive()
            .filter(|(_, job)| job.state() != JobState::Queued)
            .map(|(sequence, _)| sequence)
            .collect()
    }

    /// How much is held.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Jobs taken since the start.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.next
    }

    /// Answers that can still be fetched.
    #[must_use]
    pub fn answers_kept(&self) -> usize {
        self.ended.len()
    }

    /// Totals by circuit.
    #[must_use]
    pub fn totals(&self) -> &BTreeMap<&'static str, Totals> {
        &self.totals
    }

    /// The last failure, `id: reason`.
    #[must_use]
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }
}

/// The id of a request is 1 to 128 of these characters, so that it can stand in paths, logs and file names.
#[must_use]
pub fn is_valid_id(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=128).contains(&id.len()) && id.bytes().all(allowed) && id.bytes().any(|byte| byte != b'.')
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
