use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sexton_model::verdict::Cause;

use super::table::{STATES, look_up};
use super::*;
use crate::policy::{BackOff, Intensity, Restart, StopTimes};

const SECOND: Duration = Duration::from_secs(1);
const CRASH: Ending = Ending { code: Some(139), cause: Cause::Segfault, hopeless: None };
const CLEAN: Ending = Ending { code: Some(0), cause: Cause::CleanExit, hopeless: None };
const LOST_GPU: Ending = Ending { code: Some(137), cause: Cause::GpuFault, hopeless: Some("reset it") };

fn policy(restart: Restart) -> Policy {
    Policy {
        restart,
        back_off: BackOff { first: SECOND, most: 8 * SECOND },
        stable_after: 60 * SECOND,
        stop: StopTimes { quiesce: 30 * SECOND, exit: 10 * SECOND, release: 20 * SECOND },
        gate_timeout: 40 * SECOND,
        ..Policy::default()
    }
}

fn new(policy: Policy) -> Machine {
    Machine::new(policy)
}

/// Steps without a spread of the back-off.
fn step(machine: &mut Machine, input: Input, seconds: u64) -> Vec<Action> {
    machine.step(input, SECOND * seconds as u32, 0.0)
}

/// Feeds inputs at one time, and returns the actions of the last.
fn feed(machine: &mut Machine, seconds: u64, inputs: &[Input]) -> Vec<Action> {
    inputs.iter().map(|input| step(machine, *input, seconds)).last().unwrap_or_default()
}

const UP: [Input; 3] = [Input::Start, Input::GateOpen, Input::Started];

fn running(policy: Policy) -> Machine {
    let mut machine = new(policy);
    feed(&mut machine, 0, &UP);
    assert_eq!(machine.state(), State::Ready);
    machine
}

#[test]
fn a_start_waits_for_its_memory() {
    let mut machine = new(policy(Restart::OnFailure));
    assert_eq!(step(&mut machine, Input::Start, 0), [Action::WakeAt(40 * SECOND), Action::AwaitMemory]);
    assert_eq!(machine.state(), State::WaitingForMemory);
    assert_eq!(step(&mut machine, Input::Start, 1), []);
    assert_eq!(step(&mut machine, Input::GateOpen, 2), [Action::Sleep, Action::Launch]);
    assert_eq!(machine.state(), State::Starting);
}

#[test]
fn a_gate_that_stays_shut_starts_smaller_or_fails_and_a_start_tries_again() {
    let mut machine = new(policy(Restart::Always));
    feed(&mut machine, 0, &[Input::Start]);
    assert_eq!(step(&mut machine, Input::Due, 40), [Action::Sleep, Action::Fit]);
    assert_eq!(step(&mut machine, Input::GateShut, 40), [Action::Sleep]);
    assert_eq!(machine.state(), State::Failed);
    assert!(step(&mut machine, Input::Start, 50).contains(&Action::AwaitMemory));
    step(&mut machine, Input::Due, 90);
    assert!(step(&mut machine, Input::GateOpen, 90).contains(&Action::Launch));
}

#[test]
fn a_crash_waits_for_its_memory_and_backs_off_longer_each_time_until_stability_resets_it() {
    let mut machine = running(policy(Restart::OnFailure));
    let mut now = 0;
    for delay in [1, 2, 4, 8, 8] {
        let ended = step(&mut machine, Input::Ended(CRASH), now);
        assert_eq!(ended, [Action::WakeAt(SECOND * (now as u32 + 20)), Action::AwaitRelease]);
        assert_eq!(machine.state(), State::Releasing);
        assert_eq!(step(&mut machine, Input::Released, now), [Action::WakeAt(SECOND * (now + delay) as u32)]);
        assert_eq!(machine.state(), State::BackingOff);
        now += delay;
        assert!(step(&mut machine, Input::Due, now).contains(&Action::AwaitMemory));
        feed(&mut machine, now, &UP[1..]);
    }
    now += 60;
    step(&mut machine, Input::Ended(CRASH), now);
    let delayed = step(&mut machine, Input::Released, now);
    assert_eq!(delayed, [Action::WakeAt(SECOND * (now as u32 + 1))]);
    assert_eq!(machine.restarts(), 5);
}

