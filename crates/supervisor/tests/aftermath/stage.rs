//! Folders of their own for one supervised prover, and the program with a deadline.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use sexton_process::{Pidfd, SIGTERM};

/// Longest that anything here may take: the machine may be busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A place for one prover.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A path in its folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
        let (first, rest) = words.split_first().unwrap();
        command.arg(first).args(["--name", "stage"]);
        command.arg("--state-dir").arg(self.state()).arg("--runtime-dir").arg(self.path("run")).args(rest);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SEXTON_"))
        {
            command.env_remove(name);
        }
        command
    }

    /// A command of the program, to its end.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        finish(&mut self.command(words))
    }

    /// A run of `sh -c SCRIPT` from its start to its end, restarted never.
    #[track_caller]
    pub(crate) fn let_die(&self, script: &str) {
        self.run(&["run", "--restart", "never", "--", "sh", "-c", script]);
    }

    /// A supervisor whose prover is `sh -c SCRIPT`, until it is dropped.
    pub(crate) fn supervise(&self, script: &str) -> Supervisor {
        let mut command = self.command(&["run", "--restart", "never", "--", "sh", "-c", script]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let supervisor = Supervisor(child);
        wait_until("a prover", || {
            let status = self.run(&["status", "--json"]);
            status.status.success() && status.json()["state"] == "ready"
        });
        supervisor
    }
}

/// A running supervisor. Dropped, it is told to end with its prover.
pub(crate) struct Supervisor(Child);

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Ok(handle) = Pidfd::open(self.0.id() as i32) {
            let _ = handle.signal(SIGTERM);
        }
        let _ = self.0.wait();
    }
}

/// Runs `command` to its end; its output goes through files, so that a child that keeps it open holds nobody.
#[track_caller]
pub(crate) fn finish(command: &mut Command) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let redirected = command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let mut child = redirected.stdin(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + DEADLINE;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{command:?} has not ended in time: {}", std::fs::read_to_string(err).unwrap());
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    Output { status, stdout: std::fs::read(out).unwrap(), stderr: std::fs::read(err).unwrap() }
}

#[track_caller]
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What tests ask of an output.
pub(crate) trait Said {
    fn code(&self) -> i32;
    fn stdout(&self) -> String;
    fn stderr(&self) -> String;
    fn stdout_has(&self, text: &str) -> bool;
    fn json(&self) -> serde_json::Value;
}

impl Said for Output {
    #[track_caller]
    fn code(&self) -> i32 {
        self.status.code().unwrap()
    }

    fn stdout(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    fn stderr(&self) -> String {
        String::from_utf8(self.stderr.clone()).unwrap()
    }

    fn stdout_has(&self, text: &str) -> bool {
        self.stdout().contains(text)
    }

    #[track_caller]
    fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout(), self.stderr()))
    }
}

/// Everything below a folder, by path.
pub(crate) fn listing(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(listing(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}
