//! From the configuration to what the parts of the supervisor are made with.

use super::sections::Config;
use super::values::{Quiesce, ReadyProbe};
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
}
