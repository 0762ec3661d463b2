//! One job from its acceptance to its one ending.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sexton_control::prover::{ProofAnswer, ProofFormat, ProofRequest};
use sexton_model::SCHEMA_VERSION;
use sexton_model::pipeline::{JobState, JobTimings, Priority};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::backend::{Proved, Stage};
use crate::statement::Statement;

/// Number of a job in the life of an engine, from 0, never given out twice.
pub type Sequence = u64;

/// SHA-256 of a request: what tells "sent again" from "another request under the same id".
pub type Fingerprint = [u8; 32];

/// The fingerprint of a request. The order of names and the white space of its body do not count.
#[must_use]
pub fn fingerprint(request: &ProofRequest) -> Fingerprint {
    let value = serde_json::to_value(request).unwrap_or_default();
    Sha256::digest(value.to_string().as_bytes()).into()
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// Proved and verified.
    Done(Box<Proved>),
    /// Not proved: one line why.
    Failed(String),
    /// The client asked for it.
    Cancelled,
    /// The engine drains and did not prove it.
    HandedBack,
}

impl Ending {
    /// The state that a job has after it.
    #[must_use]
    pub fn state(&self) -> JobState {
        match self {
            Self::Done(_) => JobState::Done,
            Self::Failed(_) => JobState::Failed,
            Self::Cancelled => JobState::Cancelled,
            Self::HandedBack => JobState::HandedBack,
        }
    }
}

/// A job. Its state changes by [`enter`](Self::enter) and [`end`](Self::end) only, and ends once.
/// It holds private inputs, so it has no `Debug`.
pub struct Job {
    /// Its id.
    pub id: String,
    /// Tells a repeated request from another one.
    pub fingerprint: Fingerprint,
    /// The circuit with its size.
    pub shape: String,
    /// The circuit's name.
    pub circuit: &'static str,
    /// Its priority.
    pub priority: Priority,
    /// When nobody wants the proof any more.
    pub deadline: Option<Instant>,
    /// What is to be proved; gone when it ended.
    pub statement: Option<Arc<Statement>>,
    /// True once its answer was fetched after it ended.
    pub collected: bool,
    /// The request as it came; kept while it may have to be handed back.
    request: Option<ProofRequest>,
    state: watch::Sender<JobState>,
    before_end: JobState,
    ending: Option<Ending>,
    accepted_at: Instant,
    ended_at: Option<Instant>,
    stage: Option<(Stage, Instant)>,
    spent: JobTimings,
}

impl Job {
    /// A job that was just accepted.
    #[must_use]
    pub fn new(id: String, request: ProofRequest, statement: Statement, now: Instant) -> Self {
        let shape = statement.shape();
        Self {
            id,
            fingerprint: fingerprint(&request),
            shape: shape.to_string(),
            circuit: shape.circuit(),
            priority: request.priority,
            deadline: request.deadline_seconds.map(|seconds| now + Duration::from_secs_f64(seconds)),
            statement: Some(Arc::new(statement)),
            collected: false,
            request: Some(request),
            state: watch::Sender::new(JobState::Queued),
            before_end: JobState::Queued,
            ending: None,
            accepted_at: now,
            ended_at: None,
            stage: None,
            spent: JobTimings::default(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn state(&self) -> JobState {
        *self.state.borrow()
    }

    /// Tells of every change of its state.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<JobState> {
        self.state.subscribe()
    }

    /// When it was accepted.
    #[must_use]
    pub fn accepted_at(&self) -> Instant {
        self.accepted_at
    }

    /// When it ended.
    #[must_use]
    pub fn ended_at(&self) -> Option<Instant> {
        self.ended_at
    }

    /// The reason of a failure.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        match &self.ending {
            Some(Ending::Failed(why)) => Some(why),
            _ => None,
        }
    }

    /// A worker begins a stage. Nothing changes when the job has ended meanwhile.
    pub fn enter(&mut self, stage: Stage, now: Instant) {
        if self.ending.is_some() {
            return;
        }
        self.close_stage(now);
        self.stage = Some((stage, now));
        self.state.send_replace(match stage {
            Stage::Key | Stage::Synthesis => JobState::Synthesizing,
            Stage::Prove | Stage::Verify => JobState::Proving,
        });
    }

    /// Ends it. False, and nothing changes, when it had ended before: a job is answered once.
    pub fn end(&mut self, ending: Ending, now: Instant) -> bool {
        if self.ending.is_some() {
            return false;
        }
        self.close_stage(now);
        self.before_end = self.state();
        self.ended_at = Some(now);
        self.statement = None;
        if ending != Ending::HandedBack {
            self.request = None;
        }
        let state = ending.state();
        self.ending = Some(ending);
        self.state.send_replace(state);
        true
    }

    /// How long it took, or has taken so far.
    #[must_use]
    pub fn timings(&self, now: Instant) -> JobTimings {
        let mut timings = self.spent.clone();
        if let Some((stage, since)) = self.stage {
            *slot(&mut timings, stage) = Some(micros(since, now));
        }
        let until = self.ended_at.unwrap_or(now);
        if self.state() == JobState::Queued {
            timings.queued_us = micros(self.accepted_at, until);
        }
        timings.total_us = micros(self.accepted_at, until);
        timings
    }

    /// What a client is told.
    #[must_use]
    pub fn answer(&self, format: ProofFormat, now: Instant) -> ProofAnswer {
        let proved = match &self.ending {
            Some(Ending::Done(proved)) => Some(proved),
            _ => None,
        };
        let document = proved.map(|proved| proved.document(format));
        ProofAnswer {
            schema_version: SCHEMA_VERSION,
            id: self.id.clone(),
            circuit: self.shape.clone(),
            priority: self.priority,
            state: self.state(),
            format: proved.map(|_| format),
            proof: document.map(|document| document.proof.clone()),
            public: document.map(|document| document.public.clone()),
            key_id: proved.map(|proved| proved.key_id.clone()),
            development_key: proved.map(|proved| proved.development_key),
            error: self.error(),
            request: match self.ending {
                Some(Ending::HandedBack) => self.request.clone(),
                _ => None,
            },
            timings: self.timings(now),
        }
    }

    fn error(&self) -> Option<String> {
        match self.ending.as_ref()? {
            Ending::Done(_) => None,
            Ending::Failed(why) => Some(why.clone()),
            Ending::Cancelled => Some(format!("cancelled by a client while {}", self.before_end.name())),
            Ending::HandedBack => {
                Some(format!("the prover shut down while this was {}", self.before_end.name()))
            }
        }
    }

    fn close_stage(&mut self, now: Instant) {
        match self.stage.take() {
            Some((stage, since)) => *slot(&mut self.spent, stage) = Some(micros(since, now)),
            None => self.spent.queued_us = micros(self.accepted_at, now),
        }
    }
}

fn slot(timings: &mut JobTimings, stage: Stage) -> &mut Option<u64> {
    match stage {
        Stage::Key => &mut timings.key_us,
        Stage::Synthesis => &mut timings.synthesis_us,
        Stage::Prove => &mut timings.prove_us,
        Stage::Verify => &mut timings.verify_us,
    }
}

fn micros(since: Instant, until: Instant) -> u64 {
    u64::try_from(until.saturating_duration_since(since).as_micros()).unwrap_or(u64::MAX)
}
