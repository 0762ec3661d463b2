//! `supervisor runs`

use std::time::Duration;

use sexton_control::supervisor::RunList;
use sexton_model::SCHEMA_VERSION;
use sexton_model::units::Human;

use super::{Failure, show};
use crate::place::Place;
use crate::runs;

/// List runs, newest first
///
/// Reads the records, whether a supervisor runs or not.
#[derive(Debug, clap::Args)]
pub(super) struct RunsArgs {
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

pub(super) fn list(place: &Place, args: &RunsArgs, json: bool) -> Result<(), Failure> {
    let runs::Newest { entries: runs, unreadable } = runs::newest(&place.runs_dir(), args.limit)?;
    for error in unreadable {
        show::complaint(&error)?;
    }
    if json {
        return Ok(show::json(&RunList { schema_version: SCHEMA_VERSION, runs })?);
    }
    if runs.is_empty() {
        return Ok(show::text(&format!(
            "no runs of \"{}\" in {}\n",
            place.name,
            place.runs_dir().display()
        ))?);
    }
    let mut text =
        format!("{:<25} {:>7} {:>9}  {:<22} {:<24} COMMAND\n", "RUN", "PID", "DURATION", "CAUSE", "ENDING");
    for entry in runs {
        let (duration, cause, ending) = match &entry.exit {
            Some(exit) => (
                Human(Duration::from_secs_f64(exit.duration_seconds)).to_string(),
                exit.verdict.cause.to_string(),
                exit.wait.to_string(),
            ),
            None => ("-".to_owned(), "-".to_owned(), "no end recorded".to_owned()),
        };
        let pid = entry.run.identity.as_ref().map_or("-".to_owned(), |identity| identity.pid.to_string());
        let command = show::command(&entry.run.command);
        text +=
            &format!("{:<25} {pid:>7} {duration:>9}  {cause:<22} {ending:<24} {command}\n", entry.run.run_id);
    }
    Ok(show::text(&text)?)
}
