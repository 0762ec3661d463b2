//! How each death comes about, once its stage is set.

use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use sexton_model::event::EventKind;
use sexton_model::process_state::ProcessState;

use super::stage::Stage;
use super::{Company, Death, MEAL_MIB, PATIENCE};
use crate::{Fixture, V1Cgroup, fixture_path, observe, wait_for, wait_until};

/// Brings the death about.
#[track_caller]
pub(super) fn bring_about(death: Death, company: Company, stage: &mut Stage) {
    match death {
        Death::StartFailure => {}
        Death::KillNine => stage.signal_prover(Signal::SIGKILL),
        Death::Term => stage.signal_prover(Signal::SIGTERM),
        Death::OwnStop => command(stage, "stop"),
        Death::OwnEscalation => {
            stage.gate.open();
            stage.wait_for_output("armed\n");
            command(stage, "stop");
        }
        Death::SiblingThenKill => {
            let place = if company == Company::Shared { stage.provers() } else { &stage.sibling };
            be_killed_for_memory_in(place);
            stage.signal_prover(Signal::SIGKILL);
        }
        Death::StallThenKill => stall_then_kill(stage),
        Death::MemberOom | Death::MemberOomThenKill | Death::MemberOomThenTerm => {
            stage.gate.open();
            wait_for(PATIENCE, "the event of a member's death", || stage.event(EventKind::MemberOomKilled));
            match death {
                Death::MemberOomThenKill => stage.signal_prover(Signal::SIGKILL),
                Death::MemberOomThenTerm => stage.signal_prover(Signal::SIGTERM),
                _ => stage.gate.open(),
            }
        }
        Death::ThreadAtOwnLimit => {
            leave_the_leader(stage);
            stage.gate.open();
        }
        Death::LeaderGoneThenKill => {
            leave_the_leader(stage);
            stage.signal_prover(Signal::SIGKILL);
        }
        Death::TracedThenKill => traced_then_kill(stage),
        _ => stage.gate.open(),
    }
}

fn command(stage: &Stage, word: &str) {
    let ended = stage.place.command(&[word]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Somebody else takes too much memory there, and is killed for it.
fn be_killed_for_memory_in(cgroup: &V1Cgroup) {
    let entrance = cgroup.entrance();
    let mut eater = Command::new(&entrance[0]);
    eater.args(&entrance[1..]).arg(fixture_path()).args(["eat", &MEAL_MIB.to_string()]).stdin(Stdio::null());
    let ended = eater.output().expect("a shell");
    let signal = std::os::unix::process::ExitStatusExt::signal(&ended.status);
    assert_eq!(signal, Some(libc::SIGKILL), "the neighbour was to be OOM-killed: {ended:?}");
}

/// It sleeps, neither killed nor able to go on: status and an event say so. Then somebody kills it.
fn stall_then_kill(stage: &Stage) {
    stage.gate.open();
    let event = wait_for(PATIENCE, "the event of a stall", || stage.event(EventKind::StalledUnderOom));
    assert_eq!(event.details["stalled"], true);
    let said = |reason: &String| reason.contains("out of memory") && reason.contains("disabled");
    wait_until(PATIENCE, "a status that says why nothing goes on", || {
        stage.place.status().is_some_and(|status| status.reason.as_ref().is_some_and(said))
    });
    stage.signal_prover(Signal::SIGKILL);
}

/// The prover's leader ends, its worker lives on, and the supervisor knows the worker.
fn leave_the_leader(stage: &Stage) {
    stage.gate.open();
    let pid = stage.pid();
    wait_until(PATIENCE, "a dead leader with a living thread", || {
        matches!(observe(pid), ProcessState::Exiting { .. })
    });
    wait_until(PATIENCE, "the supervisor knows the worker", || {
        let tracked = stage.tracking();
        tracked.is_some_and(|tracked| tracked["threads"].as_object().is_some_and(|threads| threads.len() > 1))
    });
}

/// A debugger holds what is dead: there is no verdict before it lets go.
fn traced_then_kill(stage: &Stage) {
    let pid = stage.pid();
    let tracer = Fixture::spawn(&["trace", "follow", &pid.to_string()]);
    stage.signal_prover(Signal::SIGKILL);
    wait_until(PATIENCE, "the tracer holds it", || matches!(observe(pid), ProcessState::HeldByTracer { .. }));
    assert!(stage.facts().is_none(), "nobody can know yet how it ended");
    drop(tracer);
}
