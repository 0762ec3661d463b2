//! From the configuration to what the parts of the supervisor are made with.

use std::ffi::OsString;
use std::time::Duration;

use sexton_control::prover::{READYZ, STATUS};
use sexton_control::target::Target;

use super::sections::Config;
use super::values::{Preset, Quiesce, ReadyProbe};
use crate::daemon::hooks::Hook;
use crate::daemon::probe::Readiness;
use crate::daemon::quiesce;
use crate::daemon::side_command::SideCommand;
use crate::daemon::watchdog;
use crate::place::Place;
use crate::policy::{BackOff, Intensity, Policy, StopTimes};

impl Config {
    /// When to restart and how to stop.
    pub fn policy(&self) -> Policy {
        let (restart, stop) = (&self.restart, &self.stop);
        Policy {
            restart: restart.policy,
            codes: restart.codes.clone(),
            causes: restart.verdicts.clone(),
            // A first delay that was made longer than the longest one by default is meant.
            back_off: BackOff { first: restart.delay, most: restart.delay_max.max(restart.delay) },
            stable_after: restart.stable_after,
            intensity: Intensity { failures: restart.intensity, period: restart.period },
            stop: StopTimes {
                quiesce: stop.quiesce_timeout,
                exit: stop.exit_timeout,
                release: stop.release_timeout,
            },
            kill: stop.kill,
            quiesces: stop.quiesce != Quiesce::None,
            gate_timeout: self.memory.gate_timeout,
            awaits_readiness: self.ready.probe != ReadyProbe::None,
        }
    }

    /// What shows that the prover is ready, and how long that may take.
    pub fn readiness(&self, place: &Place) -> (Readiness, Option<Duration>) {
        let at = |path| match &self.ready.url {
            Some(url) => url.0.clone(),
            None => Target::unix(place.prover_socket(), path),
        };
        let readiness = match self.ready.probe {
            ReadyProbe::None => Readiness::None,
            ReadyProbe::Notify => Readiness::Notify,
            ReadyProbe::Http => Readiness::Http(at(READYZ)),
            ReadyProbe::Status => Readiness::Status(at(STATUS)),
        };
        (readiness, limit(self.ready.timeout))
    }

    /// Where the prover's status is, where it has one as far as is known.
    fn status_page(&self, place: &Place) -> Option<Target> {
        if let Some(url) = &self.watchdog.url {
            return Some(url.0.clone());
        }
        match (&self.ready.url, self.ready.probe) {
            (Some(url), ReadyProbe::Status) => Some(url.0.clone()),
            (Some(url), ReadyProbe::Http) => Some(url.0.with_path(STATUS)),
            _ if self.preset() == Preset::Bundled || self.ready.probe == ReadyProbe::Status => {
                Some(Target::unix(place.prover_socket(), STATUS))
            }
            _ => None,
        }
    }

    /// What the watchdog asks; `None`: the prover has no status page.
    pub fn watchdog(&self, place: &Place) -> Option<watchdog::Settings> {
        let progress = limit(self.watchdog.progress_timeout);
        Some(watchdog::Settings {
            status: self.status_page(place)?,
            progress_timeout: progress,
            silence: watchdog::SILENCE,
            // Often enough to see a short time pass.
            interval: progress.map_or(watchdog::INTERVAL, |limit| {
                (limit / 4).clamp(watchdog::INTERVAL_MIN, watchdog::INTERVAL)
            }),
        })
    }

    /// How the prover is brought to finish its work.
    pub fn quiesce(&self, place: &Place) -> quiesce::Quiesce {
        let status = self.status_page(place);
        let on_socket = || Target::unix(place.prover_socket(), STATUS);
        let command = |command: &Vec<OsString>| SideCommand {
            command: command.clone(),
            timeout: self.stop.quiesce_timeout,
        };
        match self.stop.quiesce {
            Quiesce::None => quiesce::Quiesce::None,
            Quiesce::Http => quiesce::Quiesce::http(&status.unwrap_or_else(on_socket)),
            Quiesce::Watch => quiesce::Quiesce::Watch {
                status: status.unwrap_or_else(on_socket),
                patience: quiesce::patience(self.stop.quiesce_settle),
            },
            Quiesce::Command => quiesce::Quiesce::Command {
                quiesce: command(&self.stop.quiesce_command),
                unquiesce: (!self.stop.unquiesce_command.is_empty())
                    .then(|| command(&self.stop.unquiesce_command)),
                status: status.map(|status| (status, quiesce::patience(self.stop.quiesce_settle))),
            },
        }
    }
}

/// The hooks of a configuration.
pub fn hooks(config: &Config) -> Vec<Hook> {
    let hook = |hook: &super::sections::Hook| Hook {
        on: hook.on.clone(),
        command: SideCommand { command: hook.command.clone(), timeout: hook.timeout },
    };
    config.hooks.iter().map(hook).collect()
}

/// 0s stands for no limit.
fn limit(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}
