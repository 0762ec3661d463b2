//! What the run says of itself and what is seen of its work: ready, alive, getting on.

use std::time::Duration;

use serde_json::json;
use sexton_diagnosis::progress::Change;
use sexton_model::event::EventKind;
use sexton_model::status::State;

use super::Daemon;
use super::notify::{Message, Notice, Notifications};
use super::probe::{Probe, Readiness};
use super::watchdog::{self, Heartbeats, Watchdog};
use crate::config::values::{MemberOom, Reaction};
use crate::machine::Input;

impl Daemon {
    /// Listens to what the run says by `sd_notify`. Without that it is heard no other way, and that is said.
    pub(super) fn listen_to_notifications(&mut self) {
        let path = self.settings.place.notify_socket();
        match Notifications::listen(&path) {
            Ok(notifications) => self.beside.notifications = Some(notifications),
            Err(error) => self.say(&format!("cannot listen on {}: {error}", path.display())),
        }
    }

    /// Follows what the state asks for: a prover that starts is asked whether it is ready, one that is ready whether it
    /// works.
    pub(super) fn follow_health(&mut self) {
        match self.machine.state() {
            State::Starting if self.machine.policy().awaits_readiness => self.begin_probe(),
            State::Ready => self.begin_watch(),
            State::Quiescing | State::Stalled | State::Starting => {}
            _ => self.beside.probe = None,
        }
    }

    fn begin_probe(&mut self) {
        let Some(live) = self.live.as_ref().filter(|_| self.beside.probe.is_none()) else { return };
        let (readiness, timeout) = self.settings.config.readiness(&self.settings.place);
        self.beside.probe = Some(Probe::start(readiness, live.age(), timeout));
    }

    fn begin_watch(&mut self) {
        self.beside.probe = None;
        let Some(live) = self.live.as_mut().filter(|live| !live.was_ready) else { return };
        live.was_ready = true;
        let config = &self.settings.config;
        self.beside.watchdog = config.watchdog(&self.settings.place).map(Watchdog::start);
        let notify_timeout = config.watchdog.notify_timeout;
        // A shorter one that the prover has promised meanwhile is kept.
        if !notify_timeout.is_zero() {
            self.beside.heartbeats = Heartbeats::new(Some(notify_timeout));
        }
        self.beside.heartbeats.begin();
    }

    pub(super) async fn ready(&mut self, how: &str) {
        if self.machine.state() != State::Starting {
            return;
        }
        self.beside.probe = None;
        let run_id = self.run_id();
        self.log(EventKind::RunReady, run_id.as_deref(), json!({"how": how}));
        self.say("prover is ready");
        self.reason = None;
        self.feed(Input::Ready).await;
    }

    pub(super) async fn readiness_overdue(&mut self, why: String) {
        let run_id = self.run_id();
        let text = format!("it is not ready in time: {why}");
        self.log(EventKind::ReadinessOverdue, run_id.as_deref(), json!({"why": why}));
        self.say(&format!("prover: {text}"));
        self.react(self.settings.config.ready.on_timeout, text).await;
    }

    pub(super) async fn progress(&mut self, change: Change) {
        // One that was asked to end has other worries.
        if !matches!(self.machine.state(), State::Ready | State::Quiescing) {
            return;
        }
        let (kind, details, text) = watchdog::told(&change);
        let run_id = self.run_id();
        self.log(kind, run_id.as_deref(), details);
        self.say(&format!("prover: {text}"));
        match change {
            // Of jobs in nobody's hand none is stuck in the prover: a restart would lose work for nothing.
            Change::Stalled(ref stall) if stall.in_hand => {
                self.react(self.settings.config.watchdog.on_stall, text).await;
            }
            Change::Stalled(_) | Change::Silent { .. } => {
                self.reason = Some(text);
                self.publish();
            }
            Change::Moving { .. } | Change::Answering { .. } => {
                self.reason = None;
                self.publish();
            }
        }
    }

    pub(super) async fn heartbeat_lost(&mut self, why: String) {
        if self.machine.state() != State::Ready {
            return;
        }
        let run_id = self.run_id();
        self.log(EventKind::HeartbeatLost, run_id.as_deref(), json!({"why": why}));
        self.say(&format!("prover: {why}"));
        self.react(self.settings.config.watchdog.on_stall, why).await;
    }

    /// An event it was already; by the configuration it is a restart too.
    async fn react(&mut self, reaction: Reaction, found: String) {
        self.reason = Some(found.clone());
        if reaction == Reaction::Restart {
            self.unhealthy = Some(found);
            self.feed(Input::Unhealthy).await;
        } else {
            self.publish();
        }
    }

    pub(super) async fn noticed(&mut self, notice: Notice) {
        match notice {
            Notice::Message { pid, message } => self.heard(pid, message).await,
            Notice::Refused { pid, why } => {
                let run_id = self.run_id();
                self.log(EventKind::NotifyRefused, run_id.as_deref(), json!({"why": why, "pid": pid}));
            }
        }
    }

    async fn heard(&mut self, pid: i32, message: Message) {
        let run_id = self.run_id();
        if message.status.is_some() && message.status != self.prover_says {
            self.prover_says.clone_from(&message.status);
            let details = json!({"pid": pid, "status": message.status, "errno": message.errno});
            self.log(EventKind::Notified, run_id.as_deref(), details);
        }
        if message.stopping || message.reloading.is_some() {
            let details =
                json!({"pid": pid, "stopping": message.stopping, "reloading": message.reloading.is_some()});
            self.log(EventKind::Notified, run_id.as_deref(), details);
        }
        if !message.refused.is_empty() {
            let why = format!("{} is not taken from a prover", message.refused.join(", "));
            self.log(EventKind::NotifyRefused, run_id.as_deref(), json!({"why": why, "pid": pid}));
        }
        if let Some(interval) = message.heartbeat_interval {
            self.beside.heartbeats.promise(interval);
        }
        if let Some(heartbeat) = message.heartbeat {
            self.beside.heartbeats.note(heartbeat);
        }
        if let Some(more) = message.extend {
            self.extend(more).await;
        }
        let by_notify = matches!(self.settings.config.readiness(&self.settings.place).0, Readiness::Notify);
        if message.ready && by_notify {
            self.ready("READY=1").await;
        } else {
            self.publish();
        }
    }

    async fn extend(&mut self, more: Duration) {
        if let Some(probe) = &mut self.beside.probe {
            probe.extend(more);
        }
        self.feed(Input::Extend(more)).await;
    }

    /// The kernel killed another process of the run's cgroup for memory, and the run lives.
    pub(super) async fn member_killed(&mut self) {
        match self.settings.config.restart.member_oom {
            MemberOom::Report => {}
            MemberOom::Restart => {
                self.say("it is restarted for that ([restart] member_oom)");
                self.feed(Input::Restart).await;
            }
            MemberOom::Kill => self.signal(
                sexton_process::SIGKILL,
                "lost a member of its cgroup to the OOM killer ([restart] member_oom)",
            ),
        }
    }
}
