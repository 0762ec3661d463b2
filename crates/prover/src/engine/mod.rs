//! The engine: takes jobs, proves them on its workers, answers each exactly once.
//!
//! ```text
//! submit → Ledger (admission, ids) → Queue (priority, sequence) → worker → Backend → Ledger (the one ending) → answer
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`queue`] | the order in which waiting jobs are taken |
//! | [`job`] | one job from its acceptance to its one ending |
//! | [`ledger`] | every job, and the rules of their lives: pure, the moment is passed in |
//! | [`worker`] | the threads that prove |
//! | [`backend`] | what makes the proofs |
//! | [`status`] | what `/status` says |
//!
//! One mutex holds the ledger. Nothing slow happens under it: proving, verifying, reading keys and writing messages are
//! done outside.

pub mod backend;
pub mod job;
pub mod ledger;
pub mod queue;
pub mod status;
pub mod worker;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sexton_control::prover::{Accepted, Admission, Cancellation, ProofAnswer, ProofFormat, ProofRequest};
use sexton_model::SCHEMA_VERSION;
use sexton_model::pipeline::{EngineState, JobState};
use tokio::sync::watch;

use self::backend::Backend;
use self::ledger::{Gate, Ledger, Limits, SubmitError, is_valid_id};
use crate::log;
use crate::statement::{Statement, StatementError};

/// The farthest deadline that a request may have, in seconds: 30 days.
pub const DEADLINE_MAX_SECONDS: f64 = 30.0 * 86_400.0;

/// What the engine is given at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Worker threads, at least 1. One proof uses every core in its long phases already.
    pub workers: usize,
    /// How much is held for clients.
    pub limits: Limits,
    /// `SEXTON_MEMORY_BUDGET_BYTES`.
    pub budget_bytes: Option<u64>,
    /// `SEXTON_RUN_ID`.
    pub run_id: Option<String>,
}

/// Why a request was refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The id is not usable.
    #[error("id {0:?}: use 1 to 128 of A-Z a-z 0-9 . _ : -, not only dots")]
    Id(String),
    /// The deadline is not usable.
    #[error("deadline_seconds {0}: use a number above 0, at most 2592000 (30 days)")]
    Deadline(f64),
    /// The circuit or its inputs are wrong.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// The job was not taken.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Not asked for.
    None,
    /// Jobs still run.
    Running,
    /// All ended; answers wait for their clients until this moment at most.
    Answering(Instant),
    /// Nothing is left to wait for.
    Over,
}

/// The engine. Cheap to clone; every clone is the same engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes workers: a job waits, or the engine drains.
    work: Condvar,
    /// Tells of every change that a drain or a deadline may wait for.
    changed: watch::Sender<()>,
    backend: Arc<dyn Backend>,
    settings: Settings,
    started_at: Instant,
}

pub(crate) struct State {
    pub(crate) ledger: Ledger,
    pub(crate) workers: Vec<worker::Slot>,
    /// Keys asked for at the start are not in memory yet.
    pub(crate) starting: bool,
}

