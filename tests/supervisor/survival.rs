//! Supervisor and keeper killed, alone and together: the prover goes on and its status stays true.

use nix::sys::signal::Signal;
use sexton_host::task::Tasks;
use sexton_model::status::State;
use sexton_model::wait::WaitStatus;
use sexton_tests::{DEADLINE, Gate, Supervised, read_process, wait_until};

use crate::sh;

/// Ways to end, and the status of each.
const ENDINGS: [(&str, WaitStatus); 5] = [
    ("exit 0", WaitStatus::exited(0)),
    ("exit 7", WaitStatus::exited(7)),
    ("exit 137", WaitStatus::exited(137)),
    ("kill -9 $$", WaitStatus::killed(9, false)),
    ("kill -USR1 $$", WaitStatus::killed(10, false)),
];

/// Writes a line, waits at `gate`, writes another, and ends.
fn two_lines(gate: &Gate, ending: &str) -> String {
    format!("echo one; read x < {}; echo two; {ending}", gate.path())
}

#[test]
fn a_killed_supervisor_is_replaced_and_the_prover_does_not_notice() {
    let place = Supervised::new();
    let (first, before) = place.run_until_ready(&[], &["sleep", "1000"]);
    first.kill();
    assert_eq!(place.living().len(), 2, "keeper and prover");

    let (second, after) = place.run_until_ready(&["--restart", "never"], &sh("exit 99"));
    assert!(after.adopted);
    assert_eq!((after.pid, &after.run_id, after.keeper_pid), (before.pid, &before.run_id, before.keeper_pid));
    assert!(second.stderr().contains("taken over"), "{}", second.stderr());

    place.kill(after.pid.unwrap());
    assert_eq!(second.wait().code, Some(137), "its own status, not the new command's");
    let record = place.only_exit();
    assert_eq!(
        (record.wait, record.command),
        (WaitStatus::killed(9, false), vec!["sleep".into(), "1000".into()])
    );
}

#[test]
fn the_new_command_is_used_from_the_next_start_on() {
    let place = Supervised::new();
    let (first, before) = place.run_until_ready(&[], &["sleep", "1000"]);
    first.kill();
    let (_second, _) = place.run_until_ready(&[], &["sleep", "2000"]);
    assert_eq!(place.command(&["restart"]).code, Some(0));
    let after = place.wait_for_status("another run", |status| status.run_id != before.run_id);
    assert!(!after.adopted);
    assert_eq!(place.command(&["stop"]).code, Some(0));
    let commands: Vec<_> = place.exits().into_iter().map(|exit| exit.command.join(" ")).collect();
    assert_eq!(commands, ["sleep 1000", "sleep 2000"]);
}

/// moby#31262, for-linux#761: after a manager's restart, exit codes were 0 or 255 whatever had happened meanwhile.
#[test]
fn moby_31262_true_status_and_output_of_a_prover_that_ended_while_no_supervisor_ran() {
    for (ending, wait) in ENDINGS {
        let place = Supervised::new();
        let gate = Gate::new(place.folder(), "gate");
        let (first, before) = place.run_until_ready(&[], &sh(&two_lines(&gate, ending)));
        first.kill();
        gate.open();
        place.wait_until_all_gone();

        let second = place.run(&["--restart", "never"], &["true"]).wait();
        assert_eq!(second.code, Some(0), "the new command's own: {second:?}");
        let record = place.exits().remove(0);
        assert_eq!((Some(&record.run_id), record.wait), (before.run_id.as_ref(), wait), "{ending}");
        assert_eq!(place.output(&record.run_id), b"one\ntwo\n", "{ending}");
        assert_eq!(record.last_words, "one\ntwo\n");
        let said = format!("{} ended while no supervisor ran: {wait}", record.run_id);
        assert!(second.stderr.contains(&said), "{second:?}");
    }
}

#[test]
fn true_status_after_re_adoption() {
    for (ending, wait) in ENDINGS {
        let place = Supervised::new();
        let gate = Gate::new(place.folder(), "gate");
        let (first, _) = place.run_until_ready(&[], &sh(&two_lines(&gate, ending)));
        first.kill();
        let (second, _) = place.run_until_ready(&["--restart", "never"], &["true"]);
        gate.open();
        assert_eq!(second.wait().code, wait.shell_code().map(i32::from), "{ending}");
        let record = place.only_exit();
        assert_eq!((record.wait, record.last_words.as_str()), (wait, "one\ntwo\n"));
    }
}

