//! Public reports of deaths that were misjudged, each by its name (the table "Death and its cause" of the scenarios).
//! What they share with the matrix is the stage; what is asked here is what the report was about.
//!
//! Three of them are about what a reader of the kernel log must bear, and have their tests where that reader is:
//! cadvisor#2417 and node-problem-detector#480, #125 (`crates/host`, grammar), rsyslog#4395 and sysklogd#26 (`crates/host`,
//! device).

use sexton_model::exit::ExitRecord;
use sexton_model::verdict::{Answer, Cause, Confidence, Level, Source};
use sexton_model::wait::WaitKind;
use sexton_tests::deaths::{Cell, Company, Death, KernelLog, Outcome};
use sexton_tests::{OrSkip, Supervised};

use crate::assert_right;

/// Has somebody die, and holds the verdict against the table.
#[track_caller]
fn die(death: Death, company: Company, log: KernelLog) -> Option<Outcome> {
    let outcome = Cell { death, company, log }.run(|| {}).or_skip()?;
    assert_right(std::slice::from_ref(&outcome));
    Some(outcome)
}

fn answer(record: &ExitRecord, source: Source) -> Option<Answer> {
    record.evidence.iter().find(|row| row.source == source).map(|row| row.answer)
}

#[test]
fn containerd_6323_k3s_4572_limit_on_the_parent_cgroup() {
    let Some(outcome) = die(Death::AncestorLimit, Company::Exclusive, KernelLog::Readable) else { return };
    assert_eq!(outcome.record.verdict.level, Some(Level::Ancestor));
    let limit = outcome.record.evidence.iter().find(|row| row.source == Source::CgroupLimit).unwrap();
    assert_eq!(limit.answer, Answer::Hit, "the path that bound: {}", limit.detail);
    assert!(limit.detail.contains('/'), "{}", limit.detail);
}

#[test]
fn containerd_8893_systemd_39342_event_lost_or_late() {
    // No event is waited for: the counter says it, also where the kernel log cannot.
    let Some(outcome) = die(Death::OwnLimit, Company::Exclusive, KernelLog::Unreadable) else { return };
    assert_eq!(outcome.record.verdict.cause, Cause::OomOwnLimit);
    assert_eq!(answer(&outcome.record, Source::KernelLog), Some(Answer::Unreadable));
}

#[test]
fn conmon_98_122_notification_at_the_removal_of_the_cgroup() {
    // The cgroups of the stage are removed as soon as the prover is dead.
    let Some(outcome) = die(Death::KillNine, Company::Moved, KernelLog::Unreadable) else { return };
    assert_eq!(outcome.record.verdict.cause, Cause::KilledUnknown);
    assert_eq!(answer(&outcome.record, Source::CgroupOomKill), Some(Answer::Empty));
}

#[test]
fn containerd_cgroups_74_oom_under_v1_not_seen() {
    let Some(outcome) = die(Death::OwnLimit, Company::Moved, KernelLog::Unreadable) else { return };
    assert_eq!(answer(&outcome.record, Source::CgroupOomKill), Some(Answer::Hit));
}

#[test]
fn containerd_7102_event_without_a_kill_of_ours() {
    let Some(outcome) = die(Death::SiblingThenKill, Company::Exclusive, KernelLog::Unreadable) else {
        return;
    };
    assert_eq!(outcome.record.verdict.cause, Cause::KilledUnknown);
}

#[test]
fn containerd_12133_own_limit_or_that_of_the_group() {
    let level = |death| {
        let outcome = die(death, Company::Exclusive, KernelLog::Unreadable)?;
        Some((outcome.record.verdict.cause, outcome.record.verdict.level))
    };
    let Some(own) = level(Death::OwnLimit) else { return };
    assert_eq!(own, (Cause::OomOwnLimit, Some(Level::Own)));
    let above = level(Death::AncestorLimit).unwrap();
    assert_eq!(above, (Cause::OomAncestorLimit, Some(Level::Ancestor)));
}

