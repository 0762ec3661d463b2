//! `supervisor status`

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use sexton_control::client::{Client, ClientError, Endpoint};
use sexton_control::supervisor as routes;
use sexton_model::Timestamp;
use sexton_model::status::{LadderStatus, SupervisorStatus};
use sexton_model::units::{Bytes, Human};

use super::{Failure, show};
use crate::daemon::descendants::named;
use crate::place::Place;
use crate::runs;

/// How long the supervisor may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Show what the supervisor and its prover do now
///
/// Exit code 3 where no supervisor runs; the last ended run is shown all the same.
#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {}

pub(super) fn client(place: &Place) -> Client {
    Client::new(Endpoint::Unix(place.control_socket()), PATIENCE)
}

pub(super) async fn status(place: &Place, _args: &StatusArgs, json: bool) -> Result<ExitCode, Failure> {
    match client(place).get::<SupervisorStatus>(routes::STATUS).await {
        Ok(status) if json => show::json(&status)?,
        Ok(status) => show::text(&page(&status))?,
        Err(ClientError::NotRunning(_)) => return Err(Failure::NotRunning(not_running(place)?)),
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// What there is to say where no supervisor runs: a keeper may still hold a living prover.
pub(super) fn not_running(place: &Place) -> Result<String, Failure> {
    let mut text = format!("no supervisor runs for \"{}\"", place.name);
    let Some(last) = runs::newest(&place.runs_dir(), 1)?.entries.pop() else { return Ok(text) };
    let pid = last.run.identity.as_ref().map_or(0, |identity| identity.pid);
    // Writing to a string does not fail.
    let _ = match &last.exit {
        Some(exit) => write!(text, "; the last run {} {}: {}", exit.run_id, exit.wait, exit.verdict.summary),
        None if std::path::Path::new(&format!("/proc/{pid}")).exists() => write!(
            text,
            "; run {} (pid {pid}) may still be alive, and `supervisor run` takes it over",
            last.run.run_id
        ),
        None => write!(text, "; run {} has ended, and `supervisor run` will say how", last.run.run_id),
    };
    Ok(text)
}

/// `340 GiB, of 400 GiB since a run with 400 GiB was killed for memory`.
fn budget(status: &SupervisorStatus, ladder: &LadderStatus) -> String {
    let now = status.budget_bytes.unwrap_or(ladder.step_bytes);
    let mut text = Bytes(now).to_string();
    if now != ladder.step_bytes {
        let _ = write!(text, "; the next start takes {}", Bytes(ladder.step_bytes));
    }
    if let Some(why) = &ladder.reason {
        let _ = write!(text, ", of {}: {why}", Bytes(ladder.full_bytes));
    }
    if let Some(at) = ladder.larger_at {
        let _ = write!(text, "; a larger one may be tried after {}", show::time(at));
    }
    text
}

fn page(status: &SupervisorStatus) -> String {
    let mut page = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(page, "{name:<10} {value}");
    };
    let for_long = Human(Timestamp::now().duration_since(status.since).unsigned_abs());
    let reason = status.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    line("name", status.name.clone());
    line("state", format!("{} for {for_long}{reason}", status.state));
    if let (Some(run_id), Some(pid)) = (&status.run_id, status.pid) {
        let adopted = if status.adopted { ", taken over alive" } else { "" };
        line("run", format!("{run_id}, pid {pid}{adopted}"));
    }
    if let Some(says) = &status.prover_says {
        line("it says", says.clone());
    }
    if let Some(jobs) = status.in_flight {
        let quiesced = if status.quiesced { "; it takes no more" } else { "" };
        line("in flight", format!("{jobs}{quiesced}"));
    }
    if let Some(drain) = &status.drain {
        line("drain", drain.summary.clone());
        if let Some(eta) = drain.eta_seconds.filter(|eta| *eta > 0.0) {
            let eta = Human(Duration::try_from_secs_f64(eta).unwrap_or_default());
            line("", format!("about {eta} to go: {}", drain.eta_reason));
        }
        drain.action.iter().for_each(|action| line("to do", action.clone()));
    }
    if let Some(gate) = &status.gate {
        line("gate", gate.summary.clone());
        let eta = gate.eta_seconds.and_then(|eta| Duration::try_from_secs_f64(eta).ok());
        match eta {
            Some(eta) => line("", format!("about {} to go: {}", Human(eta), gate.eta_reason)),
            None => line("", gate.eta_reason.clone()),
        }
    }
    if let Some(ladder) = &status.ladder {
        line("budget", budget(status, ladder));
    }
    if let Some(hash) = &status.exe_sha256 {
        line("executable", format!("sha256 {hash}"));
    }
    if let Some(at) = status.next_start_at {
        line("next start", show::time(at));
    }
    line("restarts", status.restarts.to_string());
    if !status.descendants.is_empty() {
        line("left over", named(&status.descendants));
    }
    let keeper = status.keeper_pid.map_or("none".to_owned(), |pid| format!("pid {pid}"));
    line("processes", format!("supervisor pid {}, keeper {keeper}", status.supervisor_pid));
    if let Some(exit) = &status.last_exit {
        line("last exit", format!("{} at {}: {}", exit.wait, show::time(exit.ended_at), exit.verdict.cause));
        line("", exit.verdict.summary.clone());
    }
    page
}