/// horust#318: a program that says "ready" and crashes must not restart for ever at full speed.
#[test]
fn reaching_readiness_resets_neither_the_back_off_nor_the_count_of_failures() {
    let intensity = Intensity { failures: 3, period: 1_000 * SECOND };
    let mut machine = new(Policy {
        awaits_readiness: true,
        intensity,
        stable_after: 5 * SECOND,
        ..policy(Restart::Always)
    });
    feed(&mut machine, 0, &UP[..1]);
    for (now, delay) in [(0, 1), (10, 2), (20, 1)] {
        feed(&mut machine, now, &UP[1..]);
        assert_eq!(machine.state(), State::Starting);
        step(&mut machine, Input::Ready, now);
        assert_eq!(machine.state(), State::Ready);
        // The third was up for long enough: its delay is the first again, and it counts all the same.
        let ended = if now == 20 { 26 } else { now };
        step(&mut machine, Input::Ended(CRASH), ended);
        let wake = step(&mut machine, Input::Released, ended);
        assert_eq!(wake, [Action::WakeAt(SECOND * (ended + delay) as u32)], "{now}");
        step(&mut machine, Input::Due, ended + delay);
    }
    feed(&mut machine, 30, &UP[1..]);
    feed(&mut machine, 31, &[Input::Ready, Input::Ended(CRASH), Input::Released]);
    assert_eq!(machine.state(), State::Failed);
    assert!(machine.failure().unwrap().contains("too often"));
    assert!(feed(&mut machine, 32, &[Input::Start, Input::GateOpen]).contains(&Action::Launch));
    assert_eq!(machine.failure(), None);
}

#[test]
fn a_clean_exit_ends_on_failure_and_any_exit_ends_never() {
    for (restart, ending) in [(Restart::OnFailure, CLEAN), (Restart::Never, CLEAN), (Restart::Never, CRASH)] {
        let mut machine = running(policy(restart));
        // Not before its memory is back, and the rest of its tree gone.
        assert_eq!(
            step(&mut machine, Input::Ended(ending), 1),
            [Action::WakeAt(21 * SECOND), Action::AwaitRelease]
        );
        assert_eq!(
            step(&mut machine, Input::Released, 2),
            [Action::Sleep, Action::Leave(Farewell::AsTheProver(ending.code))],
            "{restart:?} {ending:?}"
        );
        assert_eq!(machine.state(), State::Failed);
    }
    let mut machine = running(policy(Restart::Always));
    assert_eq!(feed(&mut machine, 1, &[Input::Ended(CLEAN), Input::Released]), [Action::WakeAt(2 * SECOND)]);
}

#[test]
fn a_program_that_cannot_be_executed_at_the_first_start_is_a_mistake_and_later_is_not() {
    let failed = Ending { code: Some(127), cause: Cause::StartFailed, hopeless: None };
    for restart in [Restart::Always, Restart::OnFailure] {
        let mut machine = new(policy(restart));
        feed(&mut machine, 0, &UP[..2]);
        let actions = feed(&mut machine, 0, &[Input::Ended(failed), Input::Released]);
        assert_eq!(actions, [Action::Sleep, Action::Leave(Farewell::AsTheProver(Some(127)))]);
        // A deployment may be replacing the file.
        let mut machine = running(policy(restart));
        feed(&mut machine, 1, &[Input::Ended(failed), Input::Released]);
        assert_eq!(machine.state(), State::BackingOff);
    }
}

#[test]
fn whoever_hastens_a_supervisor_that_leaves_anyway_changes_nothing_of_its_code() {
    let mut machine = running(policy(Restart::Never));
    assert_eq!(
        feed(&mut machine, 1, &[Input::Ended(CRASH), Input::Hasten]),
        [Action::Sleep, Action::Leave(Farewell::AsTheProver(CRASH.code))]
    );
    let mut machine = running(policy(Restart::Never));
    assert!(
        feed(&mut machine, 1, &[Input::Ended(CRASH), Input::Start, Input::Released])
            .contains(&Action::AwaitMemory)
    );
}

