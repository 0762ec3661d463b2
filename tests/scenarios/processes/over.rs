//! Over, and waiting to be reaped; or gone.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use nix::sys::signal::kill;
use nix::unistd::Pid;
use sexton_diagnosis::process_state::explain;
use sexton_model::process_state::ProcessState;
use sexton_model::reading::Reading;
use sexton_model::wait::WaitStatus;
use sexton_tests::{DEADLINE, Fixture, OrSkip, Skip, fixture_path, observe, wait_for, wait_until};

const NOBODY: u32 = 65_534;

/// tini#138, #130: zombies of a *living* parent were blamed on init, which cannot reap them.
#[test]
fn tini_138_a_zombie_is_blamed_on_the_living_parent_that_must_wait() {
    let mut parent = Fixture::spawn(&["zombie-parent", "42"]);
    let child = parent.ready::<i32>("child");
    let (blamed, status) = wait_for(DEADLINE, "a zombie", || match observe(child) {
        ProcessState::Unreaped { parent, status } => Some((parent, status)),
        _ => None,
    });
    let blamed = blamed.expect("a parent in our own namespace");
    assert_eq!((blamed.pid, blamed.comm), (parent.pid(), Reading::Value("sexton-fixture".to_owned())));
    assert_eq!(status, Reading::Value(WaitStatus::exited(42)), "field 52 tells a stranger as well");

    let words = explain(child, &observe(child));
    assert!(words.sentence.contains(&format!("its parent \"sexton-fixture\" (pid {})", parent.pid())));
    assert!(words.sentence.contains("exited with 42"), "{}", words.sentence);

    assert_eq!(parent.ask("reap"), "code=42");
    assert_eq!(observe(child), ProcessState::Gone);
}

/// openrc#252: `kill(pid, 0)` succeeds for a zombie, and a stop loop waited its whole schedule for a dead process.
#[test]
fn openrc_252_kill_0_finds_a_zombie_alive_and_the_classifier_does_not() {
    let parent = Fixture::spawn(&["zombie-parent", "0"]);
    let child = parent.ready::<i32>("child");
    wait_until(DEADLINE, "a zombie", || matches!(observe(child), ProcessState::Unreaped { .. }));
    assert_eq!(kill(Pid::from_raw(child), None), Ok(()));
    assert!(matches!(
        observe(child),
        ProcessState::Unreaped { status: Reading::Value(status), .. } if status == WaitStatus::exited(0)
    ));
}

#[test]
fn a_reaped_process_is_gone() {
    let mut fixture = Fixture::spawn(&["hold-memory", "1"]);
    let pid = fixture.pid();
    fixture.tell("exit 0");
    fixture.reap();
    assert_eq!(observe(pid), ProcessState::Gone);
}

#[test]
fn real_faults_end_with_their_signals() {
    for (command, signal) in [("segv", 11), ("abort", 6), ("trap", 4), ("bus", 7)] {
        let status = Command::new(fixture_path())
            .arg(command)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .current_dir(std::env::temp_dir())
            .status()
            .expect("the fixture program starts");
        assert_eq!(status.signal(), Some(signal), "{command}: {status:?}");
    }
}

/// Field 52 prints 0 to whoever may not trace the process, whatever its status is: then it is unknown, not success.
#[test]
fn a_status_that_is_not_ours_to_know_is_unknown() {
    if !nix::unistd::geteuid().is_root() {
        return Skip("only root can start a process as someone else".to_owned()).report();
    }
    let parent = Fixture::spawn(&["zombie-parent", "7"]);
    let child = parent.ready::<i32>("child");
    wait_until(DEADLINE, "a zombie", || matches!(observe(child), ProcessState::Unreaped { .. }));
    let look = Command::new(fixture_path())
        .args(["observe", &child.to_string()])
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .output()
        .map_err(|error| Skip::because("nobody may not run the fixture program", error));
    let Some(look) = look.or_skip() else { return };
    let state = String::from_utf8_lossy(&look.stdout);
    assert!(state.starts_with("Unreaped"), "{state}");
    assert!(state.contains("status: Unreadable(Obstacle { kind: Denied"), "{state}");
    assert!(!state.contains("exited(0)"), "{state}");
}
