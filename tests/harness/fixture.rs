//! A `sexton-fixture` process, spoken to over pipes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::binaries::target_folder;
use crate::{Skip, wait_for};

/// For conditions that come about at once on an idle machine; generous, since test machines are not idle.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// A running fixture. Dropped, it is killed and reaped.
#[derive(Debug)]
pub struct Fixture {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    ready: HashMap<String, String>,
}

/// The fixture program. Cargo builds it before the tests of this package, so it is never stale.
pub fn fixture_path() -> PathBuf {
    target_folder().join("sexton-fixture")
}

impl Fixture {
    /// Starts one and waits until it is ready.
    #[track_caller]
    pub fn spawn(arguments: &[&str]) -> Self {
        Self::spawn_in(Path::new("/"), arguments)
    }

    /// As [`Self::spawn`], in a working directory.
    #[track_caller]
    pub fn spawn_in(folder: &Path, arguments: &[&str]) -> Self {
        Self::try_spawn_in(folder, arguments)
            .unwrap_or_else(|Skip(why)| panic!("fixture {arguments:?}: {why}"))
    }

    /// As [`Self::spawn`], for fixtures that need what a machine may not allow.
    #[track_caller]
    pub fn try_spawn(arguments: &[&str]) -> Result<Self, Skip> {
        Self::try_spawn_in(Path::new("/"), arguments)
    }

    #[track_caller]
    fn try_spawn_in(folder: &Path, arguments: &[&str]) -> Result<Self, Skip> {
        let mut child = Command::new(fixture_path())
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the fixture program starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let stdin = child.stdin.take();
        let mut fixture = Self { child, stdin, lines, ready: HashMap::new() };
        let line = fixture.line();
        let words = line.strip_prefix("ready").ok_or_else(|| Skip(line.clone()))?;
        fixture.ready = words
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        Ok(fixture)
    }

    /// Its PID.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("pids are below 2^22")
    }

    /// A number that it told when it was ready.
    #[track_caller]
    pub fn ready<T: std::str::FromStr>(&self, key: &str) -> T {
        let value = self.ready.get(key).and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("no {key} in {:?}", self.ready))
    }

    /// Sends a command and returns the answer.
    #[track_caller]
    pub fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        self.line()
    }

    /// Sends a command that has no answer, since it ends the process.
    #[track_caller]
    pub fn tell(&mut self, command: &str) {
        let stdin = self.stdin.as_mut().expect("its standard input is open");
        writeln!(stdin, "{command}").expect("it reads commands");
    }

    #[track_caller]
    fn line(&mut self) -> String {
        self.lines.recv_timeout(DEADLINE).unwrap_or_else(|error| {
            panic!("fixture {} does not answer: {error}; {:?}", self.pid(), self.child.try_wait())
        })
    }

    /// Sends `signal`. It is our child and not reaped, so the PID is its own.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("a child can be signalled until it is reaped");
    }

    /// Reaps it if it can be reaped now, as a parent's `waitpid(WNOHANG)`.
    #[track_caller]
    pub fn try_reap(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }

    /// Waits until it can be reaped.
    #[track_caller]
    pub fn reap(&mut self) -> ExitStatus {
        let pid = self.pid();
        wait_for(DEADLINE, &format!("the end of fixture {pid}"), || self.try_reap())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        self.stdin = None;
        let begin = std::time::Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > DEADLINE {
                eprintln!("fixture {} cannot be ended", self.pid());
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