#[test]
fn a_prover_that_is_only_to_be_quiet_and_cannot_be_goes_on() {
    let mut machine = running(Policy { quiesces: true, ..policy(Restart::Always) });
    assert_eq!(step(&mut machine, Input::Quiesce, 1), [Action::Quiesce]);
    assert_eq!(step(&mut machine, Input::Due, 2), [Action::Sleep, Action::Unquiesce]);
    assert_eq!(machine.state(), State::Ready);
    feed(&mut machine, 3, &[Input::Quiesce, Input::Idle]);
    assert!(machine.is_quiesced());
    assert_eq!(
        feed(&mut machine, 4, &[Input::Drain]).first(),
        Some(&Action::Terminate),
        "it is idle already"
    );
}

#[test]
fn what_no_restart_can_mend_stays_down_until_a_start() {
    let mut machine = running(policy(Restart::Always));
    feed(&mut machine, 1, &[Input::Ended(LOST_GPU), Input::Released]);
    assert_eq!((machine.state(), machine.failure()), (State::Failed, Some("reset it")));
    assert!(feed(&mut machine, 2, &[Input::Start, Input::GateOpen]).contains(&Action::Launch));
}

#[test]
fn a_stop_lets_the_prover_finish_asks_it_to_end_and_kills_it_once() {
    let mut machine = running(Policy { quiesces: true, ..policy(Restart::Always) });
    assert_eq!(step(&mut machine, Input::Stop, 1), [Action::Quiesce, Action::WakeAt(31 * SECOND)]);
    assert_eq!(machine.state(), State::Quiescing);
    assert_eq!(step(&mut machine, Input::Idle, 5), [Action::Terminate, Action::WakeAt(15 * SECOND)]);
    assert_eq!(machine.state(), State::Stopping);
    step(&mut machine, Input::LeaderDied, 6);
    assert_eq!(machine.state(), State::Exiting);
    assert_eq!(step(&mut machine, Input::Due, 15), [Action::Sleep, Action::Kill(Haste::Overdue)]);
    assert_eq!(step(&mut machine, Input::Due, 16), [Action::Sleep]);
    step(&mut machine, Input::DrainStalled(true), 16);
    assert_eq!(machine.state(), State::Stalled);
    step(&mut machine, Input::Ended(CRASH), 17);
    assert_eq!(machine.state(), State::Releasing);
    step(&mut machine, Input::Released, 18);
    assert_eq!(machine.state(), State::Stopped);
}

#[test]
fn a_stop_goes_on_when_the_work_takes_too_long_and_a_drain_is_given_up() {
    let patient = || running(Policy { quiesces: true, ..policy(Restart::Always) });
    let mut machine = patient();
    step(&mut machine, Input::Stop, 0);
    assert!(step(&mut machine, Input::Due, 30).contains(&Action::Terminate));
    let mut machine = patient();
    step(&mut machine, Input::Drain, 0);
    assert_eq!(step(&mut machine, Input::Due, 30), [Action::Sleep, Action::Unquiesce]);
    assert_eq!(machine.state(), State::Ready);
}

#[test]
fn quiescing_alone_is_reversible_and_ends_in_nothing_else() {
    let mut machine = running(Policy { quiesces: true, ..policy(Restart::Always) });
    assert_eq!(step(&mut machine, Input::Quiesce, 0), [Action::Quiesce]);
    assert_eq!(step(&mut machine, Input::Idle, 1), []);
    assert_eq!(machine.state(), State::Quiescing);
    assert_eq!(step(&mut machine, Input::Unquiesce, 2), [Action::Sleep, Action::Unquiesce]);
    assert_eq!(machine.state(), State::Ready);
    // A stop of one that is idle already has nothing to wait for.
    feed(&mut machine, 3, &[Input::Quiesce, Input::Idle]);
    assert!(step(&mut machine, Input::Stop, 4).contains(&Action::Terminate));
}

