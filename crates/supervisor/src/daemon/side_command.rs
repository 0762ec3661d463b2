//! Commands of the operator's that run beside the prover for a moment: hooks, quiesce and unquiesce.
//!
//! Each has a session and group of its own, a time limit after which the group is killed, a document on its standard
//! input, and an environment by allow-list. What it leaves running in its group ends with it. Its output is read as it
//! comes, and the end of it kept.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sexton_model::units::Human;
use sexton_model::wait::WaitStatus;
use sexton_process::{Held, Pidfd, Readable, Spawn, SpawnError, kill_group};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::terminal;

/// How much of a command's output is kept, bytes.
pub const OUTPUT_MAX: usize = 4096;

/// How long a killed command may take to be gone: one in a driver or on a dead file system does not go at all.
const DEATH_PATIENCE: Duration = Duration::from_secs(5);

/// What a command inherits of our environment: what programs need to find themselves, and nothing that holds secrets.
const INHERITED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// Children of ours beside the keeper. Nobody else may take their statuses.
#[derive(Debug, Clone, Default)]
pub struct SideChildren(Arc<Mutex<BTreeSet<i32>>>);

impl SideChildren {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are alive, or dead and not reaped.
    pub fn pids(&self) -> Vec<i32> {
        self.lock().iter().copied().collect()
    }

    /// Reaps what we inherited, but none of these and none of `others`.
    ///
    /// # Errors
    /// As [`sexton_process::reap_orphans`].
    pub fn reap_orphans(&self, others: &[i32]) -> io::Result<usize> {
        let own = self.lock();
        let keep: Vec<i32> = own.iter().chain(others).copied().collect();
        // With the lock held, so that no child is made between the list and the wait.
        sexton_process::reap_orphans(&keep)
    }

    fn start(&self, spawn: Spawn) -> Result<(Held, Child), SpawnError> {
        let mut own = self.lock();
        let held = spawn.start()?;
        let pid = held.pid();
        let pidfd = Pidfd::open(pid).map_err(SpawnError::Fork)?;
        own.insert(pid);
        Ok((held, Child { pid, pidfd, children: self.clone() }))
    }
}

/// A child that is ours alone. Dropped, its group is killed and whoever reaps orphans reaps it.
struct Child {
    pid: i32,
    pidfd: Pidfd,
    children: SideChildren,
}

impl Drop for Child {
    fn drop(&mut self) {
        // Unreaped as long as it is on the list, so the number is its own.
        let mut own = self.children.lock();
        if own.contains(&self.pid) {
            let _ = kill_group(self.pid);
            own.remove(&self.pid);
        }
    }
}

impl Child {
    /// Ends what is left of its group and takes its status. It has ended.
    fn reap(&self) -> WaitStatus {
        let _ = kill_group(self.pid);
        let mut own = self.children.lock();
        own.remove(&self.pid);
        // With the lock held: off the list and unreaped, it would be an orphan to others.
        self.pidfd.reap().ok().flatten().map_or(WaitStatus::UNKNOWN, |ended| ended.status)
    }
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideCommand {
    /// Program and arguments. A name without a slash is looked for on our `PATH`.
    pub command: Vec<OsString>,
    /// How long it may take.
    pub timeout: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// By itself, or by a signal of somebody else's.
    Ended(WaitStatus),
    /// It was killed at its time limit.
    Overdue,
    /// It was to be killed at its time limit, and lives on: in the kernel's hands.
    Unkillable,
    /// Its program never ran.
    NotStarted(String),
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub duration: Duration,
    /// How long it was allowed to take.
    pub timeout: Duration,
    /// The last [`OUTPUT_MAX`] bytes that it wrote to its standard output and error, lossy UTF-8.
    pub output: String,
}

impl Outcome {
    /// It ended with code 0.
    pub fn is_success(&self) -> bool {
        self.ending == Ending::Ended(WaitStatus::exited(0))
    }
}

impl fmt::Display for Outcome {
    /// One line: `exited with code 3 after 20 ms: cannot reach the pager`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ending {
            Ending::Ended(status) => write!(f, "{status} after {}", Human(self.duration))?,
            Ending::Overdue => write!(f, "did not end within {} and was killed", Human(self.timeout))?,
            Ending::Unkillable => {
                write!(f, "did not end within {} and cannot be killed", Human(self.timeout))?
            }
            Ending::NotStarted(why) => write!(f, "could not be started: {why}")?,
        }
        match self.output.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => write!(f, ": {}", terminal::calm_line(line.trim())),
            None => Ok(()),
        }
    }
}

