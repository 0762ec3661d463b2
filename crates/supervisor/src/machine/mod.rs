//! What the supervisor does next, as a pure function of its state, what happened, and the time.
//!
//! [`table`] decides every pair of state and input; [`Machine::step`] performs the move that it finds there, with the goal
//! of a stop under way. The shell around it ([`crate::daemon`]) performs the actions and feeds back what came of them.
//!
#![doc = include_str!("states.md")]

pub mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

use sexton_model::status::State;

use crate::policy::{Decision, Ending, Failures, Policy};
use table::Move;

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input {
    /// The prover's program runs.
    Started,
    /// The prover says that it takes work.
    Ready,
    /// Its leader is dead, and other threads of it are not.
    LeaderDied,
    /// The run ended, and its record is durable.
    Ended(Ending),
    /// It has no work in flight and takes none.
    Idle,
    /// It writes a core file.
    DumpingCore,
    /// The memory of the ended run is back.
    Released,
    /// The drain makes no progress (`true`), or makes some again.
    DrainStalled(bool),
    /// A new prover fits.
    GateOpen,
    /// None fits, however small it may be.
    GateShut,
    /// The time asked for by [`Action::WakeAt`] has come.
    Due,
    /// The prover asks for so much more time.
    Extend(Duration),
    /// It lives and does not work, and is to be restarted for that.
    Unhealthy,
    /// Finish the work, take no more.
    Quiesce,
    /// Take work again.
    Unquiesce,
    /// Stop the prover, keep it down.
    Stop,
    /// As `Stop`, but only once it is idle.
    Drain,
    /// Have it up.
    Start,
    /// Have it up, without waiting for memory or anything else.
    StartNow,
    /// Stop it, then have it up.
    Restart,
    /// Stop it, then leave.
    Shutdown,
    /// Leave, and wait no longer for what is waited for now.
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
    /// Ask the prover to finish its work and take no more; feed [`Input::Idle`] when that is so.
    Quiesce,
    /// Take that back.
    Unquiesce,
    /// Ask the prover to end (SIGTERM).
    Terminate,
    /// End it (SIGKILL).
    Kill(Haste),
    /// Follow the memory of the ended run; feed [`Input::Released`] when it is back.
    AwaitRelease,
    /// See whether a new prover fits; feed [`Input::GateOpen`] when it does.
    AwaitMemory,
    /// Make it fit: feed [`Input::GateOpen`] or [`Input::GateShut`].
    Fit,
    /// Make a new run.
    Launch,
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

/// What is to come of the present run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Nobody asked for anything: policy decides on its ending.
    Policy,
    /// It is to be idle and stay.
    Quiet,
    /// It is to end once it is idle, and not before.
    Drained,
    /// It is to end, and another one to come.
    Up,
    /// It is to end.
    Down,
    /// It is to end, and we are to leave.
    Gone,
    /// Over, and we are to leave with this code of its.
    Over(Option<u8>),
    /// Over: another one at this time.
    Retry(Duration),
    /// Over: none before a `start`.
    Failed,
}

