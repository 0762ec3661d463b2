//! Has a prover finish its work and take no more, and takes that back.
//!
//! | way | takes no more work | has finished |
//! |---|---|---|
//! | `http` | `POST /quiesce` | its `/status` says so |
//! | `watch` | nobody tells it: its clients are stopped | its `/status` has shown no work, nor any change, for a while |
//! | `command` | a command of the operator's | its `/status` likewise, where it has one; else the command's own end |
//! | `none` | – | – |
//!
//! Our engine answers 503 while it is quiesced, so its clients go elsewhere. cuzk has no such thing: with SIGINT it takes work
//! that never runs, and never ends.

use std::ffi::OsString;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use sexton_control::client::Answer;
use sexton_control::prover::{QUIESCE, Refusal, STATUS};
use sexton_control::target::Target;
use sexton_diagnosis::idle::{Idle, Patience, Settling};
use sexton_model::event::EventKind;
use sexton_model::exit::InFlight;
use sexton_model::pipeline::PipelineStatus;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::prover_status::{Asker, PATIENCE};
use super::side_command::{self, Outcome, SideChildren, SideCommand};

/// How long cuzk's page must stay as it is: a request whose key is being read moves its memory, and a failed job looks like
/// one that waits for the next worker.
pub fn patience(settle: Duration) -> Patience {
    Patience { settle, abandoned: settle.saturating_mul(4) }
}

/// Our engine says itself whether it has work, and lists nothing that has ended.
const ENGINE_PATIENCE: Patience = Patience { settle: Duration::ZERO, abandoned: Duration::MAX };

/// How often a page is looked at, at most and at least.
const INTERVAL: Duration = Duration::from_secs(1);
const INTERVAL_MIN: Duration = Duration::from_millis(50);

/// How often a request that got no answer is sent.
const TRIES: u32 = 3;

/// How a prover is quiesced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quiesce {
    /// Not at all.
    None,
    /// By `POST`, and back by `DELETE`.
    Http {
        /// For both.
        quiesce: Target,
        /// The prover's status page.
        status: Target,
    },
    /// By waiting.
    Watch {
        /// The prover's status page.
        status: Target,
        /// How long that must stay as it is; [`patience`].
        patience: Patience,
    },
    /// By the operator's commands.
    Command {
        /// Has it take no more work.
        quiesce: SideCommand,
        /// Takes that back.
        unquiesce: Option<SideCommand>,
        /// The prover's status page, and how long that must stay as it is after the command.
        status: Option<(Target, Patience)>,
    },
}

impl Quiesce {
    /// Of our engine, or one that has its routes, anywhere on the endpoint of `target`.
    pub fn http(target: &Target) -> Self {
        Self::Http { quiesce: target.with_path(QUIESCE), status: target.with_path(STATUS) }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// It has finished its work, and takes no more as far as we can tell.
    Quiesced {
        /// Jobs that are still listed, and that nobody works on.
        abandoned: Vec<InFlight>,
    },
    /// It has not finished in time.
    NotInTime {
        /// Jobs in flight, where that is known.
        in_flight: Option<usize>,
        /// What came of the last look, where that failed.
        why: Option<String>,
    },
    /// It cannot be quiesced, or it cannot be told whether it is.
    Failed {
        /// Why not.
        why: String,
        /// What the command wrote.
        output: Option<String>,
    },
}

impl Ended {
    fn failed(why: impl Into<String>) -> Self {
        Self::Failed { why: why.into(), output: None }
    }

    /// For the journal, and for people.
    pub fn told(&self) -> (EventKind, Value, String) {
        match self {
            Self::Quiesced { abandoned } if abandoned.is_empty() => {
                (EventKind::Quiesced, json!({"abandoned": abandoned}), "it has finished its work".to_owned())
            }
            Self::Quiesced { abandoned } => (
                EventKind::Quiesced,
                json!({"abandoned": abandoned}),
                format!("it has finished its work; {} still listed and nobody's", abandoned.len()),
            ),
            Self::NotInTime { in_flight, why } => {
                let jobs = in_flight.map_or("unknown work".to_owned(), |jobs| format!("{jobs} in flight"));
                let said = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
                let text = format!("it has not finished its work in time, {jobs}{said}");
                (EventKind::QuiesceFailed, json!({"why": text, "in_flight": in_flight}), text)
            }
            Self::Failed { why, output } => (
                EventKind::QuiesceFailed,
                json!({"why": why, "in_flight": null, "output": output}),
                format!("it cannot be quiesced: {why}"),
            ),
        }
    }
}

/// What commands run with.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Where their processes are kept.
    pub children: SideChildren,
    /// In their environment.
    pub told: Vec<(String, OsString)>,
}

/// A quiesce under way, in a task of its own. Dropped, it is not followed any further; what the prover was told stays told.
#[derive(Debug)]
pub struct Quiescing {
    task: Option<JoinHandle<Ended>>,
    in_flight: watch::Receiver<Option<usize>>,
}

impl Quiescing {
    /// Begins. `timeout`: for all of it, `None` for ever. To be called inside the runtime.
    pub fn start(how: Quiesce, timeout: Option<Duration>, around: Surroundings) -> Self {
        let (showing, in_flight) = watch::channel(None);
        let task = async move {
            let mut look = Look { showing, why: None };
            let work = quiesce(&how, &around, &mut look);
            let ended = match timeout {
                Some(timeout) => tokio::time::timeout(timeout, work).await.ok(),
                None => Some(work.await),
            };
            ended.unwrap_or_else(|| Ended::NotInTime { in_flight: *look.showing.borrow(), why: look.why })
        };
        Self { task: Some(tokio::spawn(task)), in_flight }
    }

