//! The supervisor's control socket: `control.sock` in the runtime folder, mode 0600.
//!
//! Every answer that is not 2xx carries a [`crate::prover::Refusal`].

use serde::{Deserialize, Serialize};
use sexton_model::exit::ExitRecord;
use sexton_model::run::RunRecord;
use sexton_model::status::SupervisorStatus;

/// `GET`: [`SupervisorStatus`].
pub const STATUS: &str = "/v1/status";
/// `GET ?limit=N`: [`RunList`], newest first, at most N of them (1 to [`LIMIT_MAX`], 100 by default).
///
/// A record is listed without its `last_words` and `evidence`, which are empty there: [`run_path`] has them.
pub const RUNS: &str = "/v1/runs";
/// `GET ?after=SEQ&limit=N`: [`EventList`], oldest first, at most N of those after number SEQ (1 to [`LIMIT_MAX`], which is
/// the default). The next page is after the last one's `seq`; an empty page is the end.
pub const EVENTS: &str = "/v1/events";
/// Most runs or events in one answer.
pub const LIMIT_MAX: usize = 1000;
/// `POST`: stops the prover and keeps it down. 202 [`SupervisorStatus`].
pub const STOP: &str = "/v1/stop";
/// `POST ?now=BOOL`: starts it when it is down (`stopped`, `failed`, `backing_off`), with `now=true` also where its memory does
/// not fit yet. 202 [`SupervisorStatus`].
pub const START: &str = "/v1/start";
/// `POST`: has it finish its work and take no more, then stops it; where it does not finish in time it goes on as before. 202
/// [`SupervisorStatus`].
pub const DRAIN: &str = "/v1/drain";
/// `POST`: has it finish its work and take no more. 202 [`SupervisorStatus`]; 409 where it cannot be quiesced.
pub const QUIESCE: &str = "/v1/quiesce";
/// `POST`: has it take work again. 202 [`SupervisorStatus`].
pub const UNQUIESCE: &str = "/v1/unquiesce";
/// `POST`: stops it and starts it again. 202 [`SupervisorStatus`].
pub const RESTART: &str = "/v1/restart";
/// `POST`: stops it and ends the supervisor. 202 [`SupervisorStatus`].
pub const SHUTDOWN: &str = "/v1/shutdown";
/// `GET`: Prometheus text.
pub const METRICS: &str = "/metrics";

/// The path of one run: `GET` [`RunEntry`].
pub fn run_path(run_id: &str) -> String {
    format!("{RUNS}/{run_id}")
}

/// A run and, once it has ended, how.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunEntry {
    /// What was known at its start.
    pub run: RunRecord,
    /// How it ended; `null` while it lives.
    pub exit: Option<ExitRecord>,
}

/// Runs, newest first. See [`RUNS`] for what is left out of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunList {
    /// [`sexton_model::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The runs.
    pub runs: Vec<RunEntry>,
}

/// Journal lines, oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EventList {
    /// [`sexton_model::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The lines.
    pub events: Vec<sexton_model::event::Event>,
}

/// The answer to every command: what the supervisor does now.
pub type Commanded = SupervisorStatus;
