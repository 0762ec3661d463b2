//! Drains that nobody holds up.

use std::process::Command;

use nix::sys::signal::Signal;
use sexton_diagnosis::drain::Settings;
use sexton_model::drain::{DrainMeasure, DrainPhase};
use sexton_model::gate::PeakMeasure;
use sexton_model::reading::Reading;
use sexton_supervisor::daemon::drain::{DrainWatch, Drained};
use sexton_tests::{DEADLINE, OrSkip, Skip, wait_for, wait_until};

use crate::run::{MIB, Run, held, wait_for_release, wait_for_report};

#[test]
fn a_kill_is_over_when_it_is_reaped_and_its_memory_is_back() {
    let Some(mut run) = Run::holding(128).or_skip() else { return };
    let mut watch = run.watch(Settings::default());
    let report = watch.sample();
    assert_eq!((report.phase, report.measure), (DrainPhase::Quiescing, DrainMeasure::Charge));
    assert!(held(&report) >= 128 * MIB, "{}", report.summary);

    watch.asked_to_exit();
    run.fixture.signal(Signal::SIGKILL);
    // The parent does not wait yet: it is not over, whatever its memory does.
    let report = wait_for_report(&mut watch, "unreaped", |report| {
        assert_eq!(report.phase, DrainPhase::Exiting, "{}", report.summary);
        report.unreaped_by.is_some()
    });
    assert_eq!(report.unreaped_by.map(|parent| parent.pid), Some(crate::run::own_pid()));
    assert_eq!(watch.past(), None);

    run.fixture.reap();
    watch.reaped();
    let report = wait_for_release(&mut watch);
    assert!(!report.stalled && report.held_by.is_empty());
    let past = watch.past().expect("it is over");
    assert!(past.bytes >= 128 * MIB && past.seconds() > 0.0, "{past:?}");
}

/// FACTS 2: a process that read a file leaves its page cache charged, with nobody in the cgroup.
#[test]
fn page_cache_that_stays_behind_is_not_waited_for() {
    let Some(mut run) = Run::holding(16).or_skip() else { return };
    let folder = tempfile::tempdir_in(sexton_tests::workspace_root()).expect("a folder that is no tmpfs");
    let file = folder.path().join("parameters").display().to_string();
    let mut command = run.cgroup.entrance();
    command.extend(["dd", "if=/dev/zero", "bs=1M", "count=96", &format!("of={file}")].map(str::to_owned));
    let written = Command::new(&command[0]).args(&command[1..]).output().expect("sh and dd");
    assert!(written.status.success(), "{written:?}");
    run.fixture.signal(Signal::SIGKILL);
    run.fixture.reap();
    let usage: u64 = run.cgroup.read("memory.usage_in_bytes").parse().expect("a number");
    if usage < 64 * MIB {
        return Skip(format!("only {usage} bytes of page cache stayed charged")).report();
    }
    let mut watch = run.watch(Settings::default());
    assert_eq!(wait_for_release(&mut watch).measure, DrainMeasure::Charge);
}

#[test]
fn another_process_with_its_pid_is_not_taken_for_it() {
    let Some(run) = Run::holding(1).or_skip() else { return };
    let drained = Drained {
        pid: run.fixture.pid(),
        start_ticks: 1,
        stays: &[],
        footprint: &run.footprint,
        own_pids: Vec::new(),
    };
    let report = DrainWatch::begin(drained, Settings::default(), Vec::new()).sample();
    assert!(report.phase >= DrainPhase::Releasing, "{}", report.summary);
    assert_eq!(report.threads_alive, Reading::Value(0));
}

/// circus#1044: the shell ended, what it had started lives on in the cgroup and holds the memory.
#[test]
fn circus_1044_a_member_that_is_left_over_is_named() {
    let Some(mut run) = Run::holding(1).or_skip() else { return };
    let mut member = sexton_tests::Fixture::spawn(&["hold-memory", "1"]);
    run.cgroup.add_process(member.pid());
    member.ask("take 64");
    run.look();
    run.fixture.signal(Signal::SIGKILL);
    run.fixture.reap();
    let mut watch = run.watch(Settings::default());
    let report = wait_for_report(&mut watch, "a holder", |report| !report.held_by.is_empty());
    assert_eq!(report.phase, DrainPhase::Releasing);
    let holder = &report.held_by[0];
    assert_eq!(holder.pid, member.pid());
    assert_eq!(holder.what, sexton_model::drain::Hold::CgroupMember);
    assert!(holder.bytes.is_some_and(|bytes| bytes >= 64 * MIB), "{holder:?}");
    member.tell("exit 0");
    member.reap();
    wait_for_release(&mut watch);
}

#[test]
fn the_peak_of_a_run_is_remembered_when_it_has_given_back() {
    let Some(mut run) = Run::holding(64).or_skip() else { return };
    run.fixture.ask("release 64");
    wait_until(DEADLINE, "the memory is given back", || {
        run.look();
        let usage: u64 = run.cgroup.read("memory.usage_in_bytes").parse().expect("a number");
        usage < 32 * MIB
    });
    let (peak, measure) = wait_for(DEADLINE, "a peak", || run.footprint.peak(None));
    assert_eq!(measure, PeakMeasure::Charge);
    assert!((64 * MIB..96 * MIB).contains(&peak), "{peak}");
    let json = serde_json::to_string(&run.footprint).expect("it can be kept");
    let kept: sexton_supervisor::daemon::footprint::Footprint =
        serde_json::from_str(&json).expect("and read");
    assert_eq!(kept.peak(None), Some((peak, measure)));
}
