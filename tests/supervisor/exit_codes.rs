//! `supervisor run` ends as its prover did, and the record keeps what an exit code cannot tell.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use sexton_model::exit::ExitRecord;
use sexton_model::verdict::Cause;
use sexton_model::wait::{WaitKind, WaitStatus};
use sexton_tests::{Ended, Supervised};

use crate::{sh, wait_until_armed};

const EXITS_CLEANLY_ON_TERM: &str = "trap 'exit 0' TERM; echo armed; while :; do sleep 0.01; done";

fn run_once(place: &Supervised, command: &[&str]) -> (Ended, ExitRecord) {
    let ended = place.run(&["--restart", "never"], command).wait();
    place.wait_until_all_gone();
    (ended, place.only_exit())
}

/// Lines on standard error, less the ones about a start that went well.
fn complaints(ended: &Ended) -> Vec<&str> {
    ended.stderr.lines().filter(|line| !line.contains("prover started")).collect()
}

#[test]
fn an_exit_code_is_passed_on() {
    let place = Supervised::new();
    let (ended, record) = run_once(&place, &sh("exit 7"));
    assert_eq!(ended.code, Some(7));
    assert_eq!((record.wait, record.verdict.cause), (WaitStatus::exited(7), Cause::ErrorExit));
    assert!(record.pid.is_some() && record.exe_sha256.is_some_and(|hash| hash.len() == 64));
    assert!(record.resources.max_rss_bytes.is_some_and(|bytes| bytes > 0));
}

#[test]
fn a_clean_exit_ends_a_supervisor_that_restarts_on_failure() {
    let place = Supervised::new();
    let ended = place.run(&["--restart", "on-failure"], &["true"]).wait();
    assert_eq!(ended.code, Some(0));
    assert_eq!(place.only_exit().verdict.cause, Cause::CleanExit);
}

/// A start of which there is no record has no exit code, whatever an earlier run ended with.
#[test]
fn a_start_without_a_record_is_a_failure_also_after_a_clean_exit() {
    let place = Supervised::new();
    let (running, _) = place.run_until_ready(&["--restart", "never"], &sh(EXITS_CLEANLY_ON_TERM));
    wait_until_armed(&place);
    assert_eq!(place.command(&["stop"]).code, Some(0));
    assert_eq!(place.only_exit().wait, WaitStatus::exited(0));
    fs::rename(place.state().join("runs"), place.state().join("moved")).unwrap();
    assert_eq!(place.command(&["start"]).code, Some(1));
    assert_eq!(running.wait().code, Some(1));
}

#[test]
fn a_signal_is_128_more_and_recorded_as_a_signal() {
    let place = Supervised::new();
    let (ended, record) = run_once(&place, &sh("kill -SEGV $$"));
    assert_eq!(ended.code, Some(139));
    assert!(matches!(record.wait.kind, WaitKind::Killed | WaitKind::Dumped), "{record:?}");
    assert_eq!((record.wait.code, record.wait.signal), (None, Some(11)));
    assert_eq!(record.verdict.cause, Cause::Segfault);
}

/// FACTS: 137 proves nothing. `exit 137` and `kill -9` show the same code and are recorded apart.
#[test]
fn exit_137_is_not_a_kill() {
    for (script, wait, cause) in [
        ("exit 137", WaitStatus::exited(137), Cause::ErrorExit),
        ("kill -9 $$", WaitStatus::killed(9, false), Cause::KilledUnknown),
    ] {
        let place = Supervised::new();
        let (ended, record) = run_once(&place, &sh(script));
        assert_eq!((ended.code, record.wait, record.verdict.cause), (Some(137), wait, cause), "{script}");
    }
}

#[test]
fn a_program_that_is_not_there_is_said_in_one_line_and_ends_with_127() {
    let place = Supervised::new();
    let (ended, record) = run_once(&place, &["/no/such/prover"]);
    assert_eq!(ended.code, Some(127));
    assert!(matches!(complaints(&ended)[..], [line] if line.contains("/no/such/prover")), "{ended:?}");
    assert_eq!(record.verdict.cause, Cause::StartFailed);
}

/// A mistake in the command is no crash: restarting it mends nothing.
#[test]
fn a_program_that_never_ran_is_not_restarted() {
    for restart in ["always", "on-failure"] {
        let place = Supervised::new();
        let ended = place.run(&["--restart", restart], &["no-such-prover-on-path"]).wait();
        assert_eq!(ended.code, Some(127), "{restart}");
        assert_eq!(place.only_exit().verdict.cause, Cause::StartFailed);
    }
}

#[test]
fn a_file_that_is_not_executable_ends_with_126() {
    let place = Supervised::new();
    let file = place.folder().join("prover");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let (ended, record) = run_once(&place, &[file.to_str().unwrap()]);
    assert_eq!(ended.code, Some(126));
    assert!(matches!(complaints(&ended)[..], [line] if line.contains("Permission denied")), "{ended:?}");
    assert_eq!(record.verdict.cause, Cause::StartFailed);
}

#[test]
fn a_missing_interpreter_is_named_as_such() {
    let place = Supervised::new();
    let file = place.folder().join("prover");
    fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    let (ended, record) = run_once(&place, &[file.to_str().unwrap()]);
    assert_eq!(ended.code, Some(127));
    assert!(matches!(complaints(&ended)[..], [line] if line.contains("interpreter")), "{ended:?}");
    assert_eq!(record.verdict.cause, Cause::StartFailed);
}

#[test]
fn a_folder_is_not_a_program() {
    let place = Supervised::new();
    let (ended, record) = run_once(&place, &["/"]);
    assert_eq!((ended.code, record.verdict.cause), (Some(126), Cause::StartFailed));
}
