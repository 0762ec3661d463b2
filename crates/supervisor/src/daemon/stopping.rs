//! How a run is brought to its end: its work first, then a signal, then the last one.

use serde_json::json;
use sexton_diagnosis::death::OwnSignal;
use sexton_model::Timestamp;
use sexton_model::event::EventKind;
use sexton_model::wait::signal_name;

use super::Daemon;
use super::quiesce::{Ended, Quiescing, Surroundings as QuiesceSurroundings, Unquiescing};
use super::tree::Tree;
use crate::machine::{Haste, Input};

impl Daemon {
    /// Has the prover finish its work. [`Input::Idle`] follows, or why that is not to be had.
    pub(super) fn start_quiesce(&mut self) {
        self.beside.unquiescing = None;
        let how = self.settings.config.quiesce(&self.settings.place);
        // The table keeps the time.
        self.beside.quiescing = Some(Quiescing::start(how, None, self.around()));
    }

    /// Takes that back.
    pub(super) fn start_unquiesce(&mut self) {
        self.beside.quiescing = None;
        let how = self.settings.config.quiesce(&self.settings.place);
        self.beside.unquiescing = Some(Unquiescing::start(how, self.around()));
    }

    fn around(&self) -> QuiesceSurroundings {
        let mut told = vec![
            ("SEXTON_NAME".to_owned(), self.settings.place.name.clone().into()),
            ("SEXTON_PROVER_SOCKET".to_owned(), self.settings.place.prover_socket().into_os_string()),
        ];
        if let Some(live) = &self.live {
            told.push(("SEXTON_RUN_ID".to_owned(), live.dir.run_id().into()));
            told.push(("SEXTON_PROVER_PID".to_owned(), live.pid.to_string().into()));
        }
        QuiesceSurroundings { children: self.beside.children.clone(), told }
    }

    pub(super) fn quiesced(&mut self, ended: &Ended) -> Input {
        self.beside.quiescing = None;
        let (kind, details, text) = ended.told();
        let run_id = self.run_id();
        self.log(kind, run_id.as_deref(), details);
        self.say(&format!("prover: {text}"));
        match ended {
            Ended::Quiesced { .. } => Input::Idle,
            Ended::NotInTime { .. } | Ended::Failed { .. } => {
                self.reason = Some(text);
                // It is waited for no longer.
                Input::Due
            }
        }
    }

    pub(super) fn unquiesced(&mut self, result: Result<(), String>) {
        self.beside.unquiescing = None;
        let run_id = self.run_id();
        let why = result.err();
        self.log(EventKind::Unquiesced, run_id.as_deref(), json!({"why": why}));
        match why {
            None => self.say("prover takes work again"),
            Some(why) => {
                let text = format!("prover may take no work still: {why}");
                self.say(&text);
                self.reason = Some(text);
            }
        }
    }

    /// The signal that asks it to end.
    pub(super) fn terminate(&mut self) {
        self.beside.quiescing = None;
        self.asked_to_exit();
        let why = if self.unhealthy.is_some() { "lives and does not work" } else { "asked to stop" };
        self.signal(self.settings.config.stop.signal.0, why);
    }

    /// SIGKILL, to all of the run.
    pub(super) async fn kill(&mut self, haste: Haste) {
        // Whatever it does now is known before it is cut short.
        let _ = self.look_at_drain().await;
        if self.drain.as_ref().is_some_and(|drain| drain.report().core_dumping) {
            self.say("it writes a core file still: SIGKILL cuts that short");
        }
        self.asked_to_exit();
        self.signal(sexton_process::SIGKILL, why_killed(haste));
        if let Some(tree) = self.tree() {
            tree.signal(sexton_process::SIGKILL);
        }
    }

    /// All processes of the living run, where it is one that we may stop as a whole.
    pub(super) fn tree(&self) -> Option<Tree> {
        let live = self.live.as_ref()?;
        let keeper = self.link.as_ref().map(|link| link.state.keeper_pid);
        Some(Tree::of(&live.record, keeper))
    }

    pub(super) fn signal(&mut self, number: i32, reason: &str) {
        let watchdog = self.unhealthy.clone();
        let Some(live) = &mut self.live else { return };
        let run_id = live.dir.run_id();
        let details = json!({"signal": number, "name": signal_name(number), "reason": reason, "pid": live.pid,
            "watchdog": watchdog});
        live.own_signals.push(OwnSignal { signal: number, at: Timestamp::now(), watchdog });
        // Before the signal: an ending that we caused must never look like another's.
        self.log(EventKind::Signalled, Some(&run_id), details);
        let Some(live) = &self.live else { return };
        match live.pidfd.signal(number) {
            Ok(()) if number == sexton_process::SIGKILL => {
                self.say(&format!("prover {reason}: SIGKILL sent"))
            }
            // ESRCH: it has ended, and its record is on the way.
            Ok(()) | Err(_) => {}
        }
    }
}

fn why_killed(haste: Haste) -> &'static str {
    match haste {
        Haste::Overdue => "did not stop in time",
        Haste::Asked => "is given no more time, as asked",
    }
}