#[test]
fn a_core_file_in_the_making_gets_more_time_once() {
    let mut machine = running(policy(Restart::Always));
    step(&mut machine, Input::Stop, 0);
    assert_eq!(step(&mut machine, Input::DumpingCore, 8), [Action::WakeAt(18 * SECOND)]);
    assert_eq!(step(&mut machine, Input::DumpingCore, 17), []);
    assert!(step(&mut machine, Input::Due, 18).contains(&Action::Kill(Haste::Overdue)));
}

#[test]
fn a_prover_that_asks_for_more_time_gets_it() {
    let mut machine = running(policy(Restart::Always));
    step(&mut machine, Input::Stop, 0);
    assert_eq!(step(&mut machine, Input::Extend(30 * SECOND), 5), [Action::WakeAt(35 * SECOND)]);
    // Never less than it had.
    assert_eq!(step(&mut machine, Input::Extend(SECOND), 6), [Action::WakeAt(35 * SECOND)]);
}

#[test]
fn a_prover_is_not_killed_where_that_is_not_wanted_unless_somebody_insists() {
    let mut machine = running(Policy { kill: false, ..policy(Restart::Always) });
    step(&mut machine, Input::Stop, 0);
    assert_eq!(step(&mut machine, Input::Due, 10), [Action::Sleep]);
    assert_eq!(step(&mut machine, Input::Hasten, 11), [Action::Sleep, Action::Kill(Haste::Asked)]);
}

#[test]
fn a_second_signal_hastens_each_phase() {
    let mut machine = running(Policy { quiesces: true, ..policy(Restart::Always) });
    assert_eq!(step(&mut machine, Input::Shutdown, 1)[0], Action::Quiesce);
    assert_eq!(step(&mut machine, Input::Hasten, 1)[0], Action::Terminate);
    assert_eq!(step(&mut machine, Input::Hasten, 1), [Action::Sleep, Action::Kill(Haste::Asked)]);
    step(&mut machine, Input::Ended(CRASH), 1);
    assert_eq!(step(&mut machine, Input::Hasten, 1), [Action::Sleep, Action::Leave(Farewell::Asked)]);
}

#[test]
fn start_takes_back_a_stop_under_way_but_not_a_shutdown() {
    let end = [Input::Ended(CRASH), Input::Released, Input::GateOpen];
    let mut machine = running(policy(Restart::Never));
    feed(&mut machine, 1, &[Input::Stop, Input::Start]);
    assert!(feed(&mut machine, 1, &end).contains(&Action::Launch));
    let mut machine = running(policy(Restart::Never));
    feed(&mut machine, 1, &[Input::Shutdown, Input::Start]);
    assert!(feed(&mut machine, 1, &end[..2]).contains(&Action::Leave(Farewell::Asked)));
    // Before it was asked to end, nothing is lost.
    let mut machine = running(Policy { quiesces: true, ..policy(Restart::Never) });
    assert_eq!(feed(&mut machine, 1, &[Input::Stop, Input::Start]), [Action::Sleep, Action::Unquiesce]);
    assert_eq!(machine.state(), State::Ready);
}

#[test]
fn an_unhealthy_prover_is_stopped_and_policy_decides() {
    let mut machine = running(policy(Restart::OnFailure));
    assert!(step(&mut machine, Input::Unhealthy, 1).contains(&Action::Terminate));
    let hung = Ending { code: Some(143), cause: Cause::Watchdog, hopeless: None };
    feed(&mut machine, 2, &[Input::Ended(hung), Input::Released]);
    assert_eq!(machine.state(), State::BackingOff);
}

#[test]
fn memory_that_does_not_come_back_is_waited_for_no_longer_than_allowed() {
    let mut machine = running(policy(Restart::Always));
    feed(&mut machine, 0, &[Input::Stop, Input::Ended(CRASH), Input::DrainStalled(true)]);
    assert_eq!(machine.state(), State::Stalled);
    step(&mut machine, Input::Due, 20);
    assert_eq!(machine.state(), State::Stopped);
    // systemd#30175: what hangs has an override.
    let mut machine = running(policy(Restart::Always));
    feed(&mut machine, 0, &[Input::Restart, Input::Ended(CRASH), Input::DrainStalled(true)]);
    assert_eq!(step(&mut machine, Input::StartNow, 1), [Action::Sleep, Action::Launch]);
}

