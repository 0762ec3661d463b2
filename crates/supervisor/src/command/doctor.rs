//! `supervisor doctor`

use std::process::ExitCode;
use std::time::Duration;

use sexton_control::client::{Client, Endpoint};
use sexton_control::supervisor as routes;
use sexton_model::status::SupervisorStatus;

use super::{Failure, show};
use crate::doctor::Report;
use crate::doctor::sight::{Sight, Subject};
use crate::place::Place;
use crate::runs;

/// How long a supervisor may take to say whom to look at.
const PATIENCE: Duration = Duration::from_secs(2);

/// Say what could be known of a death here, before there is one
///
/// Each line is ok, warn or fail, with what was found and how to mend it. Looks at the cgroup of the prover where a
/// supervisor runs, else at that of this shell. Changes nothing.
///
/// Exit code 0 where all is well, 1 with warnings, 2 with failures.
#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {}

pub(super) async fn doctor(place: &Place, _args: &DoctorArgs, json: bool) -> Result<ExitCode, Failure> {
    let report = Report::of(&place.name, &Sight::read(place, subject(place).await));
    if json {
        show::json(&report)?;
    } else {
        show::text(&report.page())?;
    }
    Ok(ExitCode::from(report.level.exit_code()))
}

/// Whom to look at: nobody answers where no supervisor runs.
pub(super) async fn subject(place: &Place) -> Subject {
    let client = Client::new(Endpoint::Unix(place.control_socket()), PATIENCE);
    match client.get::<SupervisorStatus>(routes::STATUS).await {
        Ok(SupervisorStatus { pid: Some(pid), .. }) => Subject::Prover(pid),
        Ok(status) => Subject::Supervisor(status.supervisor_pid),
        Err(_) => kept_prover(place).unwrap_or(Subject::Us(std::process::id() as i32)),
    }
}

/// A prover that outlived its supervisor: the newest run, where it has no end and its process is still that one.
fn kept_prover(place: &Place) -> Option<Subject> {
    let newest = runs::newest(&place.runs_dir(), 1).ok()?.entries.pop()?;
    let recorded = newest.run.identity.filter(|_| newest.exit.is_none())?;
    let alive = sexton_process::identity(recorded.pid).ok()? == recorded;
    alive.then_some(Subject::Prover(recorded.pid))
}
