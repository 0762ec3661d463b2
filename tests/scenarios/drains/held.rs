//! Processes that cannot end: a thread that lives on, a freezer, a tracer.

use nix::sys::signal::Signal;
use sexton_diagnosis::drain::Settings;
use sexton_model::drain::{DrainPhase, Hold};
use sexton_model::reading::Reading;
use sexton_tests::{DEADLINE, Fixture, OrSkip, V1Cgroup, wait_until};

use crate::run::{IMPATIENT, MIB, Run, held, wait_for_release, wait_for_report};

/// earlyoom#309: `Zl`. `ps` shows a zombie without memory; a worker lives on and gives its memory back in steps.
#[test]
fn earlyoom_309_a_dead_leader_with_a_living_thread_is_exiting_and_holds_its_memory() {
    let Some(mut run) = Run::holding(96).or_skip() else { return };
    let mut watch = run.watch(Settings::default());
    assert_eq!(run.fixture.ask("leader-exit"), "ok");
    let report = wait_for_report(&mut watch, "a dead leader", |report| report.phase == DrainPhase::Exiting);
    assert_eq!(report.threads_alive, Reading::Value(1));
    assert!(
        report.summary.starts_with("its leader ended alone, 1 of its threads run on"),
        "{}",
        report.summary
    );
    assert!(report.action.as_ref().is_some_and(|action| action.contains("kill -KILL")));
    assert!(held(&report) >= 96 * MIB);

    for left in [64, 32] {
        run.fixture.ask("release 32");
        wait_for_report(&mut watch, "32 MiB less", |report| held(report) < (left + 16) * MIB);
    }
    run.fixture.tell("exit 5");
    run.fixture.reap();
    let report = wait_for_release(&mut watch);
    assert!(!report.stalled);
}

/// A thread in a frozen cgroup: SIGKILL changes nothing, and the drain says what does.
#[test]
fn a_frozen_thread_stalls_the_drain_and_the_remedy_is_told() {
    let Some(mut run) = Run::holding(64).or_skip() else { return };
    let Some(freezer) = V1Cgroup::new("freezer").or_skip() else { return };
    let worker = run.fixture.ready::<i32>("worker");
    freezer.add_thread(worker);
    freezer.freeze();
    let mut watch = run.watch(IMPATIENT);
    watch.asked_to_exit();
    run.fixture.signal(Signal::SIGTERM);
    run.fixture.signal(Signal::SIGKILL);
    let report = wait_for_report(&mut watch, "a stall", |report| report.stalled);
    assert_eq!((report.phase, &report.threads_alive), (DrainPhase::Exiting, &Reading::Value(1)));
    assert!(held(&report) >= 64 * MIB, "{}", report.summary);
    assert!(report.summary.starts_with("stalled, nothing has moved for"), "{}", report.summary);
    let action = report.action.expect("something to do");
    assert!(action.contains(&format!("thaw the cgroup of thread {worker}")), "{action}");
    assert_eq!((report.eta_seconds, report.eta_reason.as_str()), (None, "nothing moves"));

    freezer.thaw();
    run.fixture.reap();
    wait_for_release(&mut watch);
}

#[test]
fn a_tracer_that_holds_the_dead_process_is_named() {
    let Some(mut run) = Run::holding(64).or_skip() else { return };
    let worker = run.fixture.ready::<i32>("worker");
    let mut watch = run.watch(IMPATIENT);
    watch.asked_to_exit();
    assert_eq!(run.fixture.ask("leader-exit"), "ok");
    let Some(tracer) = Fixture::try_spawn(&["trace", "stop", &worker.to_string()]).or_skip() else { return };
    let report = wait_for_report(&mut watch, "held by its tracer, stalled", |report| {
        report.stalled && !report.held_by.is_empty()
    });
    assert_eq!((report.held_by[0].pid, report.held_by[0].what), (tracer.pid(), Hold::Traces));
    assert!(held(&report) >= 64 * MIB, "{}", report.summary);
    assert!(report.action.is_some_and(|action| action.contains("detach")));

    drop(tracer);
    wait_until(DEADLINE, "held by nobody", || watch.sample().held_by.is_empty());
    run.fixture.tell("exit 0");
    run.fixture.reap();
    wait_for_release(&mut watch);
}
