//! What the checker says, asked of real shells.

use std::process::{Command, Stdio};

use super::examples::{EXAMPLES, Example};
use super::quiet::RIGHT;

/// Runs a script in an empty folder. None where the shell is not installed.
fn code(shell: &str, script: &str) -> Option<i32> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    std::fs::write(&file, script).unwrap();
    let child = Command::new(shell)
        .arg(&file)
        .current_dir(folder.path())
        .env_remove("VERBOSE")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match child {
        Ok(status) => Some(status.code().unwrap()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: {shell} is not installed");
            None
        }
        Err(error) => panic!("{shell}: {error}"),
    }
}

/// Forms for sh lose the code in bash as well, but for `PIPESTATUS`, which bash has.
fn shells(example: &Example) -> &'static [&'static str] {
    match (example.shell, example.rule) {
        ("dash", super::super::Rule::PipestatusInSh) => &["dash"],
        ("dash", _) => &["dash", "bash"],
        _ => &["bash"],
    }
}

#[test]
fn bad_forms_lose_the_code() {
    for example in EXAMPLES {
        for shell in shells(example) {
            let script = example.script(example.bad);
            let Some(code) = code(shell, &script) else { continue };
            assert_ne!(code, 7, "{shell} keeps it, {} is wrong:\n{script}", example.rule);
        }
    }
}

#[test]
fn good_forms_keep_the_code() {
    for example in EXAMPLES {
        for shell in shells(example) {
            let script = example.script(example.good);
            let Some(code) = code(shell, &script) else { continue };
            assert_eq!(code, 7, "{shell} {}:\n{script}", example.rule);
        }
    }
}

#[test]
fn right_forms_keep_the_code() {
    for body in RIGHT {
        let script = format!("#!/bin/bash\n{}{body}\n", super::examples::PRELUDE);
        let Some(code) = code("bash", &script) else { continue };
        assert_eq!(code, 7, "{script}");
    }
}