#[test]
fn moby_15621_flag_set_when_only_a_child_died() {
    let Some(outcome) = die(Death::MemberOom, Company::Exclusive, KernelLog::Readable) else { return };
    assert_eq!(outcome.record.verdict.cause, Cause::ErrorExit);
    assert!(outcome.member_killed, "an event of its own");
}

#[test]
fn pelagos_343_death_by_a_signal_stored_as_exit_0() {
    let Some(outcome) = die(Death::OwnLimit, Company::Exclusive, KernelLog::Readable) else { return };
    let wait = outcome.record.wait;
    assert_eq!((wait.kind, wait.code, wait.signal), (WaitKind::Killed, None, Some(libc::SIGKILL)));
}

#[test]
fn cadvisor_3015_kubedee_7_unusable_kernel_log() {
    let Some(outcome) = die(Death::OwnLimit, Company::Shared, KernelLog::Unreadable) else { return };
    assert_eq!(answer(&outcome.record, Source::KernelLog), Some(Answer::Unreadable));
    // Less sure, and neither silent nor over.
    assert_eq!(outcome.record.verdict.cause, Cause::OomSuspected);
    assert_eq!(outcome.record.verdict.confidence, Confidence::Possible);
}

#[test]
fn systemd_43439_kubernetes_117070_a_helper_is_killed_and_the_service_limps_on() {
    let Some(outcome) = die(Death::MemberOomThenTerm, Company::Moved, KernelLog::Unreadable) else { return };
    assert!(outcome.member_killed);
    // What ended it later is not blamed on that.
    assert_eq!(outcome.record.verdict.cause, Cause::Terminated);
}

/// open-runtimes#548, ralph-to-ralph#65, s6-overlay#320.
#[test]
fn open_runtimes_548_ralph_65_s6_overlay_320_a_crash_behind_a_wrapper_exits_0() {
    let place = Supervised::new();
    let script = place.folder().join("wrapper.sh");
    let check = |body: &str| {
        std::fs::write(&script, body).unwrap();
        place.command(&["check", script.to_str().unwrap()])
    };
    for (masking, line) in [
        ("#!/bin/bash\nif ! prover | tee log; then rc=$?; fi\nexit $rc\n", 2),
        ("#!/bin/sh\nprover || true\nexit $?\n", 3),
    ] {
        let found = check(masking);
        assert_eq!(found.code, Some(1), "{found:?}");
        assert!(found.stdout.contains(&format!("wrapper.sh:{line}:")), "{found:?}");
    }
    let right = check("#!/bin/bash\nset -o pipefail\nrc=0\nprover | tee log || rc=$?\nexit $rc\n");
    assert_eq!((right.code, right.stdout.as_str()), (Some(0), ""), "{right:?}");
}

#[test]
fn moby_43860_datadog_agent_4085_last_output_lost() {
    let place = Supervised::new();
    let running = place.run(&["--restart", "never"], &["sh", "-c", "echo early; printf last; kill -SEGV $$"]);
    running.wait();
    let exit = place.only_exit();
    assert_eq!((exit.last_words.as_str(), exit.last_words_truncated), ("early\nlast", false));
}

#[test]
fn moby_31262_for_linux_761_exit_code_after_a_restart_of_the_manager() {
    let place = Supervised::new();
    let gate = sexton_tests::Gate::new(place.folder(), "gate");
    let script = format!("read line <{}; exit 42", gate.path());
    let (running, status) = place.run_until_ready(&["--restart", "never"], &["sh", "-c", &script]);
    running.kill();
    gate.open();
    place.run(&["--restart", "never"], &["false"]).wait();
    let exits = place.exits();
    let first = exits.iter().find(|exit| Some(&exit.run_id) == status.run_id.as_ref()).unwrap();
    assert_eq!((first.wait.kind, first.wait.code), (WaitKind::Exited, Some(42)));
}
