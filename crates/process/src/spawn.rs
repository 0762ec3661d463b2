//! Makes a process that waits, fully prepared, until it may run its program.
//!
//! ```text
//! parent                                child
//! Spawn::start ── fork ───────────────► reset signals, session, cgroups, limits, descriptors, folder
//!              ◄─ "prepared" ──────────
//! (records pid, start time, cgroups
//!  durably)                             waits
//! Held::release ─ one byte ───────────► execve
//!              ◄─ end of file: it runs; or stage + errno: it does not, and exits with 127 or 126
//! ```
//!
//! Dropping a [`Held`] ends the child without its program having run, and so does the death of the parent: there is
//! no prover without a record.

mod child;
mod error;
mod search;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use crate::Pidfd;
use crate::limits::ResourceLimit;
use child::Image;

pub use error::{SpawnError, Stage};
pub use search::find_program;

/// One more than the highest number of a NUMA node that can be named: the most that kernels are built for
/// (`CONFIG_NODES_SHIFT` ≤ 10).
pub const NODES_MAX: u32 = 1024;

/// What to run, and in which surroundings. Nothing is inherited that is not named here.
#[derive(Debug, Default)]
pub struct Spawn {
    /// The executable: a path, or a name that is looked for on `PATH` of `environment`.
    pub program: OsString,
    /// `argv`, the program's name for itself first.
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Working folder; the parent's where `None`.
    pub folder: Option<PathBuf>,
    /// `(number, descriptor)`: what the child has open. Numbers 0, 1 and 2 are `/dev/null` where not given.
    pub descriptors: Vec<(RawFd, OwnedFd)>,
    /// `cgroup.procs` files that the child writes itself into before its program runs (works for v1 and v2;
    /// `CLONE_INTO_CGROUP` is v2 only).
    pub cgroup_procs: Vec<PathBuf>,
    /// Resource limits, the parent's where not named. What is above the parent's hard limit takes CAP_SYS_RESOURCE;
    /// without, it becomes as high as allowed.
    pub limits: Vec<ResourceLimit>,
    /// Value for `/proc/self/oom_score_adj`; the parent's where `None`. Lowering it takes CAP_SYS_RESOURCE; without, it
    /// stays as it is.
    pub oom_score_adj: Option<i32>,
    /// NUMA nodes that its memory, and that of what it starts, may come from (`MPOL_BIND`); the parent's policy where
    /// empty.
    pub memory_nodes: Vec<u32>,
    /// File mode creation mask; the parent's where `None`.
    pub umask: Option<u32>,
    /// Whether it leads a session of its own, out of reach of the terminal's signals.
    pub own_session: bool,
}

/// Exit code of a child whose program could not be executed, as shells have it: 127 not found, 126 not executable.
pub const fn exec_failure_code(errno: i32) -> i32 {
    if matches!(errno, libc::ENOENT | libc::ENOTDIR) { 127 } else { 126 }
}

/// A child that is prepared and waits.
#[derive(Debug)]
pub struct Held {
    pid: i32,
    pidfd: Pidfd,
    go: PipeWriter,
    report: PipeReader,
}

impl Spawn {
    /// Makes the child and waits until it is prepared: it is in its cgroups and has its own identity, but its
    /// program does not run yet.
    ///
    /// # Errors
    /// [`SpawnError`]; a child that was made is reaped then.
    pub fn start(self) -> Result<Held, SpawnError> {
        let image = Image::new(&self)?;
        let (go_read, go) = io::pipe().map_err(SpawnError::Fork)?;
        let (report, report_write) = io::pipe().map_err(SpawnError::Fork)?;
        // Above every number that the child's own descriptors get, so that placing those overwrites neither.
        let floor = self.descriptors.iter().map(|(number, _)| *number).max().unwrap_or(0).max(2) + 1;
        let go_read = moved_above(go_read.into(), floor).map_err(SpawnError::Fork)?;
        let report_write = moved_above(report_write.into(), floor).map_err(SpawnError::Fork)?;

        // SAFETY: `Image::run_in_child` makes system calls on memory prepared above and nothing else: it takes no
        // lock and allocates nothing, so other threads of the parent may have held any lock at the fork.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(SpawnError::Fork(io::Error::last_os_error())),
            0 => {
                // The child would otherwise hold its own gate open, and never see the parent's death.
                // SAFETY: the child's copy, which nothing in the child uses; it never returns to drop `go`.
                unsafe { libc::close(go.as_raw_fd()) };
                image.run_in_child(go_read.as_raw_fd(), report_write.as_raw_fd())
            }
            pid => pid,
        };
        drop((go_read, report_write));
        // The child is ours and unreaped, so its PID cannot mean another process.
        let pidfd = Pidfd::open(pid).map_err(SpawnError::Fork)?;
        let mut held = Held { pid, pidfd, go, report };
        match held.read_report()? {
            Some(Report::Prepared) => Ok(held),
            Some(Report::Failed(stage, errno)) => {
                held.pidfd.wait().map_err(SpawnError::Fork)?;
                Err(SpawnError::Child(stage, errno))
            }
            None => {
                held.pidfd.wait().map_err(SpawnError::Fork)?;
                Err(SpawnError::Vanished)
            }
        }
    }
}

enum Report {
    Prepared,
    Failed(Stage, i32),
}

impl Held {
    /// PID of the child.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Handle on the child.
    pub fn pidfd(&self) -> &Pidfd {
        &self.pidfd
    }

    /// Lets the child run its program. Returns once it runs or has failed to.
    ///
    /// The child is not reaped when that fails: it ends with [`exec_failure_code`], and whoever records endings
    /// records this one like any other.
    pub fn release(mut self) -> (Pidfd, Result<(), SpawnError>) {
        let result = match self.go.write_all(b"g") {
            // EPIPE: killed while it waited. Its wait status says by what.
            Err(_) => Err(SpawnError::Vanished),
            Ok(()) => match self.read_report() {
                Ok(None) => Ok(()),
                Ok(Some(Report::Failed(stage, errno))) => Err(SpawnError::Child(stage, errno)),
                Ok(Some(Report::Prepared)) => Err(SpawnError::Vanished),
                Err(error) => Err(error),
            },
        };
        (self.pidfd, result)
    }

    /// One record of five bytes (stage, errno), or `None` at the end of file that close-on-exec brings.
    fn read_report(&mut self) -> Result<Option<Report>, SpawnError> {
        let mut record = [0; 5];
        match self.report.read_exact(&mut record) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other.map_err(SpawnError::Fork)?,
        }
        let [number, errno @ ..] = record;
        Ok(Some(match Stage::from_number(number) {
            Some(stage) => Report::Failed(stage, i32::from_ne_bytes(errno)),
            None => Report::Prepared,
        }))
    }
}

/// The same pipe end at a number of at least `floor`. The old one is closed: a write end that stays open here would hide
/// the child's death from whoever reads.
fn moved_above(end: OwnedFd, floor: RawFd) -> io::Result<OwnedFd> {
    use nix::fcntl::{FcntlArg, fcntl};
    let number = fcntl(&end, FcntlArg::F_DUPFD_CLOEXEC(floor))?;
    // SAFETY: the number that F_DUPFD_CLOEXEC returns is new and ours.
    Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(number) })
}
