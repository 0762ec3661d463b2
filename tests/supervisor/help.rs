//! The help texts are documentation: a change of them is seen and read.

use std::process::Command;

use sexton_tests::binary;

fn help(command: &[&str]) -> String {
    let output = Command::new(binary("supervisor"))
        .args(command)
        .arg("--help")
        .env_clear()
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_of_supervisor() {
    insta::assert_snapshot!(help(&[]));
}

#[test]
fn help_of_run() {
    insta::assert_snapshot!(help(&["run"]));
}

#[test]
fn help_of_status() {
    insta::assert_snapshot!(help(&["status"]));
}

#[test]
fn help_of_why() {
    insta::assert_snapshot!(help(&["why"]));
}

#[test]
fn help_of_runs() {
    insta::assert_snapshot!(help(&["runs"]));
}

#[test]
fn help_of_stop() {
    insta::assert_snapshot!(help(&["stop"]));
}

#[test]
fn help_of_start() {
    insta::assert_snapshot!(help(&["start"]));
}

#[test]
fn help_of_restart() {
    insta::assert_snapshot!(help(&["restart"]));
}

#[test]
fn help_of_shutdown() {
    insta::assert_snapshot!(help(&["shutdown"]));
}

#[test]
fn help_of_events() {
    insta::assert_snapshot!(help(&["events"]));
}

#[test]
fn help_of_doctor() {
    insta::assert_snapshot!(help(&["doctor"]));
}

#[test]
fn help_of_config() {
    insta::assert_snapshot!(help(&["config"]));
}

#[test]
fn help_of_config_validate() {
    insta::assert_snapshot!(help(&["config", "validate"]));
}

#[test]
fn help_of_diag() {
    insta::assert_snapshot!(help(&["diag"]));
}

#[test]
fn help_of_drain() {
    insta::assert_snapshot!(help(&["drain"]));
}

#[test]
fn help_of_quiesce() {
    insta::assert_snapshot!(help(&["quiesce"]));
}

#[test]
fn help_of_unquiesce() {
    insta::assert_snapshot!(help(&["unquiesce"]));
}
