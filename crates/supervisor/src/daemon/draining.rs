//! The drain of the run that is being stopped or has ended, as the loop follows it: from the wish to stop until its memory is
//! back and no process of it is left.

use std::time::Duration;

use serde_json::json;
use sexton_diagnosis::drain::Settings;
use sexton_model::drain::{DrainPhase, DrainReport};
use sexton_model::event::EventKind;
use sexton_model::status::State;
use sexton_model::units::{Bytes, Human};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::drain::{DrainWatch, Drained};
use super::live::LiveRun;
use super::tree::{Stopped, Tree};
use super::{Daemon, history};
use crate::config::values::LeftOver;
use crate::machine::Input;

/// How long processes that were told to end by SIGKILL may take to be gone before that is said.
const DEATH_PATIENCE: Duration = Duration::from_secs(10);

/// The drain under way.
#[derive(Debug)]
pub(super) struct Draining {
    watch: DrainWatch,
    run_id: String,
    next_look: Instant,
    /// As of the last look.
    report: DrainReport,
    /// What of it was told already.
    stalled: bool,
    dumping: bool,
    /// Its main process has ended: what is left of its tree is being stopped.
    rest: Option<JoinHandle<Stopped>>,
    /// Whether the loop waits for the end of it.
    awaited: bool,
}

impl Draining {
    fn begin(live: &LiveRun, own_pids: Vec<i32>, history: Vec<sexton_model::drain::PastDrain>) -> Self {
        let start_ticks = live.record.identity.as_ref().map_or(0, |identity| identity.start_ticks);
        let drained = Drained {
            pid: live.pid,
            start_ticks,
            stays: &live.tracker.tracked.stays,
            footprint: &live.tracker.tracked.footprint,
            own_pids,
        };
        let mut watch = DrainWatch::begin(drained, Settings::default(), history);
        let report = watch.sample();
        Self {
            run_id: live.dir.run_id(),
            next_look: Instant::now() + watch.interval(),
            report,
            watch,
            stalled: false,
            dumping: false,
            rest: None,
            awaited: false,
        }
    }

    /// When the next look is due.
    pub(super) fn due(&self) -> Instant {
        self.next_look
    }

    pub(super) fn report(&self) -> &DrainReport {
        &self.report
    }
}

impl Drop for Draining {
    fn drop(&mut self) {
        if let Some(rest) = &self.rest {
            rest.abort();
        }
    }
}

impl Daemon {
    /// Follows the drain of the living run from now on, unless that is done already.
    pub(super) fn begin_drain(&mut self) {
        let Some(live) = &self.live else { return };
        if self.drain.as_ref().is_none_or(|drain| drain.run_id != live.dir.run_id()) {
            let history = history::drains(&self.settings.place);
            self.drain = Some(Draining::begin(live, self.own_pids(), history));
        }
    }

    /// The state was entered by the table: a run that is on its way out is followed.
    pub(super) fn follow_drain(&mut self) {
        match self.machine.state() {
            State::Quiescing | State::Stopping | State::Exiting => self.begin_drain(),
            State::Starting | State::Ready => self.drain = None,
            _ => {}
        }
    }

    pub(super) fn asked_to_exit(&mut self) {
        if let Some(drain) = &mut self.drain {
            drain.watch.asked_to_exit();
        }
    }

    /// The main process is reaped. `left_over`: what becomes of the rest of its tree.
    pub(super) fn drain_reaped(&mut self, tree: Option<Tree>) {
        let Some(drain) = &mut self.drain else { return };
        drain.watch.reaped();
        if self.settings.config.stop.left_over == LeftOver::Stop
            && let Some(tree) = tree.filter(|tree| !tree.others().is_empty())
        {
            let grace = self.settings.config.stop.exit_timeout;
            drain.rest = Some(tokio::spawn(async move { tree.stop(grace, DEATH_PATIENCE).await }));
        }
    }

    /// Whether an ended run's tree and memory are gone; else that is awaited.
    pub(super) async fn await_release(&mut self) -> Option<Input> {
        match &mut self.drain {
            None => return Some(Input::Released),
            Some(drain) => drain.awaited = true,
        }
        self.look_at_drain().await
    }

