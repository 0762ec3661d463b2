//! `supervisor why --bundle FILE`: what today's rules say of a death that was recorded some time, somewhere.

use std::path::Path;

use serde::Serialize;
use sexton_diagnosis::death::{self, Judgement};
use sexton_model::SCHEMA_VERSION;
use sexton_model::exit::{ExitRecord, Resources};
use sexton_model::verdict::{Evidence, Verdict};

use super::{Failure, show, why};
use crate::bundle::read::{self, BundleError, BundledRun};

/// The JSON document.
#[derive(Debug, Serialize)]
struct JudgedAgain<'a> {
    schema_version: u32,
    run_id: &'a str,
    /// Version of this supervisor, and of the one that made the bundle.
    judged_by: &'a str,
    recorded_by: &'a str,
    /// Whether cause, level or confidence are others now; `null` where none was recorded.
    differs: Option<bool>,
    recorded: Option<&'a Verdict>,
    verdict: &'a Verdict,
    evidence: &'a [Evidence],
    members_killed: &'a [String],
}

pub(super) fn why(path: &Path, wanted: Option<&str>, json: bool) -> Result<(), Failure> {
    let bundle = read::open(path)?;
    let (id, run) = pick(&bundle.runs, wanted, path)?;
    let Some(facts) = &run.facts else {
        return Err(Failure::NotReadable(format!("{}: run {id} has no facts.json to judge", path.display())));
    };
    let Judgement { verdict, evidence, members_killed, .. } = death::judge(facts);
    let recorded = run.exit.as_ref().map(|exit| &exit.verdict);
    let differs = recorded.map(|recorded| differ(recorded, &verdict));
    if json {
        return Ok(show::json(&JudgedAgain {
            schema_version: SCHEMA_VERSION,
            run_id: id,
            judged_by: crate::VERSION,
            recorded_by: &bundle.manifest.version,
            differs,
            recorded,
            verdict: &verdict,
            evidence: &evidence,
            members_killed: &members_killed,
        })?);
    }
    let comparison = match recorded {
        None => "no verdict was recorded at the time".to_owned(),
        Some(_) if differs == Some(false) => "the same verdict was recorded at the time".to_owned(),
        Some(then) => format!(
            "today's verdict differs; recorded at the time: {} ({}, {})",
            then.summary, then.cause, then.confidence
        ),
    };
    let record = ExitRecord { verdict, evidence, ..run.exit.clone().unwrap_or_else(|| unrecorded(id, run)) };
    let place = format!("runs/{id}/output.tail in the bundle");
    let page = why::page(&record, &place);
    Ok(show::text(&format!("{page}\njudged again from {}: {comparison}\n", path.display()))?)
}

fn differ(then: &Verdict, now: &Verdict) -> bool {
    (then.cause, then.level, then.confidence) != (now.cause, now.level, now.confidence)
}

/// The run that is meant; without a name the last that has ended.
fn pick<'b>(
    runs: &'b std::collections::BTreeMap<String, BundledRun>,
    wanted: Option<&str>,
    path: &Path,
) -> Result<(&'b str, &'b BundledRun), Failure> {
    let named = |(id, run): (&'b String, &'b BundledRun)| (id.as_str(), run);
    let Some(wanted) = wanted else {
        let ended = runs.iter().rev().find(|(_, run)| run.facts.is_some());
        return ended
            .map(named)
            .ok_or_else(|| Failure::Failed(format!("{}: no run in it has ended", path.display())));
    };
    let mut candidates = runs.iter().filter(|(id, _)| id.starts_with(wanted));
    match (candidates.next(), candidates.next()) {
        (Some(only), None) => Ok(named(only)),
        (Some(first), Some(_)) if first.0 == wanted => Ok(named(first)),
        (Some(_), Some(_)) => {
            Err(Failure::Failed(format!("\"{wanted}\" is the beginning of more than one run in it")))
        }
        (None, _) => Err(Failure::Failed(format!("{}: there is no run \"{wanted}\" in it", path.display()))),
    }
}

/// What is left to show of a run whose exit record is missing.
fn unrecorded(id: &str, run: &BundledRun) -> ExitRecord {
    let facts = run.facts.as_ref();
    let ended_at = facts.map_or_else(sexton_model::Timestamp::now, |facts| facts.at);
    let started_at = run.run.as_ref().map_or(ended_at, |run| run.started_at);
    let words = facts.and_then(|facts| facts.output.value().cloned()).unwrap_or_default();
    ExitRecord {
        schema_version: SCHEMA_VERSION,
        run_id: id.to_owned(),
        command: run.run.as_ref().map(|run| run.command.clone()).unwrap_or_default(),
        pid: facts.and_then(|facts| facts.tasks.pid),
        exe_sha256: None,
        started_at,
        ended_at,
        duration_seconds: ended_at.duration_since(started_at).as_secs_f64().max(0.0),
        wait: facts.map_or(sexton_model::wait::WaitStatus::UNKNOWN, |facts| facts.wait),
        verdict: Verdict {
            cause: sexton_model::verdict::Cause::Unknown,
            level: None,
            confidence: sexton_model::verdict::Confidence::Unknown,
            summary: String::new(),
        },
        evidence: Vec::new(),
        resources: Resources::default(),
        in_flight: Vec::new(),
        last_words: words,
        last_words_truncated: false,
        output_dropped_bytes: 0,
    }
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        match error {
            BundleError::Read { .. } => Self::NotReadable(error.to_string()),
            BundleError::NotABundle { .. } => Self::BadData(error.to_string()),
        }
    }
}
