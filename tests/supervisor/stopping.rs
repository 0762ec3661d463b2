//! How a prover is stopped, by command and by signal.

use nix::sys::signal::Signal;
use sexton_model::status::State;
use sexton_model::verdict::Cause;
use sexton_model::wait::WaitStatus;
use sexton_tests::{DEADLINE, Supervised, wait_until};

use crate::{sh, wait_until_armed};

/// Tells when the trap is set, and survives SIGTERM.
const IGNORES_TERM: &str = "trap '' TERM; echo armed; while :; do sleep 0.01; done";

#[test]
fn term_and_int_stop_the_prover_first_and_end_with_0() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let place = Supervised::new();
        let (running, _) = place.run_until_ready(&["--restart", "always"], &["sleep", "1000"]);
        running.signal(signal);
        assert_eq!(running.wait().code, Some(0), "{signal}");
        let record = place.only_exit();
        assert_eq!(record.wait, WaitStatus::killed(15, false), "always asked by SIGTERM");
        assert_eq!(record.verdict.cause, Cause::StoppedBySupervisor);
        place.wait_until_all_gone();
    }
}

#[test]
fn a_closed_terminal_ends_nothing() {
    let place = Supervised::new();
    let (running, before) = place.run_until_ready(&[], &["sleep", "1000"]);
    running.signal(Signal::SIGHUP);
    assert_eq!(place.command(&["status"]).code, Some(0));
    assert_eq!(place.wait_for_state(State::Ready).pid, before.pid);
}

#[test]
fn a_second_signal_hastens() {
    let place = Supervised::new();
    let (running, _) = place.run_until_ready(&["--stop-timeout", "1h"], &sh(IGNORES_TERM));
    wait_until_armed(&place);
    running.signal(Signal::SIGTERM);
    place.wait_for_state(State::Stopping);
    running.signal(Signal::SIGTERM);
    let ended = running.wait();
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains("as asked: SIGKILL sent"), "it had an hour: {}", ended.stderr);
    let record = place.only_exit();
    assert_eq!(
        (record.wait, record.verdict.cause),
        (WaitStatus::killed(9, false), Cause::KilledBySupervisor)
    );
    place.wait_until_all_gone();
}

/// One signal to a supervisor that already stops its prover by command asks it to leave, and kills nothing.
#[test]
fn the_first_signal_during_a_commanded_stop_does_not_hasten() {
    let place = Supervised::new();
    let release = place.folder().join("release");
    let script =
        format!("trap '' TERM; echo armed; until test -e {}; do sleep 0.01; done; exit 4", release.display());
    let (running, _) = place.run_until_ready(&["--stop-timeout", "1h"], &sh(&script));
    wait_until_armed(&place);
    let stop = place.spawn(&["stop"], |_| {});
    place.wait_for_state(State::Stopping);
    running.signal(Signal::SIGTERM);
    wait_until(DEADLINE, "the signal is taken", || running.stderr().contains("SIGTERM"));
    std::fs::write(release, "").unwrap();
    assert_eq!(running.wait().code, Some(0));
    drop(stop);
    assert_eq!(place.only_exit().wait, WaitStatus::exited(4), "it was given its time");
}

#[test]
fn the_stop_timeout_escalates_to_a_kill_that_is_recorded_as_ours() {
    let place = Supervised::new();
    let (_running, _) = place.run_until_ready(&["--stop-timeout", "50ms"], &sh(IGNORES_TERM));
    wait_until_armed(&place);
    assert_eq!(place.command(&["stop"]).code, Some(0));
    let record = place.only_exit();
    assert_eq!(
        (record.wait, record.verdict.cause),
        (WaitStatus::killed(9, false), Cause::KilledBySupervisor)
    );
    let own: Vec<_> = record.evidence.iter().map(|seen| seen.detail.as_str()).collect();
    assert!(own.iter().any(|detail| detail.contains("SIGTERM")), "{own:?}");
    assert!(own.iter().any(|detail| detail.contains("SIGKILL")), "{own:?}");
}

/// A stop that takes longer than its client waits goes on.
#[test]
fn a_client_that_waits_no_longer_ends_with_75_and_the_stop_goes_on() {
    let place = Supervised::new();
    let (_running, _) = place.run_until_ready(&["--stop-timeout", "1h"], &sh(IGNORES_TERM));
    wait_until_armed(&place);
    let ended = place.command(&["stop", "--timeout", "10ms"]);
    assert_eq!(ended.code, Some(75), "{ended:?}");
    assert!(place.wait_for_state(State::Stopping).run_id.is_some());
}

/// supervisor#536, #1387: a prover that dies on its own during the stop crashed the supervisor.
#[test]
fn supervisor_536_a_prover_that_is_dead_already_is_stopped() {
    for _ in 0..5 {
        let place = Supervised::new();
        let (_running, status) = place.run_until_ready(&["--backoff", "1h"], &["sleep", "1000"]);
        place.kill(status.pid.unwrap());
        assert_eq!(place.command(&["stop"]).code, Some(0));
        assert_eq!(place.wait_for_state(State::Stopped).pid, None);
        assert_eq!(place.only_exit().wait, WaitStatus::killed(9, false));
    }
}

#[test]
fn shutdown_ends_both_and_says_so() {
    let place = Supervised::new();
    let (running, _) = place.run_until_ready(&["--restart", "always"], &["sleep", "1000"]);
    let ended = place.command(&["shutdown"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "the supervisor has left\n"), "{ended:?}");
    assert_eq!(running.wait().code, Some(0));
    place.wait_until_all_gone();
    assert!(!place.control_socket().exists());
}