    /// Looks, where that is due, and tells what is new.
    pub(super) async fn look_at_drain(&mut self) -> Option<Input> {
        let drain = self.drain.as_mut()?;
        let report = drain.watch.sample();
        drain.next_look = Instant::now() + drain.watch.interval();
        drain.report = report.clone();
        let run_id = drain.run_id.clone();
        let (was_stalled, was_dumping) = (drain.stalled, drain.dumping);
        (drain.stalled, drain.dumping) = (report.stalled, report.core_dumping);
        let rest = match &drain.rest {
            Some(rest) if rest.is_finished() => drain.rest.take(),
            Some(_) => None,
            None => None,
        };
        let rest_goes_on = drain.rest.is_some();
        let awaited = drain.awaited;
        if let Some(rest) = rest
            && let Ok(stopped) = rest.await
        {
            self.tell_stopped(&run_id, &stopped);
        }
        let figures = json!({"phase": report.phase, "held_bytes": report.held_bytes.value(), "held_by": report.held_by,
            "summary": report.summary, "action": report.action});
        let mut input = None;
        if report.stalled != was_stalled {
            let kind = if report.stalled { EventKind::DrainStalled } else { EventKind::DrainResumed };
            self.log(kind, Some(&run_id), figures);
            if report.stalled {
                let action = report.action.as_ref().map(|action| format!("; {action}")).unwrap_or_default();
                self.say(&format!("the drain makes no progress: {}{action}", report.summary));
            }
            input = Some(Input::DrainStalled(report.stalled));
        }
        if report.core_dumping && !was_dumping {
            self.log(EventKind::CoreDumping, Some(&run_id), json!({"summary": report.summary}));
            self.say(&format!("prover {} writes a core file: SIGKILL would cut it short", report.pid));
            input = Some(Input::DumpingCore);
        }
        if awaited && report.phase == DrainPhase::Released && !rest_goes_on {
            self.released();
            input = Some(Input::Released);
        } else {
            self.publish();
        }
        input
    }

    fn tell_stopped(&mut self, run_id: &str, stopped: &Stopped) {
        if *stopped == Stopped::default() {
            return;
        }
        self.log(
            EventKind::TreeStopped,
            Some(run_id),
            json!({"terminated": stopped.terminated,
            "killed": stopped.killed, "stuck": stopped.stuck}),
        );
        let names = super::descendants::named(&stopped.terminated);
        self.say(&format!("of run {run_id} these had outlived its main process and were stopped: {names}"));
        for stuck in &stopped.stuck {
            self.say(&format!("{} (pid {}) is there still: {}", stuck.name, stuck.pid, stuck.why));
        }
    }

    /// All of it is back: what that took is remembered, and its cgroup can go.
    fn released(&mut self) {
        let Some(drain) = self.drain.take() else { return };
        if let Some(past) = drain.watch.past() {
            self.log(
                EventKind::MemoryReleased,
                Some(&drain.run_id),
                json!({"bytes": past.bytes, "exiting_seconds": past.exiting_seconds,
                    "releasing_seconds": past.releasing_seconds}),
            );
            // Small ones teach nothing of large ones.
            if past.bytes >= MEMORABLE_BYTES {
                let took = Human(Duration::try_from_secs_f64(past.seconds()).unwrap_or_default());
                self.say(&format!("{} are back after {took}", Bytes(past.bytes)));
                if let Err(error) = history::remember_drain(&self.settings.place, past) {
                    self.say(&format!(
                        "cannot write {}: {error}",
                        self.settings.place.drains_file().display()
                    ));
                }
            }
        }
        self.remove_cgroup_of(&drain.run_id);
    }

    /// The table waits no longer, though not all is back.
    pub(super) fn give_up_release(&mut self) {
        let Some(drain) = self.drain.as_mut().filter(|drain| drain.awaited) else { return };
        drain.awaited = false;
        let (report, run_id) = (drain.report.clone(), drain.run_id.clone());
        if report.phase < DrainPhase::Releasing {
            return;
        }
        self.log(
            EventKind::MemoryNotReleased,
            Some(&run_id),
            json!({"held_bytes": report.held_bytes.value(), "held_by": report.held_by,
                "summary": report.summary, "action": report.action}),
        );
        self.say(&format!("its memory is waited for no longer: {}", report.summary));
        self.remove_cgroup_of(&run_id);
    }
}

/// Drains of less are over before they are looked at twice.
const MEMORABLE_BYTES: u64 = 256 << 20;
