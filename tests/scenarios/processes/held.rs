//! Held by someone: a signal, a tracer.

use std::os::unix::process::ExitStatusExt;

use nix::sys::signal::Signal;
use sexton_diagnosis::process_state::explain;
use sexton_model::process_state::{HeldMemory, ProcessState};
use sexton_model::reading::Reading;
use sexton_model::task::ProcessRef;
use sexton_tests::{DEADLINE, Fixture, OrSkip, observe, wait_for, wait_until};

#[track_caller]
fn assert_is(tracer: Option<&ProcessRef>, fixture: &Fixture) {
    let tracer = tracer.expect("a tracer of our own namespace");
    assert_eq!(tracer.pid, fixture.pid());
    assert_eq!(tracer.comm, Reading::Value("sexton-fixture".to_owned()));
}

#[test]
fn a_stopped_process_is_not_a_dead_one() {
    let fixture = Fixture::spawn(&["hold-memory", "1"]);
    let pid = fixture.pid();
    assert!(matches!(observe(pid), ProcessState::Running { .. }));
    fixture.signal(Signal::SIGSTOP);
    wait_until(DEADLINE, "stopped", || observe(pid) == ProcessState::Stopped);
    assert_eq!(explain(pid, &ProcessState::Stopped).action, format!("continue it: kill -CONT {pid}"));
    fixture.signal(Signal::SIGCONT);
    wait_until(DEADLINE, "running", || matches!(observe(pid), ProcessState::Running { .. }));
}

#[test]
fn a_debugger_that_stopped_a_living_process_is_named() {
    let fixture = Fixture::spawn(&["hold-memory", "1"]);
    let pid = fixture.pid();
    let Some(tracer) = Fixture::try_spawn(&["trace", "stop", &pid.to_string()]).or_skip() else { return };
    match observe(pid) {
        ProcessState::StoppedByTracer { tracer: found, threads } => {
            assert_is(found.as_ref(), &tracer);
            assert_eq!(threads, [pid]);
        }
        other => panic!("not stopped by its tracer: {other:?}"),
    }
    drop(tracer);
    wait_until(DEADLINE, "running again", || matches!(observe(pid), ProcessState::Running { .. }));
}

/// FACTS 6, `Zl`, traced: the leader is dead, and a thread that a tracer stopped keeps the process and its memory.
#[test]
fn a_tracer_that_stopped_a_thread_holds_a_dead_process() {
    let mut fixture = Fixture::spawn(&["hold-memory", "32"]);
    let (pid, worker) = (fixture.pid(), fixture.ready::<i32>("worker"));
    assert_eq!(fixture.ask("leader-exit"), "ok");
    let Some(tracer) = Fixture::try_spawn(&["trace", "stop", &worker.to_string()]).or_skip() else { return };

    let (found, stopped, memory) = wait_for(DEADLINE, "held by its tracer", || match observe(pid) {
        ProcessState::HeldByTracer { tracer, stopped, memory } => Some((tracer, stopped, memory)),
        _ => None,
    });
    assert_is(found.as_ref(), &tracer);
    assert_eq!(stopped.iter().map(|thread| thread.thread.tid).collect::<Vec<_>>(), [worker]);
    assert!(
        matches!(memory, HeldMemory::Mapped { tid, memory } if tid == worker && memory.total_bytes >= 32 << 20)
    );
    assert_eq!(fixture.try_reap(), None);

    drop(tracer);
    wait_until(DEADLINE, "exiting", || {
        matches!(observe(pid), ProcessState::Exiting { leader_dead: true, .. })
    });
    fixture.tell("exit 3");
    assert_eq!(fixture.reap().code(), Some(3));
}

/// FACTS 1: leader and every thread are dead, and the parent cannot reap, since a tracer has not waited.
#[test]
fn a_tracer_that_does_not_wait_keeps_zombies_from_their_parent() {
    let mut fixture = Fixture::spawn(&["hold-memory", "8"]);
    let (pid, worker) = (fixture.pid(), fixture.ready::<i32>("worker"));
    let tids = [pid.to_string(), worker.to_string()];
    let Some(tracer) = Fixture::try_spawn(&["trace", "follow", &tids[0], &tids[1]]).or_skip() else { return };
    assert!(matches!(observe(pid), ProcessState::Running { .. }), "traced and running");

    fixture.signal(Signal::SIGKILL);
    let (found, memory) = wait_for(DEADLINE, "held by its tracer", || match observe(pid) {
        ProcessState::HeldByTracer { tracer, stopped, memory } if stopped.is_empty() => {
            Some((tracer, memory))
        }
        _ => None,
    });
    assert_is(found.as_ref(), &tracer);
    assert_eq!(memory, HeldMemory::Unmapped);
    assert_eq!(fixture.try_reap(), None, "the parent is not told yet");
    let sentence = explain(pid, &observe(pid)).sentence;
    assert!(sentence.contains(&format!("pid {}", tracer.pid())), "{sentence}");

    drop(tracer);
    assert_eq!(fixture.reap().signal(), Some(9));
}
