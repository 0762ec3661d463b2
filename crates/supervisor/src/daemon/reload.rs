//! The configuration, read again (SIGHUP).

use std::ffi::OsString;
use std::fmt;

use serde_json::json;
use sexton_config::changes::Change;
use sexton_model::event::EventKind;

use super::{Daemon, own_cgroup};
use crate::config::{self, Config, Faults, settings::hooks};

/// A configuration and the command that follows from it.
pub type Read = (Config, Vec<OsString>);

/// Reads the configuration again, as it was read first: the same flags over the same file.
pub struct Source(Box<dyn Fn() -> Result<Read, Faults> + Send>);

impl Source {
    /// One that reads with `read`.
    pub fn new(read: impl Fn() -> Result<Read, Faults> + Send + 'static) -> Self {
        Self(Box::new(read))
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl Daemon {
    /// Takes what the file says now, as far as that is possible without a new supervisor. With any fault in it nothing
    /// changes.
    pub(super) fn reload(&mut self) {
        self.beside.manager.reloading();
        match (self.settings.source.0)() {
            Ok(read) => self.take(read),
            Err(faults) => {
                let lines: Vec<String> = faults.0.iter().map(ToString::to_string).collect();
                self.log(EventKind::ConfigRefused, None, json!({"faults": lines}));
                lines.iter().for_each(|line| self.say(line));
                self.say("the configuration stays as it was");
            }
        }
        self.beside.manager.ready();
    }

    fn take(&mut self, (mut new, command): Read) {
        let changes = config::reload(&self.settings.config, &new);
        // These stay as they are until there is a new supervisor.
        new.prover.signal_trace = self.settings.config.prover.signal_trace;
        new.control = self.settings.config.control.clone();
        self.settings.config = new;
        self.settings.command = command;
        self.machine.set_policy(self.settings.config.policy());
        self.cgroups.set(own_cgroup::Settings::of(&self.settings.config.cgroup));
        self.beside.hooks.replace(hooks(&self.settings.config));
        let named = |changes: &[Change]| changes.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (now, next, later) = (named(&changes.now), named(&changes.next_start), named(&changes.restart));
        self.log(
            EventKind::ConfigReloaded,
            None,
            json!({"now": now, "from_the_next_start": next, "after_restart": later}),
        );
        let count = now.len() + next.len() + later.len();
        match count {
            0 => self.say("the configuration was read again: nothing in it has changed"),
            _ => {
                let lines = |changes: Vec<String>, when: &str| {
                    changes.into_iter().map(move |change| format!("{change}{when}")).collect::<Vec<_>>()
                };
                let all = [
                    lines(now, ""),
                    lines(next, ", from the next start on"),
                    lines(later, ", only once the supervisor is started anew"),
                ];
                all.concat().iter().for_each(|line| self.say(line));
            }
        }
        self.publish();
    }
}