    /// What came of it, once. Cancel-safe.
    pub async fn next(&mut self) -> Ended {
        let Some(task) = &mut self.task else { return std::future::pending().await };
        let ended = task.await;
        self.task = None;
        ended.unwrap_or_else(|error| Ended::failed(error.to_string()))
    }

    /// Jobs in flight at the last look, once there was one.
    pub fn in_flight(&self) -> Option<usize> {
        *self.in_flight.borrow()
    }
}

impl Drop for Quiescing {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// An unquiesce under way. Dropped, it is not followed any further.
#[derive(Debug)]
pub struct Unquiescing(Option<JoinHandle<Result<(), String>>>);

impl Unquiescing {
    /// Begins. To be called inside the runtime.
    pub fn start(how: Quiesce, around: Surroundings) -> Self {
        Self(Some(tokio::spawn(async move { unquiesce(&how, &around).await })))
    }

    /// Why it takes no work yet, or that it does; once. Cancel-safe.
    pub async fn next(&mut self) -> Result<(), String> {
        let Some(task) = &mut self.0 else { return std::future::pending().await };
        let ended = task.await;
        self.0 = None;
        ended.unwrap_or_else(|error| Err(error.to_string()))
    }
}

impl Drop for Unquiescing {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// What was seen last.
struct Look {
    showing: watch::Sender<Option<usize>>,
    why: Option<String>,
}

async fn quiesce(how: &Quiesce, around: &Surroundings, look: &mut Look) -> Ended {
    match how {
        Quiesce::None => Ended::failed("no way to quiesce it is configured ([stop] quiesce)"),
        Quiesce::Http { quiesce, status } => match send(quiesce, Method::POST).await {
            // 409: it drains, so it takes no more already.
            Ok(answer) if (200..300).contains(&answer.status) || answer.status == 409 => {
                wait_until_idle(status, ENGINE_PATIENCE, look).await
            }
            Ok(answer) => Ended::failed(refusal(quiesce, &answer)),
            Err(why) => Ended::failed(why),
        },
        Quiesce::Watch { status, patience } => wait_until_idle(status, *patience, look).await,
        Quiesce::Command { quiesce, status, .. } => {
            let outcome = side_command::run(&around.children, quiesce, &around.told, b"").await;
            if !outcome.is_success() {
                return Ended::Failed { why: named(quiesce, &outcome), output: Some(outcome.output) };
            }
            match status {
                Some((status, patience)) => wait_until_idle(status, *patience, look).await,
                None => Ended::Quiesced { abandoned: Vec::new() },
            }
        }
    }
}

async fn unquiesce(how: &Quiesce, around: &Surroundings) -> Result<(), String> {
    match how {
        // It has never stopped taking work.
        Quiesce::None | Quiesce::Watch { .. } | Quiesce::Command { unquiesce: None, .. } => Ok(()),
        Quiesce::Http { quiesce, .. } => {
            let answer = send(quiesce, Method::DELETE).await?;
            if (200..300).contains(&answer.status) { Ok(()) } else { Err(refusal(quiesce, &answer)) }
        }
        Quiesce::Command { unquiesce: Some(command), .. } => {
            let outcome = side_command::run(&around.children, command, &around.told, b"").await;
            if outcome.is_success() { Ok(()) } else { Err(named(command, &outcome)) }
        }
    }
}

fn named(command: &SideCommand, outcome: &Outcome) -> String {
    let program = command.command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    format!("{program}: {outcome}")
}

fn refusal(target: &Target, answer: &Answer) -> String {
    match serde_json::from_slice::<Refusal>(&answer.body) {
        Ok(refusal) => refusal.error,
        Err(_) => format!("{target} answers with status {}", answer.status),
    }
}

/// Whatever is answered: asking twice for the same is harmless.
async fn send(target: &Target, method: Method) -> Result<Answer, String> {
    let asker = Asker::new(target, PATIENCE);
    let mut tried = 0;
    loop {
        match asker.ask(method.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(error) if tried + 1 >= TRIES => return Err(format!("{target}: {error}")),
            Err(_) => tried += 1,
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn wait_until_idle(status: &Target, patience: Patience, look: &mut Look) -> Ended {
    let asker = Asker::new(status, PATIENCE);
    let interval = (patience.settle / 4).clamp(INTERVAL_MIN, INTERVAL);
    let begin = Instant::now();
    let mut settling = Settling::new(patience);
    loop {
        match asker.ask(Method::GET).await {
            Ok(answer) if answer.status != 200 => {
                return Ended::failed(format!(
                    "it may take no more work, but when it has finished cannot be seen: {}",
                    refusal(status, &answer)
                ));
            }
            Ok(answer) => match serde_json::from_slice::<PipelineStatus>(&answer.body) {
                Ok(page) if patience == ENGINE_PATIENCE && page.quiesced == Some(false) => {
                    return Ended::failed("somebody had it take work again");
                }
                Ok(page) => match settling.look(begin.elapsed(), &page) {
                    Idle::Yes { abandoned } => return Ended::Quiesced { abandoned },
                    Idle::No { in_flight } => {
                        look.why = None;
                        look.showing.send_replace(Some(in_flight));
                    }
                },
                Err(error) => {
                    return Ended::failed(format!(
                        "{status} answers with something else than a status page: {error}"
                    ));
                }
            },
            // It may be busy. Where it has ended, that is noticed elsewhere.
            Err(error) => look.why = Some(error.to_string()),
        }
        tokio::time::sleep(interval).await;
    }
}

#[cfg(test)]
mod tests;
