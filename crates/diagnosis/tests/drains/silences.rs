//! What counts as progress, and what as noise.

use sexton_diagnosis::drain::Figures;
use sexton_model::process_state::{HeldMemory, ProcessState, ThreadFate, WaitPlace};
use sexton_model::reading::Reading;

use crate::stage::*;

const HELD: u64 = 64 * GIB;

/// Looks once a second for two minutes at what `sample` makes of the second, and says when it stalled first.
fn stalled_at(mut sample: impl FnMut(u64) -> (ProcessState, Figures)) -> Option<u64> {
    let mut stage = Stage::new(start(HELD));
    (0..=120).find(|second| {
        let (process, memory) = sample(*second);
        stage.look(*second as f64, process, memory).stalled
    })
}

#[test]
fn a_silence_of_a_minute_is_a_stall_and_one_of_less_is_not() {
    assert_eq!(stalled_at(|_| (leaving(), holding(HELD))), Some(60));
}

#[test]
fn any_one_of_them_is_progress() {
    let step = |second: u64| second * 256 * MIB;
    let still = figures(HELD, HELD, HOST - HELD);
    let charge = |second| Figures { charge_bytes: Reading::Value(HELD - second * 2 * MIB), ..still.clone() };
    let shmem = |second| Figures { shmem_bytes: Reading::Value(HELD - step(second)), ..still.clone() };
    let available =
        |second| Figures { available_bytes: Reading::Value(HOST - HELD + step(second)), ..still.clone() };
    assert_eq!(stalled_at(|second| (leaving(), charge(second))), None, "charge");
    assert_eq!(stalled_at(|second| (leaving(), shmem(second))), None, "Shmem");
    assert_eq!(stalled_at(|second| (leaving(), available(second))), None, "MemAvailable");
    let threads = |second: u64| {
        let left = 200 - second as i32;
        exiting((0..left).map(|tid| thread(tid, ThreadFate::Leaving, WaitPlace::Nowhere, &[])).collect())
    };
    assert_eq!(stalled_at(|second| (threads(second), still.clone())), None, "threads");
    let stack = |second: u64| {
        let frame = format!("uvm_step_{second}+0x1/0x2 [nvidia_uvm]");
        let place = WaitPlace::GpuDriver { module: "nvidia_uvm".to_owned() };
        exiting(vec![thread(9, ThreadFate::Leaving, place, &[&frame])])
    };
    assert_eq!(stalled_at(|second| (stack(second), still.clone())), None, "stack");
}

#[test]
fn noise_is_no_progress() {
    let wobble = |second: u64| if second.is_multiple_of(2) { 0 } else { 900 << 10 };
    let of_charge = |second| figures(HELD - wobble(second), HELD, HOST - HELD);
    assert_eq!(stalled_at(|second| (leaving(), of_charge(second))), Some(60), "stocks of the CPUs");
    let breath = |second: u64| if second.is_multiple_of(2) { 0 } else { 200 * MIB };
    let of_host = |second| figures(HELD, HELD + breath(second), HOST - HELD + breath(second));
    assert_eq!(stalled_at(|second| (leaving(), of_host(second))), Some(60), "others on the host");
}

/// A driver that asks a lost GPU again and again goes through the same functions for ever.
#[test]
fn a_loop_of_stacks_is_no_progress() {
    let looping = |second: u64| {
        let frame = format!("nv_poll_{}+0x{second:x}/0x99 [nvidia]", second % 5);
        exiting(vec![thread(9, ThreadFate::Leaving, WaitPlace::Nowhere, &[&frame])])
    };
    assert_eq!(stalled_at(|second| (looping(second), holding(HELD))), Some(64), "60 s after the fifth stack");
}

#[test]
fn stacks_of_threads_that_run_on_say_nothing_about_the_end() {
    let working = |second: u64| {
        let frame = format!("some_syscall_{second}+0x1/0x2");
        exiting(vec![thread(9, ThreadFate::RunsOn, WaitPlace::Nowhere, &[&frame])])
    };
    assert_eq!(stalled_at(|second| (working(second), holding(HELD))), Some(60));
}

#[test]
fn a_prover_that_works_on_after_it_was_asked_does_not_stall() {
    let mut stage = Stage::new(start(HELD));
    stage.tracker.asked_to_exit();
    stage.look(0.0, running(), holding(HELD));
    let report = stage.look(500.0, running(), holding(HELD));
    assert!(!report.stalled, "its time-out judges it");
    assert_eq!(report.seconds_without_progress, 500.0);
}

#[test]
fn the_reap_is_progress_and_memory_that_stays_after_it_is_a_stall() {
    let mut stage = Stage::new(start(HELD));
    stage.look(0.0, leaving(), holding(HELD));
    assert!(!stage.look(59.0, ProcessState::Gone, holding(HELD)).stalled);
    assert!(!stage.look(118.0, ProcessState::Gone, holding(HELD)).stalled);
    let report = stage.look(119.0, ProcessState::Gone, holding(HELD));
    assert!(report.stalled);
    assert!(
        report.summary.starts_with("stalled, nothing has moved for 1m 00s: the process is gone"),
        "{}",
        report.summary
    );
    assert!(report.action.unwrap().contains("tmpfs"), "nobody was found who holds it");
    assert!(!stage.look(120.0, ProcessState::Gone, holding(HELD / 2)).stalled, "it moves again");
}

/// systemd#21466: the helper that a core is piped to hangs, and the dying process with it.
#[test]
fn systemd_21466_a_core_dump_moves_as_long_as_it_costs_cpu_time() {
    let dumping = || ProcessState::DumpingCore { memory: HeldMemory::Unknown };
    let mut stage = Stage::new(start(HELD));
    for second in 0..=200 {
        let mut sample = sample(f64::from(second), dumping(), holding(HELD));
        sample.cpu_seconds = Some(f64::from(second.min(100)) * 0.2);
        let report = stage.tracker.feed(&sample);
        assert!(
            report.core_dumping
                && report.action.is_some_and(|action| action.contains("SIGKILL would cut it"))
        );
        assert_eq!(report.stalled, second >= 160, "at {second} s");
    }
}

#[test]
fn work_that_the_engine_ends_is_progress_while_it_quiesces() {
    let mut stage = Stage::new(start(HELD));
    for second in 0..100 {
        let mut sample = sample(f64::from(second), running(), holding(HELD));
        sample.work_done = Some(u64::from(second as u32 / 10));
        assert!(stage.tracker.feed(&sample).seconds_without_progress < 10.0);
    }
}

/// Memory that a prover still takes after the wish to stop must not hide that it gives it back later.
#[test]
fn each_phase_begins_with_figures_of_its_own() {
    let mut stage = Stage::new(start(HELD));
    stage.look(0.0, running(), holding(GIB));
    stage.look(1.0, running(), holding(HELD));
    stage.tracker.asked_to_exit();
    stage.look(2.0, leaving(), holding(HELD));
    let report = stage.look(50.0, leaving(), holding(HELD - GIB));
    assert_eq!(report.seconds_without_progress, 0.0);
}