fn all_inputs() -> Vec<(&'static str, Input)> {
    vec![
        ("started", Input::Started),
        ("ready", Input::Ready),
        ("leader_died", Input::LeaderDied),
        ("ended", Input::Ended(CRASH)),
        ("idle", Input::Idle),
        ("dumping_core", Input::DumpingCore),
        ("released", Input::Released),
        ("drain_stalled", Input::DrainStalled(true)),
        ("gate_open", Input::GateOpen),
        ("gate_shut", Input::GateShut),
        ("due", Input::Due),
        ("extend", Input::Extend(SECOND)),
        ("unhealthy", Input::Unhealthy),
        ("quiesce", Input::Quiesce),
        ("unquiesce", Input::Unquiesce),
        ("stop", Input::Stop),
        ("drain", Input::Drain),
        ("start", Input::Start),
        ("start_now", Input::StartNow),
        ("restart", Input::Restart),
        ("shutdown", Input::Shutdown),
        ("hasten", Input::Hasten),
    ]
}

/// Every step that some sequence of up to five inputs can make.
fn steps_seen() -> BTreeMap<String, BTreeSet<String>> {
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut inputs = all_inputs();
    inputs.extend([("clean", Input::Ended(CLEAN)), ("lost", Input::Ended(LOST_GPU))]);
    let mut random = fastrand::Rng::with_seed(4);
    for round in 0..60_000u64 {
        let restart = [Restart::Always, Restart::OnFailure, Restart::Never][round as usize % 3];
        let quiesces = round % 2 == 0;
        let mut machine = new(Policy { quiesces, awaits_readiness: round % 4 < 2, ..policy(restart) });
        step(&mut machine, Input::Start, 0);
        for now in 0..12 {
            let (_, input) = inputs[random.usize(..inputs.len())];
            let before = machine.state();
            let actions = step(&mut machine, input, now);
            let gone = actions.iter().any(|action| matches!(action, Action::Leave(_)));
            let after = if gone { "leave".to_owned() } else { machine.state().to_string() };
            if before.to_string() != after && before != State::Stalled && after != "stalled" {
                seen.entry(before.to_string()).or_default().insert(after);
            }
            if gone {
                break;
            }
        }
    }
    seen
}

#[test]
fn the_page_shows_what_the_table_says() {
    let seen = steps_seen();
    let mut states = String::new();
    let mut moves = String::new();
    for state in STATES {
        let name = state.to_string();
        let next: Vec<&str> = seen[&name].iter().map(String::as_str).collect();
        states += &format!("{name:<18} → {}\n", next.join(", "));
        moves += &format!("{name}\n");
        let mut by_move: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (word, input) in all_inputs() {
            let does = look_up(state, input);
            if does != Move::Nothing {
                by_move.entry(format!("{does:?}")).or_default().push(word);
            }
        }
        for (does, words) in by_move {
            moves += &format!("    {:<12} {}\n", does, words.join(", "));
        }
    }
    let page = include_str!("states.md");
    let mut blocks = page.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let shown = (blocks.next().unwrap(), blocks.next().unwrap());
    assert!(shown == (&states, &moves), "states.md is to show:\n{states}\n\n{moves}");
}

fn any_input() -> impl Strategy<Value = Input> {
    let inputs: Vec<Input> = all_inputs().into_iter().map(|(_, input)| input).collect();
    prop_oneof![
        4 => prop::sample::select(inputs),
        1 => prop::sample::select(vec![Input::Ended(CLEAN), Input::Ended(LOST_GPU), Input::DrainStalled(false)]),
    ]
}