/// A keeper that is killed hands its prover, and its duties, to the supervisor.
#[test]
fn a_killed_keeper_costs_neither_the_status_nor_the_output() {
    for (ending, wait) in ENDINGS {
        let place = Supervised::new();
        let gate = Gate::new(place.folder(), "gate");
        let script = two_lines(&gate, ending);
        let flags = ["--restart", "always", "--backoff", "1ms"];
        let (_running, before) = place.run_until_ready(&flags, &sh(&script));
        place.kill_keeper(&before);
        place.wait_for_status("a lost keeper", |status| status.keeper_pid.is_none());
        gate.open();

        let after = place.wait_for_status("the next run", |status| {
            status.run_id != before.run_id && status.state == State::Ready
        });
        assert!(after.keeper_pid.is_some() && after.keeper_pid != before.keeper_pid, "{after:?}");
        let record = place.only_exit();
        assert_eq!(record.wait, wait);
        assert_eq!(place.output(&record.run_id), b"one\ntwo\n", "{ending}");
        assert!(record.resources.user_seconds.is_some(), "reaped with its usage");
    }
}

#[test]
fn a_keeper_that_dies_while_nothing_runs_is_replaced_at_the_next_start() {
    let place = Supervised::new();
    let (_running, before) = place.run_until_ready(&[], &["sleep", "1000"]);
    assert_eq!(place.command(&["stop"]).code, Some(0));
    place.kill_keeper(&before);
    assert_eq!(place.command(&["start"]).code, Some(0));
    let after = place.wait_for_state(State::Ready);
    assert_ne!(after.keeper_pid, before.keeper_pid);
    assert!(after.pid.is_some_and(|pid| place.living().contains(&pid)));
}

/// With both dead nobody is its parent: the status is what the kernel still tells, or unknown, and never "exit 0".
#[test]
fn both_killed_the_prover_is_adopted_and_its_status_true_or_unknown() {
    for (ending, wait) in ENDINGS {
        let place = Supervised::new();
        let gate = Gate::new(place.folder(), "gate");
        let (first, before) = place.run_until_ready(&[], &sh(&two_lines(&gate, ending)));
        first.kill();
        place.kill_keeper(&before);

        let (second, after) = place.run_until_ready(&["--restart", "never"], &["true"]);
        assert_eq!((after.pid, after.adopted), (before.pid, true));
        gate.open();
        let ended = second.wait();
        let record = place.only_exit();
        assert!([wait, WaitStatus::UNKNOWN].contains(&record.wait), "{ending}: {record:?}");
        let code = record.wait.shell_code().map_or(1, i32::from);
        assert_eq!(ended.code, Some(code), "an unknown status is a failure");
        assert_eq!(record.last_words, "one\ntwo\n");
    }
}

#[test]
fn both_killed_and_the_prover_ended_unseen_is_unknown() {
    let place = Supervised::new();
    let gate = Gate::new(place.folder(), "gate");
    let (first, before) = place.run_until_ready(&[], &sh(&two_lines(&gate, "exit 0")));
    first.kill();
    place.kill_keeper(&before);
    gate.open();
    place.wait_until_all_gone();
    place.run(&["--restart", "never"], &["true"]).wait();
    assert_eq!(place.exits()[0].wait, WaitStatus::UNKNOWN);
}

/// Its own pipe end keeps the FIFO alive: no SIGPIPE, it waits, and goes on with the next reader.
#[test]
fn a_prover_that_fills_its_output_with_nobody_there_waits_for_the_next_reader() {
    let place = Supervised::new();
    let gate = Gate::new(place.folder(), "gate");
    let script = format!("read x < {}; head -c 3000000 /dev/zero; echo done; exit 5", gate.path());
    let (first, before) = place.run_until_ready(&[], &sh(&script));
    first.kill();
    place.kill_keeper(&before);
    gate.open();
    let prover = before.pid.unwrap();
    wait_until(DEADLINE, "a writer that waits for room in the FIFO", || {
        let writers = Tasks::system().descendants(prover).into_value().unwrap_or_default();
        writers.iter().any(|pid| {
            let wchan = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
            wchan.contains("pipe_w")
        })
    });
    assert_eq!(read_process(prover).pid, prover, "alive");

    let (second, after) = place.run_until_ready(&["--restart", "never"], &["true"]);
    assert!(after.adopted);
    second.wait();
    let record = place.only_exit();
    let output = place.output(&record.run_id);
    assert_eq!((output.len(), output.ends_with(b"\0done\n")), (3_000_005, true));
    assert!([WaitStatus::exited(5), WaitStatus::UNKNOWN].contains(&record.wait));
}

/// A terminal's ctrl-C and a manager that signals every process of the group reach the keeper too.
#[test]
fn catchable_signals_do_not_end_a_keeper() {
    let place = Supervised::new();
    let (_running, before) = place.run_until_ready(&[], &["sleep", "1000"]);
    let keeper = before.keeper_pid.unwrap();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(keeper), signal).unwrap();
    }
    assert_eq!(place.command(&["restart"]).code, Some(0));
    assert_eq!(place.wait_for_state(State::Ready).keeper_pid, Some(keeper));
}