impl Engine {
    /// Starts the workers. With `starting` the engine is not ready before [`Engine::started`].
    ///
    /// # Errors
    /// When a thread cannot be made.
    pub fn start(settings: Settings, backend: Arc<dyn Backend>, starting: bool) -> std::io::Result<Self> {
        let workers = settings.workers.max(1);
        let state = State {
            ledger: Ledger::new(settings.limits),
            workers: vec![worker::Slot::default(); workers],
            starting,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            work: Condvar::new(),
            changed: watch::Sender::new(()),
            backend,
            settings,
            started_at: Instant::now(),
        });
        for number in 0..workers {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name(format!("prover-{number}"))
                .spawn(move || worker::run(&shared, number))?;
        }
        Ok(Self { shared })
    }

    /// The keys asked for at the start are in memory.
    pub fn started(&self) {
        self.shared.lock().starting = false;
    }

    /// Takes a job. Files that it names are read when `files_allowed`.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn submit(&self, request: ProofRequest, files_allowed: bool) -> Result<Accepted, Refused> {
        let id = match &request.id {
            Some(id) if is_valid_id(id) => id.clone(),
            Some(id) => return Err(Refused::Id(id.chars().take(128).collect())),
            None => random_id()?,
        };
        if let Some(seconds) = request.deadline_seconds
            && !(seconds > 0.0 && seconds <= DEADLINE_MAX_SECONDS)
        {
            return Err(Refused::Deadline(seconds));
        }
        let statement = Statement::from_json(&request.circuit, &request.inputs, files_allowed)?;
        let shape = statement.shape();
        let priority = request.priority.name();
        let submitted = self.shared.lock().ledger.submit(id, request, statement, Instant::now());
        let (accepted, new) = submitted?;
        if new {
            self.shared.work.notify_one();
            self.shared.changed.send_replace(());
            log::event(
                "job_accepted",
                format_args!("id={} circuit={shape} priority={priority}", accepted.id),
            );
        }
        Ok(accepted)
    }

    /// Tells of every state of a job from now on. `None` when there is no such job.
    #[must_use]
    pub fn watch(&self, id: &str) -> Option<watch::Receiver<JobState>> {
        self.shared.lock().ledger.job(id).map(job::Job::watch)
    }

    /// Where a job is and its answer. `None` when there is no such job, or it ended so long ago that it is forgotten.
    #[must_use]
    pub fn answer(&self, id: &str, format: ProofFormat) -> Option<ProofAnswer> {
        let mut state = self.shared.lock();
        let job = state.ledger.job_mut(id)?;
        let answer = job.answer(format, Instant::now());
        let first =
            answer.state.is_ended() && !std::mem::replace(&mut job.collected, answer.state.is_ended());
        drop(state);
        if first {
            self.shared.changed.send_replace(());
        }
        Some(answer)
    }

    /// Cancels a job. `None` when there is no such job.
    #[must_use]
    pub fn cancel(&self, id: &str) -> Option<Cancellation> {
        let cancellation = self.shared.lock().ledger.cancel(id, Instant::now())?;
        if cancellation.state == JobState::Cancelled && !cancellation.was.is_ended() {
            self.shared.changed.send_replace(());
            log::event("job_cancelled", format_args!("id={id} was={}", cancellation.was.name()));
        }
        Some(cancellation)
    }

    /// Closes admission, or opens it again.
    ///
    /// # Errors
    /// The admission as it stays, when the engine drains: that is for good.
    pub fn quiesce(&self, closed: bool) -> Result<Admission, Admission> {
        let mut state = self.shared.lock();
        let changed = state.ledger.quiesce(closed);
        let admission = state.admission();
        drop(state);
        if !changed {
            return Err(admission);
        }
        log::event(
            if closed { "quiesce" } else { "unquiesce" },
            format_args!("queued={} running={}", admission.queued, admission.running),
        );
        Ok(admission)
    }

    /// Closes admission for good and hands back what waits; with `hasten` also what runs.
    pub fn drain(&self, reason: &str, hasten: bool) -> Admission {
        let mut state = self.shared.lock();
        let handed_back = state.ledger.drain(hasten, Instant::now());
        let admission = state.admission();
        drop(state);
        self.shared.work.notify_all();
        self.shared.changed.send_replace(());
        for id in &handed_back {
            log::event("job_handed_back", format_args!("id={id}"));
        }
        log::event(
            if hasten { "hasten" } else { "drain" },
            format_args!("reason={reason} running={} handed_back={}", admission.running, handed_back.len()),
        );
        admission
    }

    /// How far a drain is; answers that nobody has fetched are kept for `linger` after the job's end.
    #[must_use]
    pub fn drain_progress(&self, linger: Duration) -> Drain {
        let state = self.shared.lock();
        if state.ledger.gate() != Gate::Draining {
            return Drain::None;
        }
        if state.ledger.alive().next().is_some() {
            return Drain::Running;
        }
        match state.ledger.uncollected_until(linger, Instant::now()) {
            Some(until) => Drain::Answering(until),
            None => Drain::Over,
        }
    }

    /// True once a drain was asked for.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.shared.lock().ledger.gate() == Gate::Draining
    }

    /// Whether jobs are taken.
    #[must_use]
    pub fn admission(&self) -> Admission {
        self.shared.lock().admission()
    }

    /// Fails the jobs whose deadline has come. Says when the next one comes.
    pub fn expire(&self) -> Option<Instant> {
        let (expired, next) = self.shared.lock().ledger.expire(Instant::now());
        for (id, was) in &expired {
            log::event("job_failed", format_args!("id={id} error=\"deadline passed while {}\"", was.name()));
        }
        if !expired.is_empty() {
            self.shared.changed.send_replace(());
        }
        next
    }

    /// Tells of every change that a drain or a deadline may wait for.
    #[must_use]
    pub fn changed(&self) -> watch::Receiver<()> {
        self.shared.changed.subscribe()
    }
}

impl Shared {
    /// The state. A worker that panicked while it held the lock has left it consistent: every change of the ledger is
    /// made by one call, and a call does not panic half way.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn admission(&self) -> Admission {
        let gate = self.ledger.gate();
        Admission {
            schema_version: SCHEMA_VERSION,
            state: self.engine_state(),
            quiesced: gate != Gate::Open,
            queued: self.ledger.queue().len() as u64,
            running: self.ledger.running().len() as u64,
        }
    }

    pub(crate) fn engine_state(&self) -> EngineState {
        match self.ledger.gate() {
            Gate::Draining => EngineState::Draining,
            _ if self.starting => EngineState::Starting,
            Gate::Quiesced => EngineState::Quiesced,
            Gate::Open => EngineState::Ready,
        }
    }
}

fn random_id() -> Result<String, StatementError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| StatementError::Random(error.to_string()))?;
    Ok(format!("proof-{}", hex::encode(bytes)))
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
