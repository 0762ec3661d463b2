//! The run that lives now, and the endings of runs.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use sexton_diagnosis::death::{self, Facts, Judgement, OwnSignal};
use sexton_model::SCHEMA_VERSION;
use sexton_model::event::EventKind;
use sexton_model::exit::{ExitRecord, InFlight, Resources};
use sexton_model::kernel::trace::SignalSent;
use sexton_model::reading::Reading;
use sexton_model::run::RunRecord;
use sexton_process::{Ended, Pidfd, Readable, Stage, fifo};

use super::judging;
use super::tracking::Tracker;
use crate::journal;
use crate::keeper::evidence::Evidence;
use crate::keeper::log::Rotation;
use crate::keeper::output::Output;
use crate::keeper::wait_file::{RECORD_BYTES, StartError, WaitFile, WaitRecord};
use crate::runs::{RunDir, RunError};

/// How long a process that somebody else must reap may take to leave its status in its pidfd.
const STRANGER_PATIENCE: Duration = Duration::from_secs(2);

/// Who waits for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// The keeper, as always but after an accident.
    Keeper,
    /// We: the keeper died and the run fell to us, its subreaper.
    Us,
    /// Somebody else: keeper and supervisor died both.
    Stranger,
}

/// A judged ending.
#[derive(Debug)]
pub struct Ending {
    /// The record.
    pub record: ExitRecord,
    /// Other processes in its cgroup that the kernel's OOM killer ended, in words.
    pub members_killed: Vec<String>,
    /// Why no restart can help, where that is so.
    pub hopeless: Option<&'static str>,
}

/// What the supervisor itself knows of an ending.
#[derive(Debug)]
pub struct Known {
    /// Signals that it sent to the run, oldest first.
    pub own_signals: Vec<OwnSignal>,
    /// SIGKILLs that the signal trace saw.
    pub kills_sent: Reading<Vec<SignalSent>>,
    /// Jobs that were in flight when the prover last told.
    pub in_flight: Vec<InFlight>,
}

impl Known {
    /// Of a run that ended while no supervisor ran.
    pub fn later(own_signals: Vec<OwnSignal>) -> Self {
        Self { own_signals, kills_sent: Reading::Absent, in_flight: Vec::new() }
    }
}

/// A living run.
#[derive(Debug)]
pub struct LiveRun {
    /// Its folder.
    pub dir: RunDir,
    /// What was recorded at its start.
    pub record: RunRecord,
    /// PID.
    pub pid: i32,
    /// Handle.
    pub pidfd: Pidfd,
    /// Readable when it has ended.
    pub end: Readable,
    /// Who waits for it.
    pub parent: Parent,
    /// Whether it was found alive.
    pub adopted: bool,
    /// Whether it was ready at any time that we know of.
    pub was_ready: bool,
    /// Signals that were sent to it, oldest first.
    pub own_signals: Vec<OwnSignal>,
    /// Held so that what is in the FIFO outlives a keeper and a prover that die together.
    _fifo: Option<File>,
    /// Present while we copy the output ourselves.
    pub output: Option<(Readable, Output)>,
    /// Follows its cgroup and threads.
    pub tracker: Tracker,
    /// What is to be recorded at its death, by the keeper or by us.
    pub watched: Vec<OsString>,
}

impl LiveRun {
    /// Takes charge of a process that is there.
    ///
    /// # Errors
    /// Of the runtime's registration of the pidfd.
    pub fn new(
        dir: RunDir,
        record: RunRecord,
        pidfd: Pidfd,
        parent: Parent,
        tracker: Tracker,
    ) -> io::Result<Self> {
        let pid = record.identity.as_ref().map_or(0, |identity| identity.pid);
        let fifo = fifo::hold(&dir.fifo()).ok();
        let end = Readable::new(&pidfd)?;
        Ok(Self {
            dir,
            record,
            pid,
            pidfd,
            end,
            parent,
            adopted: false,
            was_ready: false,
            own_signals: Vec::new(),
            _fifo: fifo,
            output: None,
            watched: tracker.evidence_files(),
            tracker,
        })
    }

    /// How long it has been there.
    pub fn age(&self) -> Duration {
        sexton_model::Timestamp::now().duration_since(self.record.started_at).try_into().unwrap_or_default()
    }

    /// Copies the output from now on, since the keeper does not any more.
    pub fn take_over_output(&mut self, rotation: Rotation) {
        let opened = Output::open(self.dir.path(), rotation);
        self.output = opened.and_then(|output| Ok((Readable::new(&output)?, output))).ok();
    }

