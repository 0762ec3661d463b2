//! When to restart, and how soon.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sexton_model::verdict::Cause;

/// Which endings lead to a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Every ending.
    Always,
    /// Every ending but exit code 0.
    OnFailure,
    /// None.
    Never,
}

/// What a rule says of an ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Restart after it, whatever [`Restart`] says.
    Restart,
    /// No restart: the supervisor ends with the prover's code.
    Stop,
    /// No restart before somebody says `start`.
    Fail,
}

/// What counts of an ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// As a shell shows it: 128+n after signal n. `None` where the status is unknown, or there was no process.
    pub code: Option<u8>,
    /// What ended it.
    pub cause: Cause,
    /// Why no restart can help, where that is known: a GPU that needs a reset, a ladder without a step left.
    pub hopeless: Option<&'static str>,
}

impl Ending {
    /// Exited with 0. An unknown status is no success.
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }

    /// The program never ran.
    pub fn start_failed(self) -> bool {
        self.cause == Cause::StartFailed
    }
}

/// What policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Once more, after a delay.
    Restart,
    /// No more: the supervisor leaves with the prover's code.
    GiveUp,
    /// No more before somebody says `start`: why.
    Fail(&'static str),
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

/// How many failures within how long are too many. Failures of a prover that had been ready count as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intensity {
    /// Failures that are still restarted; 0 stands for any number.
    pub failures: u32,
    /// Within so long.
    pub period: Duration,
}

/// The times of the last failures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failures(VecDeque<Duration>);

impl Failures {
    /// Notes one, and returns whether that makes too many.
    pub fn note(&mut self, now: Duration, intensity: Intensity) -> bool {
        self.0.push_back(now);
        while self.0.front().is_some_and(|at| now.saturating_sub(*at) > intensity.period) {
            self.0.pop_front();
        }
        intensity.failures > 0 && self.0.len() > intensity.failures as usize
    }

    /// Forgets them, as a commanded start does.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// The time that each phase of a stop may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopTimes {
    /// Until its work is done and it takes no more.
    pub quiesce: Duration,
    /// From SIGTERM to its end. SIGKILL follows.
    pub exit: Duration,
    /// From its end until its memory is back.
    pub release: Duration,
}

/// The whole policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Which endings lead to a restart.
    pub restart: Restart,
    /// Exceptions by exit code.
    pub codes: BTreeMap<u8, Rule>,
    /// Exceptions by cause, which go before those by code.
    pub causes: BTreeMap<Cause, Rule>,
    /// How soon.
    pub back_off: BackOff,
    /// A run that lasted so long resets the back-off. Being *ready* does not: a program can say that and crash.
    pub stable_after: Duration,
    /// When to give up.
    pub intensity: Intensity,
    /// How long a stop may take.
    pub stop: StopTimes,
    /// Whether an overdue prover is killed.
    pub kill: bool,
    /// Whether the prover can be asked to finish its work before it is stopped.
    pub quiesces: bool,
    /// How long a start may wait for memory.
    pub gate_timeout: Duration,
    /// Whether the prover is ready only once it says so, and not as soon as its program runs.
    pub awaits_readiness: bool,
}

impl Default for Policy {
    fn default() -> Self {
        const MINUTE: Duration = Duration::from_secs(60);
        Self {
            restart: Restart::OnFailure,
            // `timeout` failing itself, EX_CONFIG: more of the same would fail in the same way.
            codes: BTreeMap::from([(78, Rule::Fail), (125, Rule::Fail)]),
            causes: BTreeMap::new(),
            back_off: BackOff { first: Duration::from_secs(1), most: MINUTE },
            stable_after: MINUTE,
            intensity: Intensity { failures: 30, period: 60 * MINUTE },
            stop: StopTimes { quiesce: 10 * MINUTE, exit: Duration::from_secs(90), release: 5 * MINUTE },
            kill: true,
            quiesces: false,
            gate_timeout: 15 * MINUTE,
            awaits_readiness: false,
        }
    }
}

impl Policy {
    /// What to do after `ending`. `ever_started`: whether a run of this supervisor has run its program before; a
    /// program that could not be executed even once is a mistake in the command, which no restart mends.
    pub fn decide(&self, ending: Ending, ever_started: bool) -> Decision {
        if self.restart == Restart::Never || (ending.start_failed() && !ever_started) {
            return Decision::GiveUp;
        }
        if let Some(why) = ending.hopeless {
            return Decision::Fail(why);
        }
        let by_code = || self.codes.get(&ending.code?);
        match self.causes.get(&ending.cause).or_else(by_code) {
            Some(Rule::Restart) => Decision::Restart,
            Some(Rule::Stop) => Decision::GiveUp,
            Some(Rule::Fail) => Decision::Fail("a rule of [restart] says that no restart can help"),
            None if self.restart == Restart::OnFailure && ending.is_success() => Decision::GiveUp,
            None => Decision::Restart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(code: Option<u8>, cause: Cause) -> Ending {
        Ending { code, cause, hopeless: None }
    }

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

    #[test]
    fn failures_are_too_many_within_a_period_only() {
        let intensity = Intensity { failures: 2, period: Duration::from_secs(10) };
        let mut failures = Failures::default();
        let mut note = |seconds| failures.note(Duration::from_secs(seconds), intensity);
        assert_eq!([note(0), note(9), note(11), note(20), note(21)], [false, false, false, false, true]);
        let endless = Intensity { failures: 0, ..intensity };
        assert!((0..100).all(|_| !failures.note(Duration::from_secs(20), endless)));
    }

    #[test]
    fn a_rule_by_cause_goes_before_one_by_code_and_both_before_the_general_one() {
        let policy = Policy {
            causes: BTreeMap::from([(Cause::ErrorExit, Rule::Restart)]),
            codes: BTreeMap::from([(78, Rule::Fail), (3, Rule::Stop), (0, Rule::Restart)]),
            ..Policy::default()
        };
        let decide = |code, cause| policy.decide(ending(Some(code), cause), true);
        assert_eq!(decide(78, Cause::ErrorExit), Decision::Restart);
        assert!(matches!(decide(78, Cause::Panic), Decision::Fail(_)));
        assert_eq!(decide(3, Cause::Panic), Decision::GiveUp);
        assert_eq!(decide(0, Cause::CleanExit), Decision::Restart);
        assert_eq!(Policy::default().decide(ending(Some(0), Cause::CleanExit), true), Decision::GiveUp);
    }

    #[test]
    fn what_no_restart_can_mend_does_not_loop() {
        let policy = Policy { restart: Restart::Always, ..Policy::default() };
        let lost = Ending { hopeless: Some("the GPU needs a reset"), ..ending(Some(137), Cause::GpuFault) };
        assert_eq!(policy.decide(lost, true), Decision::Fail("the GPU needs a reset"));
        for code in [78, 125] {
            assert!(matches!(policy.decide(ending(Some(code), Cause::ErrorExit), true), Decision::Fail(_)));
        }
        // Nobody is there to wait for a `start`.
        let never = Policy { restart: Restart::Never, ..Policy::default() };
        assert_eq!(never.decide(ending(Some(78), Cause::ErrorExit), true), Decision::GiveUp);
    }
}