/// Runs a command with `input` on its standard input and `told` in its environment. Broken off, it kills it.
///
/// Making the process takes the caller's thread for a moment (a fork); waiting for its program to be read does not.
pub async fn run(
    children: &SideChildren,
    what: &SideCommand,
    told: &[(String, OsString)],
    input: &[u8],
) -> Outcome {
    let begin = Instant::now();
    let (ending, output) = match prepare(what, told, input)
        .and_then(|(spawn, output)| Ok((children.start(spawn).map_err(|error| error.to_string())?, output)))
    {
        Ok(((held, child), output)) => attend(held, child, output, begin + what.timeout).await,
        Err(why) => (Ending::NotStarted(why), Vec::new()),
    };
    let output = String::from_utf8_lossy(&output).into_owned();
    Outcome { ending, duration: begin.elapsed(), timeout: what.timeout, output }
}

fn prepare(
    what: &SideCommand,
    told: &[(String, OsString)],
    input: &[u8],
) -> Result<(Spawn, pipe::Receiver), String> {
    let program = what.command.first().ok_or("the command is empty")?.clone();
    let failed = |error: io::Error| error.to_string();
    let (reader, writer) = io::pipe().map_err(failed)?;
    let writer = OwnedFd::from(writer);
    let spawn = Spawn {
        program,
        arguments: what.command.clone(),
        environment: environment(told),
        folder: Some("/".into()),
        descriptors: vec![
            (0, document(input).map_err(failed)?),
            (1, writer.try_clone().map_err(failed)?),
            (2, writer),
        ],
        // Whatever protects or exposes us is not meant for it.
        oom_score_adj: Some(0),
        own_session: true,
        ..Spawn::default()
    };
    let output = pipe::Receiver::from_owned_fd(reader.into()).map_err(failed)?;
    Ok((spawn, output))
}

/// A file without a name: whoever reads it reads at his own pace, or not at all.
fn document(input: &[u8]) -> io::Result<OwnedFd> {
    use std::io::{Seek, Write};
    let file = rustix::fs::memfd_create("sexton-input", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(file);
    file.write_all(input)?;
    file.rewind()?;
    Ok(file.into())
}

fn environment(told: &[(String, OsString)]) -> Vec<(OsString, OsString)> {
    let inherited = INHERITED.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    inherited.chain(told.iter().map(|(name, value)| (name.into(), value.clone()))).collect()
}

async fn attend(held: Held, child: Child, output: pipe::Receiver, deadline: Instant) -> (Ending, Vec<u8>) {
    let mut kept = Tail::new(output);
    let ended = match Readable::new(&child.pidfd) {
        Ok(ended) => ended,
        Err(error) => return (Ending::NotStarted(error.to_string()), Vec::new()),
    };
    let (told, executed) = oneshot::channel();
    // A thread of its own: `execve` reads the program, which a dead file system never gives.
    let release = move || drop(told.send(held.release().1));
    if let Err(error) = std::thread::Builder::new().name("side command".to_owned()).spawn(release) {
        return (Ending::NotStarted(error.to_string()), Vec::new());
    }
    let in_time = tokio::time::timeout_at(deadline, kept.read_while(ended.wait())).await.is_ok();
    if !in_time {
        let _ = kill_group(child.pid);
        if tokio::time::timeout(DEATH_PATIENCE, kept.read_while(ended.wait())).await.is_err() {
            return (Ending::Unkillable, kept.finish());
        }
    }
    let status = child.reap();
    let ending = match executed.await {
        _ if !in_time => Ending::Overdue,
        Ok(Err(error)) => Ending::NotStarted(error.to_string()),
        _ => Ending::Ended(status),
    };
    (ending, kept.finish())
}

/// The end of what is written to a pipe.
struct Tail {
    /// Absent once it is at its end.
    pipe: Option<pipe::Receiver>,
    kept: Vec<u8>,
}

impl Tail {
    fn new(pipe: pipe::Receiver) -> Self {
        Self { pipe: Some(pipe), kept: Vec::new() }
    }

    /// Reads until `end` comes about.
    async fn read_while<T>(&mut self, end: impl Future<Output = T>) {
        tokio::pin!(end);
        loop {
            let readable = async {
                match &self.pipe {
                    Some(pipe) => pipe.readable().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = &mut end => return,
                readable = readable => match readable {
                    Ok(()) => self.read(),
                    Err(_) => self.pipe = None,
                },
            }
        }
    }

    /// Reads what is there, at most what a pipe holds: a writer that never stops must not hold us.
    fn read(&mut self) {
        let mut buffer = [0; OUTPUT_MAX];
        for _ in 0..16 {
            match self.pipe.as_ref().map(|pipe| pipe.try_read(&mut buffer)) {
                Some(Ok(length)) if length > 0 => {
                    self.kept.extend_from_slice(&buffer[..length]);
                    let surplus = self.kept.len().saturating_sub(OUTPUT_MAX);
                    self.kept.drain(..surplus);
                }
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => return,
                _ => {
                    self.pipe = None;
                    return;
                }
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.read();
        self.kept
    }
}

#[cfg(test)]
mod tests;
