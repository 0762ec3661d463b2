//! One of our programs at work, with its output in files, so that nothing it writes can block it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{DEADLINE, wait_for};

/// A running program. Dropped, it is killed and reaped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// What came of a program.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ended {
    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl Running {
    /// Starts `command` with its output in `NAME.stdout` and `NAME.stderr` in `folder`, unless `adjust` sets it otherwise.
    #[track_caller]
    pub(crate) fn start(
        mut command: Command,
        folder: &Path,
        name: &str,
        adjust: impl FnOnce(&mut Command),
    ) -> Self {
        let [stdout, stderr] = ["stdout", "stderr"].map(|stream| folder.join(format!("{name}.{stream}")));
        let create = |path: &PathBuf| File::create(path).expect("a file in a temporary folder");
        command.stdin(Stdio::null()).stdout(create(&stdout)).stderr(create(&stderr));
        adjust(&mut command);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, stdout, stderr }
    }

    /// Its PID.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("pids are below 2^22")
    }

    /// The process itself, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends `signal`. It is our child and not reaped, so the PID is its own.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("a child can be signalled until it is reaped");
    }

    /// SIGKILL, and its reaping: what it left behind is whatever it had done by now.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub fn wait(mut self) -> Ended {
        let status: ExitStatus =
            wait_for(DEADLINE, "the end of a program", || self.child.try_wait().expect("it is our child"));
        Ended { code: status.code(), stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Whether it is there still.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it has written to standard output so far.
    pub fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// What it has written to standard error so far.
    pub fn stderr(&self) -> String {
        read(&self.stderr)
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
