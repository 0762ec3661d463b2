//! Which processes a test has brought about, whoever their parent is now.

use std::fs;

use nix::sys::signal::Signal;
use sexton_process::Pidfd;

/// The processes of one supervised place: its keepers by their arguments; provers and whatever they start by an
/// environment variable that holds a path of this place only.
#[derive(Debug)]
pub struct OwnProcesses {
    keeper: Vec<u8>,
    variable: Vec<u8>,
}

impl OwnProcesses {
    pub(crate) fn new(name: &str, prover_socket: &str) -> Self {
        let keeper = format!("sexton-keeper\0{name}\0").into_bytes();
        Self { keeper, variable: format!("SEXTON_PROVER_SOCKET={prover_socket}\0").into_bytes() }
    }

    /// Living ones, keepers included. A zombie has neither arguments nor an environment.
    pub fn living(&self) -> Vec<i32> {
        let entries = fs::read_dir("/proc").expect("/proc is there");
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid| self.is_ours(*pid)).collect()
    }

    fn is_ours(&self, pid: i32) -> bool {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        read("cmdline") == self.keeper
            || read("environ").windows(self.variable.len()).any(|part| part == self.variable)
    }

    /// Kills one of them, never another process that has its PID by now.
    pub fn signal(&self, pid: i32, signal: Signal) {
        if let Ok(pidfd) = Pidfd::open(pid)
            && self.is_ours(pid)
        {
            let _ = pidfd.signal(signal as i32);
        }
    }

    /// Kills all of them.
    pub(crate) fn kill(&self) {
        // What they start meanwhile is found in the next round.
        for _ in 0..100 {
            let living = self.living();
            if living.is_empty() {
                return;
            }
            living.into_iter().for_each(|pid| self.signal(pid, Signal::SIGKILL));
        }
        eprintln!("cannot be killed: {:?}", self.living());
    }
}