    /// Writes `wait.json` as the keeper would have, and reaps the run where it is ours.
    ///
    /// `None`: it is dead and a debugger holds it, so that it cannot be waited for yet.
    pub async fn end_without_keeper(&mut self) -> Option<WaitRecord<'static>> {
        if let Ok(mut evidence) = Evidence::prepare(self.dir.path()) {
            evidence.watch(self.watched.iter().map(PathBuf::from).collect());
            evidence.record();
        }
        let run_id = self.dir.run_id();
        let ended = match self.pidfd.peek() {
            Ok(Some(ended)) => Some(ended),
            Ok(None) => return None,
            Err(_) => self.status_of_stranger().await,
        };
        let mut record = WaitRecord::new(&run_id, self.pid, ended);
        if ended.is_some_and(|ended| ended.usage == Default::default()) {
            // Known from the pidfd only, which has no usage.
            (record.user_us, record.system_us, record.max_rss_bytes) = (None, None, None);
        }
        let mut buffer = [0; RECORD_BYTES];
        let output = self.output.as_mut().map(|(_, output)| output);
        if let Ok(file) = WaitFile::prepare(self.dir.path()) {
            crate::keeper::keep(&mut record, output, &file, &mut buffer);
        }
        let _ = self.pidfd.reap();
        Some(WaitRecord { run_id: run_id.clone().into(), ..record })
    }

    async fn status_of_stranger(&self) -> Option<Ended> {
        let deadline = tokio::time::Instant::now() + STRANGER_PATIENCE;
        loop {
            // The kernel keeps the status in the pidfd once the real parent has reaped the process.
            if let Some(status) = self.pidfd.exit_status_of_stranger() {
                return Some(Ended { status, usage: Default::default() });
            }
            if tokio::time::Instant::now() >= deadline {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The exit record of a run, from its wait record (or the lack of one) and everything else that is known.
pub fn exit_record(dir: &RunDir, run: &RunRecord, wait: Option<&WaitRecord<'_>>, facts: &Facts) -> Ending {
    let Judgement { verdict, evidence, members_killed, hopeless } = death::judge(facts);
    let (last_words, is_cut) = dir.last_words().unwrap_or_default();
    let last_words_truncated = is_cut || wait.is_some_and(|wait| wait.output_removed_bytes > 0);
    let own = facts.memberships.first().and_then(|membership| {
        let exclusive = membership.baseline.value()?.levels.first()?.exclusive == Reading::Value(true);
        membership.at_death.value()?.own().filter(|_| exclusive)
    });
    let cgroup_peak_bytes = own.and_then(|own| own.peak_bytes.value().copied());
    let seconds = |us: Option<u64>| us.map(|us| us as f64 / 1e6);
    let ended_at = facts.at;
    let record = ExitRecord {
        schema_version: SCHEMA_VERSION,
        run_id: dir.run_id(),
        command: run.command.clone(),
        pid: run.identity.as_ref().map(|identity| identity.pid),
        exe_sha256: run.executable.sha256.clone(),
        started_at: run.started_at,
        ended_at,
        duration_seconds: ended_at.duration_since(run.started_at).as_secs_f64().max(0.0),
        wait: facts.wait,
        verdict,
        evidence,
        resources: Resources {
            max_rss_bytes: wait.and_then(|wait| wait.max_rss_bytes),
            cgroup_peak_bytes,
            user_seconds: seconds(wait.and_then(|wait| wait.user_us)),
            system_seconds: seconds(wait.and_then(|wait| wait.system_us)),
        },
        in_flight: Vec::new(),
        last_words,
        last_words_truncated,
        output_dropped_bytes: wait.map_or(0, |wait| wait.output_dropped_bytes),
    };
    Ending { record, members_killed, hopeless }
}

/// Why a program never ran, in words.
pub fn explain(error: StartError, run: &RunRecord) -> String {
    let os = io::Error::from_raw_os_error(error.errno);
    let program = run.executable.path.as_deref().or(run.command.first().map(String::as_str)).unwrap_or("?");
    match Stage::from_number(error.stage) {
        Some(Stage::Exec)
            if error.errno == sexton_process::ENOENT && std::path::Path::new(program).exists() =>
        {
            format!("cannot execute {program}: the file is there, the interpreter that it asks for is not")
        }
        Some(Stage::Exec) => format!("cannot execute {program}: {os}"),
        Some(stage) => sexton_process::SpawnError::Child(stage, error.errno).to_string(),
        None if error.errno == sexton_process::ECANCELED => {
            "the supervisor went away before it could run".to_owned()
        }
        None => format!("no process could be made: {os}"),
    }
}

/// The signals that the journal says we sent to this run.
///
/// # Errors
/// Where the journal cannot be read.
pub fn own_signals(journal: &std::path::Path, run_id: &str) -> io::Result<Vec<OwnSignal>> {
    let sent = |event: sexton_model::event::Event| {
        let signal = event.details.get("signal")?.as_i64()?;
        let watchdog = event.details.get("watchdog").and_then(|found| found.as_str()).map(str::to_owned);
        Some(OwnSignal { signal: signal as i32, at: event.at, watchdog })
    };
    Ok(journal::events(journal)?
        .filter(|event| event.kind == EventKind::Signalled && event.run_id.as_deref() == Some(run_id))
        .filter_map(sent)
        .collect())
}

/// Judges a run that has ended, takes away what only a living one needs, and writes the exit record.
///
/// The judgement is there also where the disk would not take it.
pub fn finish(
    dir: &RunDir,
    run: &RunRecord,
    wait: Option<&WaitRecord<'_>>,
    known: Known,
) -> (Ending, Result<(), RunError>) {
    let facts = Facts { kills_sent: known.kills_sent, ..judging::facts(dir, run, wait, known.own_signals) };
    let mut ending = exit_record(dir, run, wait, &facts);
    ending.record.in_flight = known.in_flight;
    // First, since a run with an exit record is not looked at again, whenever we are killed.
    for needed in [dir.fifo(), dir.prepared_wait_file()] {
        // Mostly there is no prepared file any more: it became `wait.json`.
        let _ = std::fs::remove_file(needed);
    }
    let failed = |path: PathBuf| move |source| RunError::Write { path, source };
    let written = crate::durable::write_json(&dir.facts_file(), &facts)
        .map_err(failed(dir.facts_file()))
        .and_then(|()| {
            crate::durable::write_json(&dir.exit_file(), &ending.record).map_err(failed(dir.exit_file()))
        });
    (ending, written)
}
