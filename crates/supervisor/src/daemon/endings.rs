//! What an ending leads to: its record, what is said of it, and what policy makes of it.

use std::time::Duration;

use serde_json::json;
use sexton_model::Timestamp;
use sexton_model::event::EventKind;
use sexton_model::exit::ExitRecord;
use sexton_model::units::{Bytes, Human};

use super::{Daemon, live, retention};
use crate::keeper::wait_file::WaitRecord;
use crate::machine::Input;
use crate::policy::Ending;
use crate::runs::{RunDir, RunError};
use crate::terminal;

impl Daemon {
    /// A run has ended and nobody but us has to know any more.
    pub(super) async fn end(&mut self, wait: Option<WaitRecord<'static>>) {
        if let Some(record) = self.conclude(wait.as_ref()) {
            self.ended(record).await;
        }
    }

    /// Makes the exit record of the living run, which lives no more. A record that cannot be written is still judged.
    pub(super) fn conclude(&mut self, wait: Option<&WaitRecord<'_>>) -> Option<ExitRecord> {
        let live = self.live.take()?;
        self.save_tracked(&live);
        let kills = self.signal_trace.kills_of(live.pid);
        let record = self.judged(live::finish(&live.dir, &live.record, wait, live.own_signals, kills));
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
        let start_failed = record.verdict.cause == sexton_model::verdict::Cause::StartFailed;
        let cause = record.verdict.cause;
        let ending = Ending { code: record.wait.shell_code(), cause, hopeless: None };
        let details = json!({"wait": record.wait, "cause": record.verdict.cause, "pid": record.pid});
        self.log(EventKind::RunEnded, Some(&record.run_id), details);
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
        self.name_descendants(&record.run_id);
        self.cgroups.ended(&RunDir::new(&self.settings.place.runs_dir(), &record.run_id));
        self.prune();
        self.last_exit = Some(record);
        self.reason = None;
        ending
    }

    /// Removes runs that are not to be kept, beside the loop: a log may be large, and a disk slow.
    fn prune(&self) {
        let (runs, kept) = (self.settings.place.runs_dir(), self.settings.retention);
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
