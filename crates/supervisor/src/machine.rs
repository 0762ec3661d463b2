//! The state table: what the supervisor does next, as a pure function of its state, what happened, and the time.
//!
//! Every pair of state and input is decided in [`Machine::step`]. The shell around it ([`crate::daemon`]) performs
//! the actions and feeds back what came of them.
//!
//! ```text
//!              Started            Ready               Ended             Due         Stop       Start     Restart    Shutdown
//! starting     (ready if no       → ready             by policy:        –           → stopping  –        → stopping → stopping
//!               probe)                                 backing_off,                  (TERM)               (TERM)     (TERM)
//! ready        –                  –                    leave            –           → stopping  –        → stopping → stopping
//! stopping     –                  –                   by goal: stopped, KILL        goal down  goal up   goal up    goal gone
//!                                                      starting, leave
//! backing_off  –                  –                   –                 → starting  → stopped  → starting → starting leave
//! stopped      –                  –                   –                 –           –          → starting → starting leave
//! failed       –                  –                   –                 –           –          → starting → starting leave
//! ```
//!
//! `Hasten` (SIGTERM to a supervisor that is leaving already) is KILL while stopping, else as `Shutdown`. A commanded
//! stop always wins over a restart by policy: once `stopping`, an ending is judged by the goal alone.

use std::time::Duration;

use sexton_model::status::State;

use crate::policy::{Decision, Ending, Policy};

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input {
    /// The prover's program runs.
    Started,
    /// The prover says that it takes work.
    Ready,
    /// The run ended, and its record is durable.
    Ended(Ending),
    /// The time asked for by [`Action::WakeAt`] has come.
    Due,
    /// Stop the prover, keep it down.
    Stop,
    /// Have it up.
    Start,
    /// Stop it, then have it up.
    Restart,
    /// Stop it, then leave.
    Shutdown,
    /// Leave, and do not wait for the prover's own end.
    Hasten,
}

/// Why a prover that was asked to end is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haste {
    /// Its time is over.
    Overdue,
    /// Whoever asked waits no longer.
    Asked,
}

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    /// Make a new run.
    Launch,
    /// Ask the prover to end (SIGTERM).
    Terminate,
    /// End it (SIGKILL).
    Kill(Haste),
    /// Feed [`Input::Due`] at this time, in place of any earlier one.
    WakeAt(Duration),
    /// Forget the time asked for.
    Sleep,
    /// End the supervisor: with 0, or with the last run's own code.
    Leave(Farewell),
}

/// What the supervisor's own exit code tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    /// It was asked to leave: 0.
    Asked,
    /// Policy says no more restarts: the code of the ending that it judged, `None` where that has none.
    AsTheProver(Option<u8>),
}

/// What the ending of a stop leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    Up,
    Down,
    Gone,
}

/// The supervisor's state. Times are durations since an arbitrary start, never wall-clock.
#[derive(Debug)]
pub struct Machine {
    policy: Policy,
    state: State,
    goal: Goal,
    /// Whether the current stop has become a kill.
    killed: bool,
    /// Restarts in a row without a stable run between them.
    attempt: u32,
    /// Restarts by policy in all.
    restarts: u64,
    /// Whether any run of this supervisor has ever run its program.
    ever_started: bool,
    started_at: Duration,
}

