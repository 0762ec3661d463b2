//! A supervisor, its keeper and its prover, in folders of their own.

use std::cell::Cell;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use sexton_model::exit::ExitRecord;
use sexton_model::status::{State, SupervisorStatus};

use crate::{DEADLINE, Ended, OwnProcesses, Running, SupervisorFolders, binary, wait_for, wait_until};

/// A place for one supervised prover. Dropped, it takes every process with it that was started in it; when the test
/// fails it shows what they said first.
#[derive(Debug)]
pub struct Supervised {
    folders: SupervisorFolders,
    name: String,
    processes: OwnProcesses,
    started: Cell<u32>,
}

impl Default for Supervised {
    fn default() -> Self {
        Self::new()
    }
}

impl Supervised {
    /// Nothing runs yet.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folders = SupervisorFolders::new();
        let socket = folders.runtime().join("prover.sock");
        let processes = OwnProcesses::new(&name, &socket.to_string_lossy());
        Self { folders, name, processes, started: Cell::new(0) }
    }

    /// `supervisor run FLAGS -- COMMAND`, under way.
    #[track_caller]
    pub fn run(&self, flags: &[&str], command: &[&str]) -> Running {
        self.run_with(flags, command, |_| {})
    }

    /// As [`Self::run`], adjusted: other descriptors, more environment.
    #[track_caller]
    pub fn run_with(&self, flags: &[&str], command: &[&str], adjust: impl FnOnce(&mut Command)) -> Running {
        self.spawn(&[&["run"], flags, &["--"], command].concat(), adjust)
    }

    /// As [`Self::run`], with `prefix` before the command line: programs that become the supervisor in the end.
    #[track_caller]
    pub fn run_through(&self, prefix: &[String], flags: &[&str], command: &[&str]) -> Running {
        let supervisor = self.command_line(&[&["run"], flags, &["--"], command].concat());
        let Some((first, rest)) = prefix.split_first() else { return self.start("run", supervisor, |_| {}) };
        let mut through = Command::new(first);
        through.args(rest).arg(supervisor.get_program()).args(supervisor.get_args());
        supervisor.get_envs().for_each(|(name, value)| match value {
            Some(value) => drop(through.env(name, value)),
            None => drop(through.env_remove(name)),
        });
        self.start("run", through, |_| {})
    }

    /// `supervisor run`, until its prover is ready.
    #[track_caller]
    pub fn run_until_ready(&self, flags: &[&str], command: &[&str]) -> (Running, SupervisorStatus) {
        let mut running = self.run(flags, command);
        let status = self.wait_until_ready(&mut running);
        (running, status)
    }

    /// Waits until the supervisor `running` has a prover that is ready.
    #[track_caller]
    pub fn wait_until_ready(&self, running: &mut Running) -> SupervisorStatus {
        let pid = running.pid();
        wait_for(DEADLINE, "a ready prover", || {
            assert!(running.is_alive(), "the supervisor has left: {}", running.stderr());
            // A file of an earlier supervisor may still be there.
            self.status().filter(|status| status.supervisor_pid == pid && status.state == State::Ready)
        })
    }

    /// Any command of `supervisor`, to its end.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> Ended {
        self.spawn(words, |_| {}).wait()
    }

    /// Any command of `supervisor`, under way.
    #[track_caller]
    pub fn spawn(&self, words: &[&str], adjust: impl FnOnce(&mut Command)) -> Running {
        self.start(words[0], self.command_line(words), adjust)
    }

    #[track_caller]
    fn start(&self, name: &str, command: Command, adjust: impl FnOnce(&mut Command)) -> Running {
        let number = self.started.replace(self.started.get() + 1);
        Running::start(command, self.folders.path(), &format!("{number:03}-{name}"), adjust)
    }

    /// The command line of any command of `supervisor`. What `words` says about the place replaces what is said here.
    pub fn command_line(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary("supervisor"));
        let (first, rest) = words.split_first().expect("a command");
        command.arg(first);
        let place = self.folders.arguments();
        for pair in [["--name", &self.name], [&place[0], &place[1]], [&place[2], &place[3]]] {
            if !rest.contains(&pair[0]) {
                command.args(pair);
            }
        }
        command.args(rest);
        let own = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SEXTON_"));
        own.for_each(|(name, _)| {
            command.env_remove(name);
        });
        // Not the one of whoever runs the tests.
        command.env("SEXTON_CONFIG", "/dev/null");
        command
    }

    /// What the control socket says; `None` where nobody answers.
    pub fn status(&self) -> Option<SupervisorStatus> {
        self.get("/v1/status")
    }

    /// The answer of the control socket to a GET, by hand: a client that shares no code with ours.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        let mut socket = UnixStream::connect(self.control_socket()).ok()?;
        socket.set_read_timeout(Some(DEADLINE)).ok()?;
        write!(socket, "GET {path} HTTP/1.1\r\nHost: sexton\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).ok()?;
        let body = answer.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
        serde_json::from_slice(&answer[body..]).ok()
    }

    /// Waits until the supervisor is in `state`.
    #[track_caller]
    pub fn wait_for_state(&self, state: State) -> SupervisorStatus {
        self.wait_for_status(&format!("state {state}"), |status| status.state == state)
    }

    /// Waits until the supervisor's status is as wanted.
    #[track_caller]
    pub fn wait_for_status(
        &self,
        what: &str,
        wanted: impl Fn(&SupervisorStatus) -> bool,
    ) -> SupervisorStatus {
        wait_for(DEADLINE, what, || self.status().filter(|status| wanted(status)))
    }

    /// Sends SIGKILL to one process of this place.
    pub fn kill(&self, pid: i32) {
        self.processes.signal(pid, Signal::SIGKILL);
    }

    /// SIGKILL to the keeper of `status`, and waits until it is gone.
    #[track_caller]
    pub fn kill_keeper(&self, status: &SupervisorStatus) {
        let keeper = status.keeper_pid.expect("a keeper");
        self.kill(keeper);
        wait_until(DEADLINE, "the keeper's death", || !self.living().contains(&keeper));
    }

    /// The living keepers, provers and descendants of provers of this place.
    pub fn living(&self) -> Vec<i32> {
        self.processes.living()
    }

    /// Waits until no keeper, prover or descendant of one is there any more.
    #[track_caller]
    pub fn wait_until_all_gone(&self) {
        wait_until(DEADLINE, "the end of every process of this place", || self.living().is_empty());
    }

    /// Folders of all runs, oldest first.
    pub fn runs(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.state().join("runs")) else { return Vec::new() };
        let mut runs: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
        runs.sort();
        runs
    }

    /// Exit records of all ended runs, oldest first.
    #[track_caller]
    pub fn exits(&self) -> Vec<ExitRecord> {
        let read = |run: PathBuf| fs::read(run.join("exit.json")).ok();
        let decode = |bytes: Vec<u8>| serde_json::from_slice(&bytes).expect("a whole exit record");
        self.runs().into_iter().filter_map(read).map(decode).collect()
    }

    /// The exit record of the only run.
    #[track_caller]
    pub fn only_exit(&self) -> ExitRecord {
        let mut exits = self.exits();
        assert_eq!(exits.len(), 1, "{exits:?}");
        exits.remove(0)
    }

    /// Everything that a run has written.
    #[track_caller]
    pub fn output(&self, run_id: &str) -> Vec<u8> {
        fs::read(self.state().join("runs").join(run_id).join("output.log")).expect("an output log")
    }

    /// The name of this place.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its state folder.
    pub fn state(&self) -> PathBuf {
        self.folders.state()
    }

    /// Its control socket.
    pub fn control_socket(&self) -> PathBuf {
        self.folders.runtime().join("control.sock")
    }

    /// Writes `text` as this place's configuration. Returns the flags that have it read.
    pub fn configured(&self, text: &str) -> [String; 2] {
        let path = self.folder().join("sexton.toml");
        fs::write(&path, text).unwrap();
        ["--config".to_owned(), path.to_str().unwrap().to_owned()]
    }

    /// A folder for whatever else a test writes.
    pub fn folder(&self) -> &Path {
        self.folders.path()
    }

    /// Everything that was said, for a test that fails.
    fn testimony(&self) -> String {
        let said = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension == "stderr")
                || path.ends_with("state/journal.ndjson")
        };
        let mut files: Vec<PathBuf> = fs::read_dir(self.folder())
            .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
            .unwrap_or_default();
        files.push(self.state().join("journal.ndjson"));
        files.retain(said);
        files.sort();
        let show = |path: PathBuf| {
            let text = fs::read(&path).unwrap_or_default();
            format!("--- {}\n{}", path.display(), String::from_utf8_lossy(&text))
        };
        files.into_iter().map(show).collect()
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}--- living: {:?}", self.testimony(), self.living());
        }
        self.processes.kill();
        crate::cgroup::remove_cgroups_of_runs(&self.name);
    }
}
