//! What can go wrong between `fork` and `execve`, and how it is named.

use std::ffi::OsString;
use std::io;

/// What the child was doing when something failed. The numbers are on disk and between processes: new ones come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// `setsid`
    Session = 1,
    /// Making or joining a cgroup.
    Cgroup,
    /// `setrlimit`
    Limit,
    /// Writing `oom_score_adj`.
    OomScore,
    /// Placing descriptors.
    Descriptors,
    /// `chdir`
    Folder,
    /// `execve`
    Exec,
    /// `set_mempolicy`
    MemoryPolicy,
}

impl Stage {
    const ALL: [Self; 8] = [
        Self::Session,
        Self::Cgroup,
        Self::Limit,
        Self::OomScore,
        Self::Descriptors,
        Self::Folder,
        Self::Exec,
        Self::MemoryPolicy,
    ];

    /// The stage with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| *stage as u8 == number)
    }
}

/// Why there is no running program.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A name, argument or variable with a NUL byte in it.
    #[error("a NUL byte in {0:?} cannot be passed to a program")]
    Nul(OsString),
    /// A NUMA node beyond what a memory policy can name here.
    #[error("there is no NUMA node {0}: node numbers end at {most}", most = super::NODES_MAX - 1)]
    Node(u32),
    /// The kernel made no process, pipe or pidfd.
    #[error("no process could be made: {0}")]
    Fork(#[source] io::Error),
    /// A step in the child failed, with its errno.
    #[error("{}: {}{}", stage_text(*.0), io::Error::from_raw_os_error(*.1), hint(*.0, *.1))]
    Child(Stage, i32),
    /// The child ended before it could say anything.
    #[error("the new process ended before its program could run")]
    Vanished,
}

fn stage_text(stage: Stage) -> &'static str {
    match stage {
        Stage::Session => "cannot start a session",
        Stage::Cgroup => "cannot make or join a cgroup of its own",
        Stage::Limit => "cannot set a resource limit",
        Stage::OomScore => "cannot set oom_score_adj",
        Stage::Descriptors => "cannot place file descriptors",
        Stage::Folder => "cannot enter the working folder",
        Stage::Exec => "cannot execute",
        Stage::MemoryPolicy => "cannot bind memory to the NUMA nodes",
    }
}

/// What an errno means that says little by itself (set_mempolicy(2)).
fn hint(stage: Stage, errno: i32) -> &'static str {
    match (stage, errno) {
        (Stage::MemoryPolicy, libc::EINVAL) => {
            ": a node is not there, has no memory, or its cpuset does not allow it"
        }
        (Stage::MemoryPolicy, libc::EPERM) => ": a container's seccomp filter forbids set_mempolicy(2)",
        (Stage::MemoryPolicy, libc::ENOSYS) => ": this kernel is built without NUMA",
        _ => "",
    }
}

impl SpawnError {
    /// The failed step and its errno, where it came to that.
    pub fn step(&self) -> Option<(Stage, i32)> {
        match self {
            Self::Child(stage, errno) => Some((*stage, *errno)),
            Self::Node(_) => Some((Stage::MemoryPolicy, libc::EINVAL)),
            _ => None,
        }
    }
}
