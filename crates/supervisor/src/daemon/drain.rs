//! Watches the drain of one run: from the wish to stop it, or from its end, until its memory is back.
//!
//! ```text
//! let mut watch = DrainWatch::begin(drained, settings, history);
//! watch.asked_to_exit();            // when SIGTERM or SIGKILL is sent
//! let report = watch.sample();      // every watch.interval()
//! watch.reaped();                   // when the keeper has told the end
//! // phase Released: history::remember_drain(&place, watch.past())
//! ```
//!
//! Nothing here waits: a look reads `stat`, `status`, `wchan` and `stack` of the process and its threads, the files of its
//! cgroups, and `/proc/meminfo`. None of these takes the lock of the process' memory, which a hung driver holds.

use std::time::{Duration, Instant};

use sexton_diagnosis::drain::{Sample, Settings, Tracker};
use sexton_diagnosis::process_state::classify;
use sexton_host::task::Tasks;
use sexton_model::Timestamp;
use sexton_model::drain::{DrainPhase, DrainReport, PastDrain};
use sexton_model::reading::Reading;
use sexton_model::task::{ProcessReading, SharedFile};

use super::footprint::{Charges, Footprint};
use super::holders::{Question, Search};
use super::tracking::Stay;

/// A drain that moves is looked at often, one that does not less and less: both for its rate and for our own cost.
const INTERVAL_SHORT: Duration = Duration::from_millis(100);
const INTERVAL_LONG: Duration = Duration::from_secs(1);
/// Silence after which looks become rare.
const QUIET: f64 = 5.0;

/// Memory that stands still for so long after the reap is looked for: drivers and kernel threads take up to half a second.
const SEARCH_AFTER: f64 = 1.0;
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);

/// The run that drains.
#[derive(Debug)]
pub struct Drained<'a> {
    /// Its main process.
    pub pid: i32,
    /// When that started ([`ProcessIdentity::start_ticks`](sexton_model::run::ProcessIdentity)): another process that has the
    /// PID later is not it.
    pub start_ticks: u64,
    /// Its cgroups, as tracked.
    pub stays: &'a [Stay],
    /// What it took.
    pub footprint: &'a Footprint,
    /// Our own processes, which may be in its cgroups.
    pub own_pids: Vec<i32>,
}

/// Watches one drain.
#[derive(Debug)]
pub struct DrainWatch {
    pid: i32,
    start_ticks: u64,
    tracker: Tracker,
    charges: Charges,
    shared: Vec<SharedFile>,
    own_pids: Vec<i32>,
    began: Instant,
    reaped: bool,
    work_done: Option<u64>,
    search: Option<Search>,
    search_due: Instant,
    /// Silence at the last look, seconds.
    silence: f64,
}

impl DrainWatch {
    /// Begins. `history`: earlier drains on this host ([`super::history::drains`]).
    pub fn begin(run: Drained<'_>, settings: Settings, history: Vec<PastDrain>) -> Self {
        let charges = Charges::of(run.stays);
        let start = run.footprint.start(&charges);
        let began = Instant::now();
        Self {
            pid: run.pid,
            start_ticks: run.start_ticks,
            tracker: Tracker::new(run.pid, settings, start, history, Timestamp::now()),
            charges,
            shared: run.footprint.shared().to_vec(),
            own_pids: run.own_pids,
            began,
            reaped: false,
            work_done: None,
            search: None,
            search_due: began,
            silence: 0.0,
        }
    }

    /// The process was asked to exit, or killed.
    pub fn asked_to_exit(&mut self) {
        self.tracker.asked_to_exit();
    }

    /// Somebody has waited for the process. It is also seen without being told, but not as surely: a `/proc` may hide
    /// processes.
    pub fn reaped(&mut self) {
        self.reaped = true;
    }

    /// What the engine has done so far, in whatever it counts: a change is progress while it quiesces.
    pub fn worked(&mut self, done: u64) {
        self.work_done = Some(done);
    }

    /// How long to wait before the next [`Self::sample`].
    pub fn interval(&self) -> Duration {
        if self.silence < QUIET { INTERVAL_SHORT } else { INTERVAL_LONG }
    }

    /// Looks.
    pub fn sample(&mut self) -> DrainReport {
        if let Some(holders) = self.search.as_ref().and_then(Search::answer) {
            self.search = None;
            self.tracker.found_holders(holders);
        }
        let reading = self.process();
        let report = self.tracker.feed(&Sample {
            at: Timestamp::now(),
            elapsed: self.began.elapsed(),
            process: classify(&reading),
            threads_alive: threads_alive(&reading),
            cpu_seconds: reading.value().map(|process| process.user_seconds + process.system_seconds),
            memory: self.charges.figures(),
            work_done: self.work_done,
        });
        self.silence = report.seconds_without_progress;
        self.look_for_holders(&report);
        report
    }

    /// The drain for the history, once it is released.
    pub fn past(&self) -> Option<PastDrain> {
        self.tracker.past(Timestamp::now())
    }

    /// The process; absent once it is reaped, also if another one has its PID.
    fn process(&self) -> Reading<ProcessReading> {
        if self.reaped {
            return Reading::Absent;
        }
        Tasks::system().process(self.pid).and_then(|process| {
            let is_ours = process.pid == self.pid && process.start_ticks == self.start_ticks;
            if is_ours { Reading::Value(process) } else { Reading::Absent }
        })
    }

    fn look_for_holders(&mut self, report: &DrainReport) {
        let stands_still = report.phase == DrainPhase::Releasing
            && (report.stalled || report.seconds_without_progress >= SEARCH_AFTER);
        if !stands_still || self.search.is_some() || Instant::now() < self.search_due {
            return;
        }
        self.search_due = Instant::now() + SEARCH_INTERVAL;
        self.search = Search::start(Question {
            pid: self.pid,
            shared: self.shared.clone(),
            members: self.charges.members(),
            own_pids: self.own_pids.clone(),
            held_bytes: report.held_bytes.value().copied().unwrap_or(0),
        });
    }
}

fn threads_alive(process: &Reading<ProcessReading>) -> Reading<u64> {
    match process {
        Reading::Absent => Reading::Value(0),
        Reading::Value(process) => {
            Reading::Value(process.threads().filter(|thread| !thread.state.is_dead()).count() as u64)
        }
        Reading::Unreadable(obstacle) => Reading::Unreadable(obstacle.clone()),
    }
}
