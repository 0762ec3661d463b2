//! What an ending leads to: its record, what is said of it, and what policy makes of it.

use std::time::Duration;

use serde_json::json;
use sexton_model::Timestamp;
use sexton_model::event::EventKind;
use sexton_model::exit::ExitRecord;
use sexton_model::units::{Bytes, Human};
use sexton_model::verdict::Cause;

use super::retention::{self, Retention};
use super::watchdog::Watchdog;
use super::{Daemon, live};
use crate::config::values::LeftOver;
use crate::keeper::wait_file::WaitRecord;
use crate::machine::Input;
use crate::policy::Ending;
use crate::runs::{RunDir, RunError};
use crate::terminal;

/// What is known of the run that ended last beside its record, until policy has judged it.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// The budget that it was handed.
    budget_bytes: Option<u64>,
    /// Why no restart can help.
    hopeless: Option<&'static str>,
}

impl Daemon {
    /// A run has ended and nobody but us has to know any more.
    pub(super) async fn end(&mut self, wait: Option<WaitRecord<'static>>) {
        if let Some(record) = self.conclude(wait.as_ref()) {
            self.ended(record).await;
        }
    }

    /// Makes the exit record of the living run, which lives no more. A record that cannot be written is still judged.
    pub(super) fn conclude(&mut self, wait: Option<&WaitRecord<'_>>) -> Option<ExitRecord> {
        self.begin_drain();
        let tree = self.tree();
        self.drain_reaped(tree);
        let live = self.live.take()?;
        self.save_tracked(&live);
        let kills = self.signal_trace.kills_of(live.pid);
        let in_flight = self.beside.watchdog.as_ref().map(Watchdog::in_flight).unwrap_or_default();
        self.beside.forget_run();
        self.prover_says = None;
        self.unhealthy = None;
        let facts = live::Known { own_signals: live.own_signals, kills_sent: kills, in_flight };
        let record = self.judged(live::finish(&live.dir, &live.record, wait, facts));
        if live.was_ready {
            self.learn_need(&live.record, &live.tracker.tracked.footprint, &record);
        }
        self.ended.budget_bytes = live.record.budget_bytes;
        if let Some(relay) = &self.relay {
            relay.log_is_complete();
        }
        Some(record)
    }

    /// The record of a judged ending, and what else it says in the journal.
    pub(super) fn judged(&mut self, (ending, written): (live::Ending, Result<(), RunError>)) -> ExitRecord {
        if let Err(error) = written {
            self.say(&error.to_string());
        }
        self.ended.hopeless = ending.hopeless;
        for victim in ending.members_killed {
            self.log(EventKind::MemberOomKilled, Some(&ending.record.run_id), json!({"victim": victim}));
        }
        ending.record
    }

    /// Notes an exit record and lets policy decide.
    async fn ended(&mut self, record: ExitRecord) {
        let ending = self.note_ending(record);
        self.feed(Input::Ended(ending)).await;
    }

    pub(super) fn note_ending(&mut self, record: ExitRecord) -> Ending {
        let start_failed = record.verdict.cause == Cause::StartFailed;
        let cause = record.verdict.cause;
        let details = json!({"wait": record.wait, "cause": record.verdict.cause, "pid": record.pid});
        self.last_exit = Some(record.clone());
        self.log(EventKind::RunEnded, Some(&record.run_id), details);
        let ended = std::mem::take(&mut self.ended);
        let hopeless = self.climb_down(&record, ended.budget_bytes).or(ended.hopeless);
        let ending = Ending { code: record.wait.shell_code(), cause, hopeless };
        if start_failed {
            self.say(record.verdict.summary.trim_start_matches("the program never ran: "));
        } else {
            let after = Human(Duration::from_secs_f64(record.duration_seconds));
            self.say(&format!("prover {} after {after}: {}", record.wait, record.verdict.summary));
        }
        if record.output_dropped_bytes > 0 {
            let lost = Bytes(record.output_dropped_bytes);
            self.say(&format!("{lost} of the prover's output are lost: the log did not take them"));
        }
        if self.settings.config.stop.left_over == LeftOver::Leave {
            self.name_descendants(&record.run_id);
        }
        if start_failed {
            self.remove_cgroup_of(&record.run_id);
        }
        self.prune();
        self.reason = hopeless.map(str::to_owned);
        ending
    }

    /// Of a run that has ended. Not before its memory is back: the charge is counted there.
    pub(super) fn remove_cgroup_of(&mut self, run_id: &str) {
        self.cgroups.ended(&RunDir::new(&self.settings.place.runs_dir(), run_id));
    }

    /// Removes runs that are not to be kept, beside the loop: a log may be large, and a disk slow.
    fn prune(&self) {
        let (runs, kept) = (self.settings.place.runs_dir(), Retention::of(&self.settings.config.log));
        tokio::task::spawn_blocking(move || {
            let pruned = retention::prune(&runs, kept, Timestamp::now());
            let failed = pruned.map_or_else(
                |error| vec![error.to_string()],
                |pruned| {
                    let failed = pruned.failed.into_iter();
                    failed.map(|(id, error)| format!("cannot remove run {id}: {error}")).collect()
                },
            );
            failed.iter().for_each(|text| terminal::say(text));
        });
    }
}
