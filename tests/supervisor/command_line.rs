//! Mistakes on the command line, and commands without a supervisor.

use std::process::Command;

use sexton_tests::{Ended, Supervised, binary};

use crate::sh;

#[track_caller]
fn assert_one_line(ended: &Ended, code: i32, said: &str) {
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(code), 1), "{ended:?}");
    assert!(ended.stderr.starts_with("supervisor: ") && ended.stderr.contains(said), "{ended:?}");
    assert_eq!(ended.stdout, "");
}

#[test]
fn without_a_supervisor_commands_end_with_3() {
    let place = Supervised::new();
    for command in ["status", "stop", "start", "restart", "shutdown"] {
        assert_one_line(&place.command(&[command]), 3, "no supervisor runs");
    }
    assert_eq!(place.command(&["runs"]).code, Some(0), "records need none");
    assert_one_line(&place.command(&["why"]), 1, "has had no run yet");

    place.run(&["--restart", "never"], &sh("exit 7")).wait();
    assert_one_line(&place.command(&["status"]), 3, "exited with 7");
}

#[test]
fn after_a_killed_supervisor_status_tells_of_the_prover_that_may_live() {
    let place = Supervised::new();
    let (running, status) = place.run_until_ready(&[], &["sleep", "1000"]);
    running.kill();
    let pid = status.pid.unwrap();
    assert_one_line(&place.command(&["status"]), 3, &format!("(pid {pid}) may still be alive"));
}

#[test]
fn usage_errors_end_with_2() {
    let place = Supervised::new();
    for words in [
        &["run", "--stop-timeout", "soon"][..],
        &["run", "--stop-timeout", "-5s"],
        &["run", "--backoff", "5 parsecs"],
        &["run", "--restart", "sometimes"],
        &["run", "sleep"],
        &["stop", "--timeout", ""],
        &["runs", "--limit", "-1"],
        &["no-such-command"],
    ] {
        let ended = place.command(words);
        assert_eq!(ended.code, Some(2), "{words:?}: {ended:?}");
        assert!(place.runs().is_empty());
    }
}

#[test]
fn a_name_that_is_none_ends_with_78() {
    let place = Supervised::new();
    for name in ["", "a/b", "..", ".hidden", "two words", &"n".repeat(65)] {
        let ended = place.command(&["status", "--name", name]);
        assert_one_line(&ended, 78, "is not a name");
    }
}

#[test]
fn a_runtime_folder_that_no_socket_fits_in_ends_with_78() {
    let place = Supervised::new();
    let long = place.folder().join("r".repeat(100));
    let ended = place.command(&["run", "--runtime-dir", long.to_str().unwrap(), "--", "true"]);
    assert_one_line(&ended, 78, "--runtime-dir");
    assert!(!long.exists());
}

#[test]
fn a_folder_that_others_may_write_to_ends_with_78() {
    let place = Supervised::new();
    let open = place.folder().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let ended = place.command(&["run", "--state-dir", open.to_str().unwrap(), "--", "true"]);
    assert_one_line(&ended, 78, "others may write");
}

#[test]
fn a_folder_that_cannot_be_made_ends_with_78() {
    let place = Supervised::new();
    let file = place.folder().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("state");
    let ended = place.command(&["run", "--state-dir", below.to_str().unwrap(), "--", "true"]);
    assert_one_line(&ended, 78, below.to_str().unwrap());
}

#[test]
fn version_is_the_packages() {
    let output = Command::new(binary("supervisor")).arg("--version").output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        concat!("supervisor ", env!("CARGO_PKG_VERSION"), "\n")
    );
}