/// The supervisor's state. Times are durations since an arbitrary start, never wall-clock.
#[derive(Debug)]
pub struct Machine {
    policy: Policy,
    state: State,
    goal: Goal,
    /// Whether the drain under way makes no progress.
    stalled: bool,
    /// Whether a prover that is to quiesce has become idle.
    idle: bool,
    /// Whether the current stop has become a kill.
    killed: bool,
    /// Whether the current stop was given more time for a core file.
    core_awaited: bool,
    deadline: Option<Duration>,
    /// Restarts in a row without a stable run between them.
    attempt: u32,
    /// Restarts by policy in all.
    restarts: u64,
    failures: Failures,
    failure: Option<&'static str>,
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
            goal: Goal::Policy,
            stalled: false,
            idle: false,
            killed: false,
            core_awaited: false,
            deadline: None,
            attempt: 0,
            restarts: 0,
            failures: Failures::default(),
            failure: None,
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
        if self.stalled { State::Stalled } else { self.state }
    }

    /// Whether it stops its prover in order to leave.
    pub fn is_leaving(&self) -> bool {
        use State::{Exiting, Quiescing, Releasing, Stopping};
        self.goal == Goal::Gone && matches!(self.state, Quiescing | Stopping | Exiting | Releasing)
    }

    /// Whether somebody asked for the end of the present run.
    pub fn is_commanded(&self) -> bool {
        matches!(self.goal, Goal::Drained | Goal::Up | Goal::Down | Goal::Gone)
    }

    /// Whether its prover has finished its work and takes no more.
    pub fn is_quiesced(&self) -> bool {
        self.idle && self.state == State::Quiescing
    }

    /// Restarts by policy so far.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Why there are no more restarts, in the state `failed`.
    pub fn failure(&self) -> Option<&'static str> {
        self.failure.filter(|_| self.state == State::Failed || self.goal == Goal::Failed)
    }

    /// A new policy, from the next decision on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// One step: `random` in [0, 1) spreads the back-off.
    pub fn step(&mut self, input: Input, now: Duration, random: f64) -> Vec<Action> {
        match table::look_up(self.state, input) {
            Move::Nothing => vec![],
            Move::Run => {
                self.ever_started = true;
                if !self.policy.awaits_readiness {
                    self.state = State::Ready;
                }
                vec![]
            }
            Move::Ready => {
                self.state = State::Ready;
                vec![]
            }
            Move::Quiesce => self.quiesce(input, now),
            Move::Unquiesce => self.unquiesce(),
            Move::Idle => {
                self.idle = true;
                if self.goal == Goal::Quiet { vec![] } else { self.terminate(now) }
            }
            Move::Impatience => match self.goal {
                // A prover that is not to end before it is idle goes on as it was.
                Goal::Drained | Goal::Quiet => self.unquiesce(),
                _ => self.terminate(now),
            },
            Move::Terminate if self.state == State::Exiting && self.is_commanded() => self.aim(input),
            Move::Terminate => {
                self.goal = goal_of(input).unwrap_or(self.goal);
                self.terminate(now)
            }
            Move::Aim => self.aim(input),
            Move::Exit => {
                self.state = State::Exiting;
                vec![]
            }
            Move::Extend => self.extend(input, now),
            Move::Kill => self.kill(input),
            Move::End => match input {
                Input::Ended(ending) => self.end(ending, now, random),
                _ => vec![],
            },
            Move::Mark => {
                self.stalled = input == Input::DrainStalled(true);
                vec![]
            }
            Move::GoOn => self.go_on(now),
            Move::Gate => {
                self.attempt = 0;
                self.failures.clear();
                self.gate(now)
            }
            Move::Retry => {
                self.restarts += 1;
                self.gate(now)
            }
            // In place of the deadline, which has passed.
            Move::Fit => vec![Action::Sleep, Action::Fit],
            Move::Launch => self.launch(now),
            Move::Fail => {
                self.enter(State::Failed);
                vec![Action::Sleep]
            }
            Move::Down => {
                self.attempt = 0;
                self.enter(State::Stopped);
                vec![Action::Sleep]
            }
            Move::Leave => match self.goal {
                Goal::Over(code) => self.leave(Farewell::AsTheProver(code)),
                _ => self.leave(Farewell::Asked),
            },
        }
    }

    /// Into a state without a process.
    fn enter(&mut self, state: State) {
        self.state = state;
        self.goal = Goal::Policy;
        self.stalled = false;
        self.deadline = None;
    }

    fn wake_at(&mut self, at: Duration) -> Action {
        self.deadline = Some(at);
        Action::WakeAt(at)
    }

    fn quiesce(&mut self, input: Input, now: Duration) -> Vec<Action> {
        let under_way = self.state == State::Quiescing;
        if self.goal == Goal::Gone {
            return vec![];
        }
        self.goal = goal_of(input).unwrap_or(self.goal);
        if !self.policy.quiesces || (under_way && self.idle) {
            // There is nothing to wait for; where that was asked for alone, the shell has said so.
            return if self.goal == Goal::Quiet { vec![] } else { self.terminate(now) };
        }
        self.state = State::Quiescing;
        let mut actions = if under_way { vec![] } else { vec![Action::Quiesce] };
        if self.goal != Goal::Quiet && self.deadline.is_none() {
            actions.push(self.wake_at(now.saturating_add(self.policy.stop.quiesce)));
        }
        actions
    }

    fn unquiesce(&mut self) -> Vec<Action> {
        if self.goal == Goal::Gone {
            return vec![];
        }
        self.enter(State::Ready);
        self.idle = false;
        vec![Action::Sleep, Action::Unquiesce]
    }

    fn terminate(&mut self, now: Duration) -> Vec<Action> {
        if self.state != State::Exiting {
            self.state = State::Stopping;
        }
        self.killed = false;
        self.core_awaited = false;
        let deadline = self.wake_at(now.saturating_add(self.policy.stop.exit));
        vec![Action::Terminate, deadline]
    }

    fn aim(&mut self, input: Input) -> Vec<Action> {
        if self.goal != Goal::Gone
            && let Some(goal) = goal_of(input)
        {
            self.goal = goal;
        }
        vec![]
    }

    fn extend(&mut self, input: Input, now: Duration) -> Vec<Action> {
        // Without a deadline nobody waits.
        let Some(deadline) = self.deadline else { return vec![] };
        let more = match input {
            Input::Extend(more) => more,
            // Once: a helper that takes the core may hang (systemd#21466).
            _ if !std::mem::replace(&mut self.core_awaited, true) => self.policy.stop.exit,
            _ => return vec![],
        };
        vec![self.wake_at(deadline.max(now.saturating_add(more)))]
    }

    fn kill(&mut self, input: Input) -> Vec<Action> {
        let asked = input == Input::Hasten;
        if asked {
            self.goal = Goal::Gone;
        }
        self.deadline = None;
        if self.killed || !(asked || self.policy.kill) {
            return vec![Action::Sleep];
        }
        self.killed = true;
        vec![Action::Sleep, Action::Kill(if asked { Haste::Asked } else { Haste::Overdue })]
    }

    fn end(&mut self, ending: Ending, now: Duration, random: f64) -> Vec<Action> {
        self.goal = match self.goal {
            Goal::Up => Goal::Up,
            Goal::Down | Goal::Drained => Goal::Down,
            Goal::Gone => Goal::Gone,
            _ => match self.decide(ending, now) {
                Decision::GiveUp => Goal::Over(ending.code),
                Decision::Fail(why) => {
                    self.failure = Some(why);
                    Goal::Failed
                }
                Decision::Restart => {
                    let delay = self.policy.back_off.delay(self.attempt, random);
                    self.attempt = self.attempt.saturating_add(1);
                    Goal::Retry(now.saturating_add(delay))
                }
            },
        };
        self.state = State::Releasing;
        self.stalled = false;
        let deadline = self.wake_at(now.saturating_add(self.policy.stop.release));
        vec![deadline, Action::AwaitRelease]
    }

    fn decide(&mut self, ending: Ending, now: Duration) -> Decision {
        if now.saturating_sub(self.started_at) >= self.policy.stable_after {
            self.attempt = 0;
        }
        let decision = self.policy.decide(ending, self.ever_started);
        let fails = decision == Decision::Restart && !ending.is_success();
        if fails && self.failures.note(now, self.policy.intensity) {
            return Decision::Fail("it failed too often ([restart] intensity)");
        }
        decision
    }

    fn go_on(&mut self, now: Duration) -> Vec<Action> {
        match self.goal {
            Goal::Gone => self.leave(Farewell::Asked),
            Goal::Over(code) => self.leave(Farewell::AsTheProver(code)),
            Goal::Down | Goal::Drained => {
                self.enter(State::Stopped);
                vec![Action::Sleep]
            }
            Goal::Failed => {
                self.enter(State::Failed);
                vec![Action::Sleep]
            }
            Goal::Retry(at) => {
                self.enter(State::BackingOff);
                // Also where that has passed meanwhile: every restart by policy is announced.
                vec![self.wake_at(at)]
            }
            Goal::Up | Goal::Policy | Goal::Quiet => self.gate(now),
        }
    }

    fn gate(&mut self, now: Duration) -> Vec<Action> {
        self.enter(State::WaitingForMemory);
        self.failure = None;
        let deadline = self.wake_at(now.saturating_add(self.policy.gate_timeout));
        vec![deadline, Action::AwaitMemory]
    }

    fn launch(&mut self, now: Duration) -> Vec<Action> {
        self.enter(State::Starting);
        self.failure = None;
        self.killed = false;
        self.idle = false;
        self.started_at = now;
        vec![Action::Sleep, Action::Launch]
    }

    fn leave(&mut self, farewell: Farewell) -> Vec<Action> {
        self.enter(if farewell == Farewell::Asked { State::Stopped } else { State::Failed });
        vec![Action::Sleep, Action::Leave(farewell)]
    }
}

/// The goal that a command sets.
fn goal_of(input: Input) -> Option<Goal> {
    match input {
        Input::Quiesce => Some(Goal::Quiet),
        Input::Drain => Some(Goal::Drained),
        Input::Stop => Some(Goal::Down),
        Input::Start | Input::StartNow | Input::Restart => Some(Goal::Up),
        Input::Shutdown | Input::Hasten => Some(Goal::Gone),
        Input::Unhealthy => Some(Goal::Policy),
        _ => None,
    }
}
