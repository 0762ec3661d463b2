//! When a prover is started again, and that a command always wins.

use sexton_model::status::State;
use sexton_model::verdict::Cause;
use sexton_tests::{DEADLINE, Supervised, wait_until};

use crate::{sh, wait_until_armed};

#[test]
fn a_crash_is_followed_by_a_restart_after_a_back_off() {
    let place = Supervised::new();
    let _running = place.run(&["--backoff", "1ms"], &sh("exit 3"));
    let status = place.wait_for_status("three restarts", |status| status.restarts >= 3);
    assert_eq!(status.last_exit.expect("a last exit").wait.code, Some(3));
    let pids: std::collections::BTreeSet<_> = place.exits().iter().map(|exit| exit.pid).collect();
    assert!(pids.len() >= 3, "{pids:?}");
}

#[test]
fn a_back_off_says_when_it_ends() {
    let place = Supervised::new();
    let _running = place.run(&["--backoff", "1h", "--backoff-max", "1h"], &sh("exit 3"));
    let status = place.wait_for_state(State::BackingOff);
    let wait = status.next_start_at.expect("a time").duration_since(status.since).as_secs_f64();
    assert!((3590.0..=3601.0).contains(&wait), "the longest delay is an hour: {wait}");
    assert!(status.reason.is_some() && status.pid.is_none() && status.run_id.is_none(), "{status:?}");
}

/// circus#1157: a bad command and endless retries made the supervisor unresponsive.
#[test]
fn circus_1157_a_crash_loop_leaves_the_control_socket_responsive() {
    let place = Supervised::new();
    let running = place.run(&["--backoff", "0s", "--backoff-max", "0s"], &sh("exit 3"));
    for times in [10, 20, 30] {
        place.wait_for_status("restarts", |status| status.restarts >= times);
        assert_eq!(place.command(&["status"]).code, Some(0));
    }
    assert_eq!(place.command(&["stop"]).code, Some(0));
    let runs = place.runs().len();
    assert_eq!(place.wait_for_state(State::Stopped).pid, None);
    assert_eq!(place.runs().len(), runs, "a stop ends the loop");
    assert_eq!(place.command(&["shutdown"]).code, Some(0));
    assert_eq!(running.wait().code, Some(0));
}

/// circus#965, #809, process-compose#149: a respawn during a commanded stop.
#[test]
fn circus_965_a_stop_wins_over_any_restart_policy() {
    let place = Supervised::new();
    // Fails on SIGTERM, which a policy alone would answer by a restart.
    let script = "trap 'exit 9' TERM; echo armed; while :; do sleep 0.01; done";
    let (_running, before) = place.run_until_ready(&["--restart", "always", "--backoff", "0s"], &sh(script));
    wait_until_armed(&place);
    let ended = place.command(&["stop"]);
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.starts_with("stopped"), "{ended:?}");
    let record = place.only_exit();
    assert_eq!((record.wait.code, record.verdict.cause), (Some(9), Cause::StoppedBySupervisor));

    assert_eq!(place.command(&["start"]).code, Some(0));
    let after = place.wait_for_state(State::Ready);
    assert_ne!(after.pid, before.pid);
    assert_eq!(after.restarts, 0, "by command, not by policy");
}

#[test]
fn stop_and_start_may_be_repeated() {
    let place = Supervised::new();
    let (_running, first) = place.run_until_ready(&[], &["sleep", "1000"]);
    assert_eq!(place.command(&["start"]).code, Some(0), "it runs already");
    assert_eq!(place.wait_for_state(State::Ready).pid, first.pid);
    for _ in 0..2 {
        assert_eq!(place.command(&["stop"]).code, Some(0));
        assert_eq!(place.wait_for_state(State::Stopped).pid, None);
    }
    assert_eq!(place.command(&["start"]).code, Some(0));
    assert_eq!(place.wait_for_state(State::Ready).restarts, 0);
}

#[test]
fn a_restart_gives_another_process() {
    let place = Supervised::new();
    let (_running, before) = place.run_until_ready(&["--restart", "never"], &["sleep", "1000"]);
    let ended = place.command(&["restart"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let after = place.wait_for_state(State::Ready);
    assert!(after.pid.is_some() && after.pid != before.pid && after.run_id != before.run_id);
    assert!(!place.living().contains(&before.pid.unwrap()));
    assert_eq!(place.only_exit().verdict.cause, Cause::StoppedBySupervisor);
}

/// A start of which there is no record says why all the same, for as long as it is waited for.
#[test]
fn a_back_off_after_a_start_without_a_record_says_why() {
    let place = Supervised::new();
    let flags = ["--restart", "always", "--backoff", "1h", "--backoff-max", "1h"];
    let _running = place.run(&flags, &sh("exit 3"));
    place.wait_for_state(State::BackingOff);
    std::fs::rename(place.state().join("runs"), place.state().join("moved")).unwrap();
    assert_eq!(place.command(&["start"]).code, Some(1));
    let reason = place.wait_for_state(State::BackingOff).reason.unwrap();
    assert!(reason.contains("cannot make the run's folder") && reason.ends_with("follows"), "{reason}");
}

#[test]
fn a_stop_during_a_back_off_ends_it() {
    let place = Supervised::new();
    let running = place.run(&["--backoff", "1h", "--backoff-max", "1h"], &sh("exit 3"));
    place.wait_for_state(State::BackingOff);
    assert_eq!(place.command(&["stop"]).code, Some(0));
    assert_eq!(place.wait_for_state(State::Stopped).next_start_at, None);
    let ended = place.command(&["shutdown"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn a_start_during_a_back_off_does_not_wait_for_its_end() {
    let place = Supervised::new();
    let flag = place.folder().join("mended");
    let script = format!("test -e {} || exit 3; exec sleep 1000", flag.display());
    let _running = place.run(&["--backoff", "1h", "--backoff-max", "1h"], &sh(&script));
    place.wait_for_state(State::BackingOff);
    std::fs::write(flag, "").unwrap();
    assert_eq!(place.command(&["start"]).code, Some(0));
    place.wait_for_state(State::Ready);
}

#[test]
fn a_long_duration_is_as_good_as_for_ever() {
    let place = Supervised::new();
    let age = "9000000000000h";
    let flags = ["--backoff", age, "--backoff-max", age, "--stable-after", age, "--stop-timeout", age];
    let mut running = place.run(&flags, &sh("exit 3"));
    place.wait_for_state(State::BackingOff);
    assert!(running.is_alive());
    assert_eq!(place.command(&["shutdown"]).code, Some(0));
    wait_until(DEADLINE, "the supervisor's end", || !running.is_alive());
}

#[test]
fn what_stays_down_says_by_which_rule_and_how_it_starts_again() {
    for (flags, script, rule) in [
        (&[][..], "exit 78", "a rule of [restart]"),
        (&["--backoff", "0s"], "exit 7", "too often ([restart] intensity)"),
    ] {
        let place = Supervised::new();
        let running = place.run(flags, &["sh", "-c", script]);
        let failed = place.wait_for_state(State::Failed);
        assert!(failed.reason.as_ref().is_some_and(|why| why.contains(rule)), "{failed:?}");
        wait_until(DEADLINE, "a line about it", || running.stderr().contains("it stays down: "));
        let said = running.stderr();
        assert!(said.contains(rule) && said.contains("`supervisor start` starts it again"), "{said}");
        assert!(place.command(&["status"]).stdout.contains(rule));
        let before = place.runs().len();
        assert_eq!(place.command(&["start"]).code, Some(0));
        wait_until(DEADLINE, "one more run", || place.runs().len() > before);
    }
}