/// It stops to listen before it ends: here it waits for the reader of its output meanwhile.
#[test]
fn after_a_shutdown_the_next_supervisor_is_not_refused() {
    let place = Supervised::new();
    let script = "head -c 300000 /dev/zero; touch written; exec sleep 1000";
    let mut first = place.run_with(&[], &sh(script), |command| {
        command.stdout(std::process::Stdio::piped()).current_dir(place.folder());
    });
    place.wait_until_ready(&mut first);
    wait_until(DEADLINE, "more output than a pipe holds", || place.folder().join("written").exists());
    let ended = place.command(&["shutdown"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!first.is_alive(), "it has left");
    assert_eq!(place.run(&["--restart", "never"], &sh("exit 4")).wait().code, Some(4));
}

/// Whether a supervisor is there is not known where its socket may not be used.
#[test]
fn a_client_that_cannot_ask_does_not_say_that_the_supervisor_has_left() {
    let place = Supervised::new();
    let (mut running, _) = place.run_until_ready(&["--stop-timeout", "1h"], &sh(IGNORES_TERM));
    wait_until_armed(&place);
    let stop = place.spawn(&["stop"], |_| {});
    place.wait_for_state(State::Stopping);
    // A symbolic link to itself: ELOOP for everybody, root too. In one step, so that it is never absent.
    let (socket, link) = (place.control_socket(), place.folder().join("link"));
    std::os::unix::fs::symlink(&socket, &link).unwrap();
    std::fs::rename(&link, &socket).unwrap();
    let ended = stop.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot talk to"), "{ended:?}");
    assert!(running.is_alive());
}

/// A worker in a session of its own: only to be found by its cgroup, or as an orphan of the keeper's.
const LEAVES_A_WORKER: &str =
    "setsid sleep 1000 & until grep -q sleep /proc/$!/comm; do :; done; echo armed; wait";

/// All of a run is stopped, with a cgroup of its own and without one, and when it dies by itself just so.
#[test]
fn what_outlives_the_main_process_is_stopped_too() {
    for create in ["auto", "never"] {
        let place = Supervised::new();
        let [flag, file] =
            place.configured(&format!("[cgroup]\ncreate = \"{create}\"\n[restart]\ndelay = \"1ms\"\n"));
        let (running, first) = place.run_until_ready(&[&flag, &file], &sh(LEAVES_A_WORKER));
        wait_until_armed(&place);
        // By itself.
        place.kill(first.pid.unwrap());
        let second = place.wait_for_status("another run", |status| {
            status.state == State::Ready && status.run_id != first.run_id
        });
        wait_until(DEADLINE, "one worker, and that of the second run", || place.living().len() == 3);
        // By command.
        let stopped = place.command(&["stop", "--json"]).json();
        assert_eq!(stopped["descendants"], serde_json::json!([]), "{stopped}");
        wait_until(DEADLINE, "nobody but the keeper", || place.living().len() == 1);
        let told = place.command(&["events", "--kind", "tree_stopped", "--json"]);
        let runs: Vec<&str> = told.stdout.lines().filter(|line| line.contains("sleep")).collect();
        assert_eq!(runs.len(), 2, "{told:?}");
        assert!(runs[1].contains(second.run_id.as_deref().unwrap()), "{told:?}");
        assert_eq!(place.command(&["shutdown"]).code, Some(0));
        assert_eq!(running.wait().code, Some(0));
        place.wait_until_all_gone();
    }
}

/// Where it is to be left alone it holds what it holds: that is said, by everyone who is asked.
#[test]
fn whoever_stops_a_prover_is_told_what_goes_on() {
    let place = Supervised::new();
    let [flag, file] = place.configured("[stop]\nleft_over = \"leave\"\n");
    let (running, _) = place.run_until_ready(&[&flag, &file], &sh(LEAVES_A_WORKER));
    wait_until_armed(&place);
    let stopped = place.command(&["stop"]);
    assert!(stopped.stdout.contains("; these go on: sleep (pid "), "{stopped:?}");
    let status = place.wait_for_state(State::Stopped);
    let [worker] = &status.descendants[..] else { panic!("{status:?}") };
    assert!(place.living().contains(&worker.pid) && worker.name == "sleep", "{worker:?}");
    assert!(running.stderr().contains(&format!("these go on: {worker}")), "{}", running.stderr());
    let events = place.command(&["events", "--kind", "descendants_left", "--json"]).json();
    assert_eq!(events["descendants"][0]["pid"], worker.pid);

    place.kill(worker.pid);
    wait_until(DEADLINE, "the worker's end", || !place.living().contains(&worker.pid));
    assert_eq!(place.command(&["start"]).code, Some(0));
    place.wait_for_status("nothing left over", |status| status.descendants.is_empty());
    wait_until_armed(&place);
    let left = place.command(&["shutdown", "--json"]).json();
    assert_eq!(left["descendants"][0]["name"], "sleep", "{left}");
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn shutdown_of_a_supervisor_that_waits_is_answered() {
    for _ in 0..5 {
        let place = Supervised::new();
        let (running, _) = place.run_until_ready(&[], &["sleep", "1000"]);
        assert_eq!(place.command(&["stop"]).code, Some(0));
        let ended = place.command(&["shutdown", "--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(running.wait().code, Some(0));
        place.wait_until_all_gone();
    }
}