impl Machine {
    /// A machine whose prover is down, by command so to speak: feed it [`Input::Start`].
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            state: State::Stopped,
            goal: Goal::Up,
            killed: false,
            attempt: 0,
            restarts: 0,
            ever_started: false,
            started_at: Duration::ZERO,
        }
    }

    /// A machine that found its prover alive, taken to be ready.
    pub fn adopting(policy: Policy, now: Duration) -> Self {
        Self { state: State::Ready, ever_started: true, started_at: now, ..Self::new(policy) }
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it stops its prover in order to leave.
    pub fn is_leaving(&self) -> bool {
        self.state == State::Stopping && self.goal == Goal::Gone
    }

    /// Restarts by policy so far.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// One step: `random` in [0, 1) spreads the back-off.
    pub fn step(&mut self, input: Input, now: Duration, random: f64) -> Vec<Action> {
        use State::{BackingOff, Failed, Ready, Starting, Stopped, Stopping};
        match (self.state, input) {
            (Starting, Input::Started) => {
                self.ever_started = true;
                if !self.policy.awaits_readiness {
                    self.state = Ready;
                }
                vec![]
            }
            (Starting, Input::Ready) => {
                self.state = Ready;
                vec![]
            }
            (Starting | Ready, Input::Ended(ending)) => self.decide(ending, now, random),
            (Starting | Ready, Input::Stop) => self.stop(Goal::Down, now),
            (Starting | Ready, Input::Restart) => self.stop(Goal::Up, now),
            (Starting | Ready, Input::Shutdown | Input::Hasten) => self.stop(Goal::Gone, now),

            (Stopping, Input::Ended(_)) => match self.goal {
                Goal::Up => self.launch(now),
                Goal::Down => {
                    self.state = Stopped;
                    vec![Action::Sleep]
                }
                Goal::Gone => self.leave(Farewell::Asked),
            },
            (Stopping, Input::Due | Input::Hasten) => {
                if input == Input::Hasten {
                    self.goal = Goal::Gone;
                }
                if std::mem::replace(&mut self.killed, true) {
                    vec![]
                } else {
                    let haste = if input == Input::Hasten { Haste::Asked } else { Haste::Overdue };
                    vec![Action::Sleep, Action::Kill(haste)]
                }
            }
            // The last word counts, except that nothing takes back a shutdown.
            (Stopping, Input::Stop | Input::Start | Input::Restart | Input::Shutdown) => {
                if self.goal != Goal::Gone {
                    self.goal = match input {
                        Input::Stop => Goal::Down,
                        Input::Shutdown => Goal::Gone,
                        _ => Goal::Up,
                    };
                }
                vec![]
            }

            (BackingOff, Input::Due) => {
                self.restarts += 1;
                self.launch(now)
            }
            (BackingOff, Input::Stop) => {
                self.state = Stopped;
                self.attempt = 0;
                vec![Action::Sleep]
            }
            (BackingOff | Stopped | Failed, Input::Start | Input::Restart) => {
                self.attempt = 0;
                self.launch(now)
            }
            (BackingOff | Stopped | Failed, Input::Shutdown | Input::Hasten) => self.leave(Farewell::Asked),

            // Late or repeated news, and commands for what is already so.
            (Starting | Ready, Input::Due | Input::Start) | (Ready, Input::Started | Input::Ready) => vec![],
            (Stopping, Input::Started | Input::Ready) => vec![],
            (BackingOff, Input::Started | Input::Ready | Input::Ended(_)) => vec![],
            (
                Stopped | Failed,
                Input::Started | Input::Ready | Input::Ended(_) | Input::Due | Input::Stop,
            ) => vec![],
            // States of parts that this table does not have yet (drain and gate).
            (
                State::Quiescing
                | State::Exiting
                | State::Releasing
                | State::WaitingForMemory
                | State::Stalled,
                _,
            ) => {
                vec![]
            }
        }
    }

    fn launch(&mut self, now: Duration) -> Vec<Action> {
        self.state = State::Starting;
        self.goal = Goal::Up;
        self.killed = false;
        self.started_at = now;
        vec![Action::Sleep, Action::Launch]
    }

    fn stop(&mut self, goal: Goal, now: Duration) -> Vec<Action> {
        self.state = State::Stopping;
        self.goal = goal;
        self.killed = false;
        vec![Action::Terminate, Action::WakeAt(now.saturating_add(self.policy.stop_timeout))]
    }

    fn leave(&mut self, farewell: Farewell) -> Vec<Action> {
        if farewell != Farewell::Asked {
            self.state = State::Failed;
        }
        vec![Action::Sleep, Action::Leave(farewell)]
    }

    fn decide(&mut self, ending: Ending, now: Duration, random: f64) -> Vec<Action> {
        if now.saturating_sub(self.started_at) >= self.policy.stable_after {
            self.attempt = 0;
        }
        match self.policy.decide(ending, self.ever_started) {
            Decision::GiveUp => self.leave(Farewell::AsTheProver(ending.code)),
            Decision::Restart => {
                let delay = self.policy.back_off.delay(self.attempt, random);
                self.attempt = self.attempt.saturating_add(1);
                self.state = State::BackingOff;
                vec![Action::WakeAt(now.saturating_add(delay))]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{BackOff, Restart};
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);
    const CRASH: Ending = Ending { code: Some(139), start_failed: false };
    const CLEAN: Ending = Ending { code: Some(0), start_failed: false };

    fn policy(restart: Restart) -> Policy {
        Policy {
            restart,
            back_off: BackOff { first: SECOND, most: 8 * SECOND },
            stable_after: 60 * SECOND,
            stop_timeout: 10 * SECOND,
            awaits_readiness: false,
        }
    }

    fn running(restart: Restart) -> Machine {
        let mut machine = Machine::new(policy(restart));
        assert_eq!(machine.step(Input::Start, Duration::ZERO, 0.0), [Action::Sleep, Action::Launch]);
        assert_eq!(machine.step(Input::Started, Duration::ZERO, 0.0), []);
        assert_eq!(machine.state(), State::Ready);
        machine
    }

    #[test]
    fn a_crash_backs_off_longer_each_time_and_stability_resets_it() {
        let mut machine = running(Restart::OnFailure);
        let mut now = Duration::ZERO;
        for delay in [1, 2, 4, 8, 8] {
            assert_eq!(machine.step(Input::Ended(CRASH), now, 0.0), [Action::WakeAt(now + delay * SECOND)]);
            assert_eq!(machine.state(), State::BackingOff);
            now += delay * SECOND;
            assert_eq!(machine.step(Input::Due, now, 0.0), [Action::Sleep, Action::Launch]);
            machine.step(Input::Started, now, 0.0);
        }
        now += 60 * SECOND;
        assert_eq!(machine.step(Input::Ended(CRASH), now, 0.0), [Action::WakeAt(now + SECOND)]);
        assert_eq!(machine.restarts(), 5);
    }

    #[test]
    fn reaching_readiness_does_not_reset_the_back_off() {
        // horust#318: a program that says "ready" and crashes must not restart for ever at full speed.
        let mut machine = Machine::new(Policy { awaits_readiness: true, ..policy(Restart::Always) });
        machine.step(Input::Start, Duration::ZERO, 0.0);
        let mut now = Duration::ZERO;
        for delay in [1, 2, 4] {
            machine.step(Input::Started, now, 0.0);
            assert_eq!(machine.state(), State::Starting);
            machine.step(Input::Ready, now, 0.0);
            assert_eq!(machine.state(), State::Ready);
            assert_eq!(machine.step(Input::Ended(CRASH), now, 0.0), [Action::WakeAt(now + delay * SECOND)]);
            now += delay * SECOND;
            machine.step(Input::Due, now, 0.0);
        }
    }

    #[test]
    fn a_clean_exit_ends_on_failure_and_any_exit_ends_never() {
        for (restart, ending) in
            [(Restart::OnFailure, CLEAN), (Restart::Never, CLEAN), (Restart::Never, CRASH)]
        {
            let mut machine = running(restart);
            let actions = machine.step(Input::Ended(ending), SECOND, 0.0);
            assert_eq!(
                actions,
                [Action::Sleep, Action::Leave(Farewell::AsTheProver(ending.code))],
                "{restart:?} {ending:?}"
            );
            assert_eq!(machine.state(), State::Failed);
        }
        assert_eq!(
            running(Restart::Always).step(Input::Ended(CLEAN), SECOND, 0.0),
            [Action::WakeAt(2 * SECOND)]
        );
    }

    #[test]
    fn a_program_that_cannot_be_executed_at_the_first_start_is_a_mistake_and_later_is_not() {
        let failed = Ending { code: Some(127), start_failed: true };
        for restart in [Restart::Always, Restart::OnFailure] {
            let mut machine = Machine::new(policy(restart));
            machine.step(Input::Start, Duration::ZERO, 0.0);
            let actions = machine.step(Input::Ended(failed), Duration::ZERO, 0.0);
            assert_eq!(actions, [Action::Sleep, Action::Leave(Farewell::AsTheProver(Some(127)))]);
            // A deployment may be replacing the file.
            assert_eq!(
                running(restart).step(Input::Ended(failed), SECOND, 0.0),
                [Action::WakeAt(2 * SECOND)]
            );
        }
    }

    #[test]
    fn a_start_that_fails_without_a_status_is_not_given_that_of_an_earlier_run() {
        let mut machine = running(Restart::Never);
        machine.step(Input::Stop, SECOND, 0.0);
        machine.step(Input::Ended(CLEAN), SECOND, 0.0);
        machine.step(Input::Start, SECOND, 0.0);
        let unrecorded = Input::Ended(Ending { code: None, start_failed: true });
        let actions = machine.step(unrecorded, SECOND, 0.0);
        assert_eq!(actions, [Action::Sleep, Action::Leave(Farewell::AsTheProver(None))]);
    }

    #[test]
    fn a_stop_becomes_a_kill_after_its_time_and_only_once() {
        let mut machine = running(Restart::Always);
        let stop = machine.step(Input::Stop, SECOND, 0.0);
        assert_eq!(stop, [Action::Terminate, Action::WakeAt(11 * SECOND)]);
        assert_eq!(machine.step(Input::Due, 11 * SECOND, 0.0), [Action::Sleep, Action::Kill(Haste::Overdue)]);
        assert_eq!(machine.step(Input::Due, 12 * SECOND, 0.0), []);
        machine.step(Input::Ended(CRASH), 13 * SECOND, 0.0);
        assert_eq!(machine.state(), State::Stopped);
    }

    #[test]
    fn a_second_signal_hastens() {
        let mut machine = running(Restart::Always);
        assert_eq!(machine.step(Input::Shutdown, SECOND, 0.0)[0], Action::Terminate);
        assert_eq!(machine.step(Input::Hasten, SECOND, 0.0), [Action::Sleep, Action::Kill(Haste::Asked)]);
        assert_eq!(
            machine.step(Input::Ended(CRASH), SECOND, 0.0),
            [Action::Sleep, Action::Leave(Farewell::Asked)]
        );
    }

    #[test]
    fn start_takes_back_a_stop_under_way_but_not_a_shutdown() {
        let mut machine = running(Restart::Never);
        machine.step(Input::Stop, SECOND, 0.0);
        machine.step(Input::Start, SECOND, 0.0);
        assert!(machine.step(Input::Ended(CRASH), SECOND, 0.0).contains(&Action::Launch));
        let mut machine = running(Restart::Never);
        machine.step(Input::Shutdown, SECOND, 0.0);
        machine.step(Input::Start, SECOND, 0.0);
        assert!(machine.step(Input::Ended(CRASH), SECOND, 0.0).contains(&Action::Leave(Farewell::Asked)));
    }

    fn any_input() -> impl Strategy<Value = Input> {
        prop_oneof![
            Just(Input::Started),
            Just(Input::Ready),
            (any::<Option<u8>>(), any::<bool>())
                .prop_map(|(code, start_failed)| Input::Ended(Ending { code, start_failed })),
            Just(Input::Due),
            Just(Input::Stop),
            Just(Input::Start),
            Just(Input::Restart),
            Just(Input::Shutdown),
            Just(Input::Hasten),
        ]
    }

    proptest! {
        /// Whatever happens in whatever order: never two provers, never a launch under a commanded stop, and every
        /// delay within its bounds.
        #[test]
        fn one_prover_at_most_and_a_commanded_stop_wins(
            inputs in prop::collection::vec((any_input(), 0u64..20, 0.0f64..1.0), 0..200),
            restart in prop_oneof![Just(Restart::Always), Just(Restart::OnFailure), Just(Restart::Never)],
            awaits_readiness: bool,
        ) {
            let mut machine = Machine::new(Policy { awaits_readiness, ..policy(restart) });
            let (mut now, mut alive, mut wanted_down) = (Duration::ZERO, false, false);
            for (input, seconds, random) in inputs {
                now += Duration::from_secs(seconds);
                // Only a living prover ends, starts or gets ready.
                if !alive && matches!(input, Input::Ended(_) | Input::Started | Input::Ready) {
                    continue;
                }
                match input {
                    Input::Ended(_) => alive = false,
                    Input::Stop | Input::Shutdown | Input::Hasten => wanted_down = true,
                    Input::Start | Input::Restart => wanted_down = false,
                    _ => {}
                }
                for action in machine.step(input, now, random) {
                    match action {
                        Action::Launch => {
                            prop_assert!(!alive && !wanted_down);
                            alive = true;
                        }
                        Action::Terminate | Action::Kill(_) => prop_assert!(alive),
                        Action::WakeAt(at) => prop_assert!(at > now && at <= now + 10 * SECOND),
                        Action::Leave(_) => {
                            prop_assert!(!alive);
                            return Ok(());
                        }
                        Action::Sleep => {}
                    }
                }
                let up = matches!(machine.state(), State::Starting | State::Ready | State::Stopping);
                prop_assert_eq!(alive, up, "{:?}", machine);
            }
        }
    }
}
