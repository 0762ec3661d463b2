//! When to restart, and how soon.

use std::time::Duration;

/// Which endings lead to a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Restart {
    /// Every ending.
    Always,
    /// Every ending but exit code 0.
    OnFailure,
    /// None.
    Never,
}

/// What counts of an ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// As a shell shows it: 128+n after signal n. `None` where the status is unknown, or there was no process.
    pub code: Option<u8>,
    /// The program never ran.
    pub start_failed: bool,
}

impl Ending {
    /// Exited with 0. An unknown status is no success.
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

/// What policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Once more, after a delay.
    Restart,
    /// No more.
    GiveUp,
}

/// The delay before restart *n*: `first · 2^n`, spread upwards by up to a quarter so that provers that died together do
/// not come back together, and at most `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackOff {
    /// Before the first restart.
    pub first: Duration,
    /// Before any.
    pub most: Duration,
}

impl BackOff {
    /// The delay before restart `attempt` (from 0), with `random` in [0, 1).
    pub fn delay(&self, attempt: u32, random: f64) -> Duration {
        let doubled = self.first.saturating_mul(1u32.checked_shl(attempt).unwrap_or(u32::MAX));
        let spread = doubled.as_secs_f64() * (1.0 + random.clamp(0.0, 1.0) / 4.0);
        Duration::try_from_secs_f64(spread).unwrap_or(Duration::MAX).min(self.most)
    }
}

/// The whole policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Which endings lead to a restart.
    pub restart: Restart,
    /// How soon.
    pub back_off: BackOff,
    /// A run that lasted so long resets the back-off. Being *ready* does not: a program can say that and crash.
    pub stable_after: Duration,
    /// From SIGTERM to SIGKILL.
    pub stop_timeout: Duration,
    /// Whether the prover is ready only once it says so, and not as soon as its program runs.
    pub awaits_readiness: bool,
}

impl Policy {
    /// What to do after `ending`. `ever_started`: whether a run of this supervisor has run its program before; a
    /// program that could not be executed even once is a mistake in the command, which no restart mends.
    pub fn decide(&self, ending: Ending, ever_started: bool) -> Decision {
        let again = match self.restart {
            Restart::Always => true,
            Restart::OnFailure => !ending.is_success(),
            Restart::Never => false,
        };
        if again && (ever_started || !ending.start_failed) { Decision::Restart } else { Decision::GiveUp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_and_is_spread_by_a_quarter_but_never_beyond_its_cap() {
        let back_off = BackOff { first: Duration::from_millis(100), most: Duration::from_secs(60) };
        assert_eq!(back_off.delay(0, 0.0), Duration::from_millis(100));
        assert_eq!(back_off.delay(3, 0.0), Duration::from_millis(800));
        assert_eq!(back_off.delay(3, 1.0), Duration::from_millis(1_000));
        for attempt in [10, 31, 32, u32::MAX] {
            assert_eq!(back_off.delay(attempt, 0.0), Duration::from_secs(60), "{attempt}");
            assert_eq!(back_off.delay(attempt, 1.0), Duration::from_secs(60), "{attempt}");
        }
        let endless = BackOff { first: Duration::MAX, most: Duration::MAX };
        assert_eq!(endless.delay(7, 1.0), Duration::MAX);
    }
}
