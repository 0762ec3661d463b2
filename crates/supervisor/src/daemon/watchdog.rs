//! Liveness of a running prover: whether it gets on with its work, whether it answers, whether it sends signs of life.
//!
//! Nothing here acts. What a stall means is decided by `sexton_diagnosis::progress`, what to do about it by policy.

use std::time::Duration;

use serde_json::{Value, json};
use sexton_control::target::Target;
use sexton_diagnosis::progress::{Change, Limits, Progress};
use sexton_model::event::EventKind;
use sexton_model::exit::InFlight;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::notify::Heartbeat;
use super::prover_status::{Asker, PATIENCE};

/// How often a prover is asked: often enough that an exit record's jobs in flight are of the last seconds.
pub const INTERVAL: Duration = Duration::from_secs(5);

/// How often at most.
pub const INTERVAL_MIN: Duration = Duration::from_millis(250);

/// A prover that does not answer for so long is said to be silent: cuzk holds a lock over its page at times.
pub const SILENCE: Duration = Duration::from_secs(60);

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The prover's status page.
    pub status: Target,
    /// So long without a partition ending, while there is work, is a stall; `None`: jobs are followed only.
    pub progress_timeout: Option<Duration>,
    /// So long without an answer is silence; [`SILENCE`].
    pub silence: Duration,
    /// How often to ask; [`INTERVAL`].
    pub interval: Duration,
}

/// Watches one run from a task of its own, as soon as that is ready. Dropped, it asks no more.
#[derive(Debug)]
pub struct Watchdog {
    task: JoinHandle<()>,
    changes: mpsc::Receiver<Change>,
    in_flight: watch::Receiver<Vec<InFlight>>,
}

impl Watchdog {
    /// Begins to watch. To be called inside the runtime.
    pub fn start(settings: Settings) -> Self {
        let (telling, changes) = mpsc::channel(8);
        let (showing, in_flight) = watch::channel(Vec::new());
        Self { task: tokio::spawn(watch(settings, telling, showing)), changes, in_flight }
    }

    /// The next change. Cancel-safe.
    pub async fn next(&mut self) -> Change {
        match self.changes.recv().await {
            Some(change) => change,
            // Only the runtime's end ends the task, and that is ours.
            None => std::future::pending().await,
        }
    }

    /// Jobs in flight when the prover last told.
    pub fn in_flight(&self) -> Vec<InFlight> {
        self.in_flight.borrow().clone()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(settings: Settings, telling: mpsc::Sender<Change>, showing: watch::Sender<Vec<InFlight>>) {
    let patience = PATIENCE.max(settings.interval);
    let asker = Asker::new(&settings.status, patience);
    let gap = (settings.interval + patience) * 2;
    let mut progress =
        Progress::new(Limits { stall: settings.progress_timeout, silence: settings.silence, gap });
    let begin = Instant::now();
    let mut ticks = tokio::time::interval(settings.interval.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let answer = asker.status().await;
        let changes = match answer {
            Ok(page) => {
                let changes = progress.answered(begin.elapsed(), &page);
                showing.send_if_modified(|shown| {
                    let changed = *shown != progress.in_flight();
                    if changed {
                        *shown = progress.in_flight().to_vec();
                    }
                    changed
                });
                changes
            }
            Err(why) => progress.unanswered(begin.elapsed(), &why).into_iter().collect(),
        };
        for change in changes {
            // Whoever listened is gone, and this task soon too.
            let _ = telling.send(change).await;
        }
    }
}

/// A change, for the journal and for people.
pub fn told(change: &Change) -> (EventKind, Value, String) {
    match change {
        Change::Stalled(stall) => {
            let jobs = stall.in_flight.len();
            let text = if stall.in_hand {
                format!("no partition has ended for {:.0} s, with {} in flight", stall.seconds, count(jobs))
            } else {
                format!(
                    "{} listed and in nobody's hand for {:.0} s: failed ones that stay listed, or a stuck dispatcher",
                    count(jobs),
                    stall.seconds
                )
            };
            let details =
                json!({"seconds": stall.seconds, "in_hand": stall.in_hand, "in_flight": stall.in_flight});
            (EventKind::ProgressStalled, details, text)
        }
        Change::Moving { stalled_seconds, in_flight } => (
            EventKind::ProgressResumed,
            json!({"stalled_seconds": stalled_seconds, "in_flight": in_flight}),
            format!("it goes on after {stalled_seconds:.0} s, with {} in flight", count(*in_flight)),
        ),
        Change::Silent { seconds, why } => (
            EventKind::StatusSilent,
            json!({"seconds": seconds, "why": why}),
            format!("it lives, and its status could not be read for {seconds:.0} s: {why}"),
        ),
        Change::Answering { silent_seconds } => (
            EventKind::StatusAnswering,
            json!({"silent_seconds": silent_seconds}),
            format!("its status can be read again, after {silent_seconds:.0} s"),
        ),
    }
}

fn count(jobs: usize) -> String {
    if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") }
}

/// The signs of life that a prover has promised (`WATCHDOG_USEC`, sd_watchdog_enabled(3)).
#[derive(Debug, Clone, Default)]
pub struct Heartbeats {
    interval: Option<Duration>,
    /// The last sign, or the beginning; absent before the run is ready.
    last: Option<Instant>,
    told: bool,
    failed: bool,
}

impl Heartbeats {
    /// Expects one within each `interval`, `None` or zero for none, from [`Self::begin`] on.
    pub fn new(interval: Option<Duration>) -> Self {
        Self { interval: interval.filter(|interval| !interval.is_zero()), ..Self::default() }
    }

    /// The run is ready.
    pub fn begin(&mut self) {
        *self = Self { last: Some(Instant::now()), ..Self::new(self.interval) };
    }

    /// The prover promises another interval, zero to promise none.
    pub fn promise(&mut self, interval: Duration) {
        self.interval = Some(interval).filter(|interval| !interval.is_zero());
        self.note(Heartbeat::Alive);
    }

    /// A sign came. Before the run is ready nobody waits for one.
    pub fn note(&mut self, heartbeat: Heartbeat) {
        match heartbeat {
            Heartbeat::Alive => {
                self.last = self.last.map(|_| Instant::now());
                self.told = false;
            }
            Heartbeat::Failed => self.failed = true,
        }
    }

    /// Waits until one is overdue, or the prover says that it has failed; tells why, and then no more until the next
    /// sign. Cancel-safe.
    pub async fn lost(&mut self) -> String {
        if std::mem::take(&mut self.failed) {
            return "it says itself that it does not work (WATCHDOG=trigger)".to_owned();
        }
        let due = |interval| self.last.and_then(|last| last.checked_add(interval)).map(|due| (due, interval));
        match self.interval.and_then(due).filter(|_| !self.told) {
            Some((due, interval)) => {
                tokio::time::sleep_until(due).await;
                self.told = true;
                format!("it has not sent WATCHDOG=1 for {:.0} s", interval.as_secs_f64())
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
