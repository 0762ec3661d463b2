//! `supervisor check` as it is called: what is printed, and the exit codes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's helper fails the test")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const BAD: &str = "#!/bin/bash\nset -o pipefail\nif ! prover | tee log; then rc=$?; exit $rc; fi\n";
const GOOD: &str = "#!/bin/bash\nset -o pipefail; rc=0; prover | tee log || rc=$?\nexit $rc\n";

/// In a folder with the two scripts, which is the home as well: nothing is configured.
fn check(folder: &Path, arguments: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    std::fs::write(folder.join("bad.sh"), BAD).unwrap();
    std::fs::write(folder.join("good.sh"), GOOD).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_supervisor"))
        .arg("check")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("COLUMNS", "100")
        .env("HOME", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have ended without reading.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    check(tempfile::tempdir().unwrap().path(), arguments, "")
}

#[test]
fn a_finding_is_printed_with_the_faulty_line_and_the_right_form() {
    let (code, stdout, stderr) = run(&["bad.sh"]);
    assert_eq!((code, stderr.as_str()), (Some(1), ""));
    insta::assert_snapshot!(stdout);
}

#[test]
fn the_right_form_prints_nothing_and_ends_with_0() {
    assert_eq!(run(&["good.sh"]), (Some(0), String::new(), String::new()));
}

#[test]
fn standard_input_is_read_for_a_dash() {
    let (code, stdout, _) = check(tempfile::tempdir().unwrap().path(), &["-"], BAD);
    assert_eq!(code, Some(1));
    assert!(stdout.starts_with("<stdin>:3:"), "{stdout}");
}

#[test]
fn one_document_for_all_scripts() {
    let (code, stdout, _) = run(&["--json", "bad.sh", "good.sh", "missing.sh"]);
    assert_eq!(code, Some(66));
    insta::assert_snapshot!(stdout);
}

#[test]
fn what_cannot_be_read_has_a_code_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("program.py"), "#!/usr/bin/env python3\nimport os\n").unwrap();
    std::fs::write(folder.path().join("binary"), b"\x7fELF\0").unwrap();
    std::fs::write(folder.path().join("broken.sh"), "prover | tee log\nrc=$?\nif x; then\n  prover\n")
        .unwrap();
    std::fs::write(folder.path().join("skipped.sh"), "for i do\n  prover \"$i\"\ndone\n").unwrap();
    let run = |name: &str| check(folder.path(), &[name], "");
    let (code, stdout, stderr) = run("program.py");
    assert_eq!((code, stdout.as_str()), (Some(65), ""));
    assert_eq!(stderr, "supervisor: program.py: a script for python3, not for sh, bash or ksh\n");
    assert_eq!(run("binary").0, Some(65));
    assert_eq!(run("missing").0, Some(66));
    assert_eq!(run(".").0, Some(77));
    let (code, stdout, stderr) = run("broken.sh");
    assert_eq!(code, Some(65));
    assert!(stdout.starts_with("broken.sh:2:4: pipeline-status"), "{stdout}");
    assert_eq!(stderr, "supervisor: broken.sh:5:1: cannot read the script from here on\n");
    let (code, _, stderr) = run("skipped.sh");
    assert_eq!(code, Some(0));
    assert!(stderr.starts_with("supervisor: skipped.sh:1: not understood"), "{stderr}");
}

#[test]
fn without_a_script_it_is_a_mistake() {
    assert_eq!(run(&[]).0, Some(2));
}

#[test]
fn help_of_check() {
    let (code, stdout, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(stdout);
}