/// What the world knows: whether a prover is there, and where its memory is.
#[derive(Default)]
struct World {
    alive: bool,
    releasing: bool,
    gate_asked: bool,
    wanted_down: bool,
    overridden: bool,
    failures: Vec<Duration>,
    runs: u32,
    ends: u32,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Whatever happens in whatever order: never two provers, none under a commanded stop, none while the gate is shut or
    /// a drain goes on (unless somebody says so), no more failures than allowed, every time-out within its bounds.
    #[test]
    fn one_prover_at_most_and_a_commanded_stop_wins(
        inputs in prop::collection::vec((any_input(), 0u64..20, 0.0f64..1.0), 0..200),
        restart in prop_oneof![Just(Restart::Always), Just(Restart::OnFailure), Just(Restart::Never)],
        awaits_readiness: bool,
        quiesces: bool,
        failures in 0u32..4,
    ) {
        let intensity = Intensity { failures, period: 100 * SECOND };
        let policy = Policy { awaits_readiness, quiesces, intensity, ..policy(restart) };
        let mut machine = Machine::new(policy);
        let (mut now, mut world) = (Duration::ZERO, World::default());
        for (input, seconds, random) in inputs {
            now += Duration::from_secs(seconds);
            // Only a living prover has news, only an ended one gives its memory back, only what was asked is answered.
            let possible = match input {
                Input::Ended(_) | Input::Started | Input::Ready | Input::LeaderDied | Input::Idle
                | Input::DumpingCore | Input::Extend(_) | Input::Unhealthy => world.alive,
                Input::Released => world.releasing,
                Input::GateOpen | Input::GateShut => world.gate_asked,
                _ => true,
            };
            if !possible {
                continue;
            }
            match input {
                Input::Ended(_) => {
                    world.alive = false;
                    world.ends += 1;
                }
                Input::Released => world.releasing = false,
                Input::Stop | Input::Shutdown | Input::Hasten => world.wanted_down = true,
                Input::Start | Input::Restart | Input::StartNow => world.wanted_down = false,
                _ => {}
            }
            let was = machine.state;
            let commanded = machine.is_commanded();
            for action in machine.step(input, now, random) {
                match action {
                    Action::Launch => {
                        let asked = input == Input::StartNow;
                        prop_assert!(!world.alive && !world.wanted_down, "{machine:?}");
                        prop_assert!(asked || (input == Input::GateOpen && world.gate_asked), "{machine:?}");
                        prop_assert!(asked || !world.releasing || world.overridden, "{machine:?}");
                        world = World { alive: true, runs: world.runs + 1, ends: world.ends, failures: world.failures, ..World::default() };
                    }
                    Action::AwaitRelease => {
                        world.releasing = true;
                        world.overridden = false;
                    }
                    Action::AwaitMemory | Action::Fit => world.gate_asked = true,
                    Action::Terminate | Action::Kill(_) | Action::Quiesce | Action::Unquiesce => prop_assert!(world.alive),
                    Action::WakeAt(at) => prop_assert!(at <= now + 400 * SECOND),
                    Action::Leave(_) => {
                        prop_assert!(!world.alive);
                        return Ok(());
                    }
                    Action::Sleep => {}
                }
            }
            // Its time-out: what is not back by then may never be.
            world.overridden |= was == State::Releasing && input == Input::Due;
            if machine.state() != State::WaitingForMemory {
                world.gate_asked = false;
            }
            if let Input::Ended(ending) = input && !commanded {
                let retries = machine.failure().is_none();
                if retries && !ending.is_success() {
                    world.failures.push(now);
                    world.failures.retain(|at| now.saturating_sub(*at) <= 100 * SECOND);
                    prop_assert!(failures == 0 || world.failures.len() <= failures as usize, "{machine:?}");
                }
            }
            if matches!(input, Input::Start | Input::StartNow | Input::Restart) {
                world.failures.clear();
            }
            prop_assert_eq!(world.runs, world.ends + u32::from(world.alive));
            let up = matches!(
                machine.state,
                State::Starting | State::Ready | State::Quiescing | State::Stopping | State::Exiting
            );
            prop_assert_eq!(world.alive, up, "{:?}", machine);
        }
    }
}
