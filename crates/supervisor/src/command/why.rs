//! `supervisor why`

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use sexton_model::exit::ExitRecord;
use sexton_model::units::{Bytes, Human};

use super::{Failure, show};
use crate::place::Place;
use crate::{runbook, runs};

/// How many lines of last words are shown without `--json`.
const LAST_LINES: usize = 20;

/// Say why a run ended: the sentence, the evidence, its last words
///
/// Reads the records, whether a supervisor runs or not.
#[derive(Debug, clap::Args)]
pub(super) struct WhyArgs {
    /// The run's id, or the beginning of it [default: the run that ended last]
    #[arg(conflicts_with = "pid")]
    run: Option<String>,
    /// Explain a process instead, ours or not: its state, who must reap it, what its threads wait in, what it holds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// Judge a run in an archive of `supervisor diag` instead, by the rules of this version
    #[arg(long, value_name = "FILE", conflicts_with = "pid")]
    bundle: Option<PathBuf>,
    /// Print the runbook's page on the cause: how to read the evidence, what to do
    #[arg(long, conflicts_with_all = ["pid", "bundle", "json"])]
    runbook: bool,
}

pub(super) fn why(place: &Place, args: &WhyArgs, json: bool) -> Result<(), Failure> {
    if let Some(pid) = args.pid {
        return super::why_pid::why(pid, json);
    }
    if let Some(bundle) = &args.bundle {
        return super::why_bundle::why(bundle, args.run.as_deref(), json);
    }
    let runs_dir = place.runs_dir();
    let (dir, record) = match &args.run {
        Some(id) => {
            let dir = runs::find(&runs_dir, id)?;
            let record = dir.exit_record()?;
            (dir, record)
        }
        None => {
            let mut ended = None;
            let all = runs::list(&runs_dir)?;
            let newest = all.last().map(runs::RunDir::run_id);
            for dir in all.into_iter().rev() {
                if let Some(record) = dir.exit_record()? {
                    ended = Some((dir, Some(record)));
                    break;
                }
            }
            let none = || {
                let name = &place.name;
                Failure::Failed(match newest {
                    None => format!("\"{name}\" has had no run yet"),
                    Some(id) => format!(
                        "no end of a run of \"{name}\" is on record: the newest, {id}, still runs, or its end could not \
                         be written (`supervisor status`, `supervisor events`)"
                    ),
                })
            };
            ended.ok_or_else(none)?
        }
    };
    let Some(record) = record else {
        return Err(Failure::Failed(format!(
            "run {} has no recorded end: it lives, or `supervisor run` will find out",
            dir.run_id()
        )));
    };
    if args.runbook {
        return Ok(show::text(runbook::page(record.verdict.cause))?);
    }
    if json {
        return Ok(show::json(&record)?);
    }
    let log = dir.output_file();
    Ok(show::text(&page(&record, &log.to_string_lossy()))?)
}

/// The page on one ending; `log` says where all of its output is.
pub(super) fn page(record: &ExitRecord, log: &str) -> String {
    let mut page = String::new();
    let verdict = &record.verdict;
    let level = verdict.level.map(|level| format!(", {level} limit")).unwrap_or_default();
    // Writing to a string does not fail.
    let _ = writeln!(page, "{} ({}{level}, {})\n", verdict.summary, verdict.cause, verdict.confidence);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(page, "{name:<9} {value}");
    };
    line("run", record.run_id.clone());
    line("command", show::command(&record.command));
    line("pid", record.pid.map_or("none".to_owned(), |pid| pid.to_string()));
    line("started", show::time(record.started_at));
    let after = Human(Duration::from_secs_f64(record.duration_seconds));
    line("ended", format!("{}, after {after}", show::time(record.ended_at)));
    line("status", record.wait.to_string());
    let used = &record.resources;
    if let (Some(user), Some(system)) = (used.user_seconds, used.system_seconds) {
        let rss = used.max_rss_bytes.map(|rss| format!(", {} at most", Bytes(rss))).unwrap_or_default();
        line("used", format!("{user:.2} s user, {system:.2} s system{rss}"));
    }
    if record.output_dropped_bytes > 0 {
        line(
            "lost",
            format!("{} of its output, which the log did not take", Bytes(record.output_dropped_bytes)),
        );
    }
    let runbook = runbook::path(verdict.cause);
    line("runbook", format!("{runbook} (supervisor why {} --runbook)", record.run_id));
    let _ = writeln!(page, "\nevidence");
    for seen in &record.evidence {
        let source = seen.source.to_string();
        let answer = seen.answer.to_string();
        let _ = writeln!(page, "  {source:<18} {answer:<11} {}", seen.detail);
    }
    let lines: Vec<&str> = record.last_words.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if lines.is_empty() {
        let _ = writeln!(page, "\nit wrote nothing");
    } else {
        let _ = writeln!(page, "\nlast words (all of it: {log})");
        for line in shown {
            let _ = writeln!(page, "  {line}");
        }
    }
    page
}
