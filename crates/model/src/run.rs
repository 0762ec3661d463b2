//! A run: one life of the prover.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::cgroup::CgroupVersion;

/// What tells one process from every other that this host ever ran.
///
/// A PID alone is reused; with its start time it is unique within a boot and a PID namespace. The executable is not
/// part of it, since `exec` changes that without ending the process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Inode of `/proc/self/ns/pid` of the namespace in which `pid` counts.
    pub pid_namespace: u64,
    /// PID in that namespace, ≥ 1.
    pub pid: i32,
    /// Field 22 of `/proc/PID/stat`: start time in clock ticks since boot.
    pub start_ticks: u64,
}

/// The executable that a process runs, as found when it was last looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executable {
    /// Path after resolving links; absent where it could not be read.
    pub path: Option<String>,
    /// Device number of the file, as `st_dev`.
    pub device: Option<u64>,
    /// Inode number of the file.
    pub inode: Option<u64>,
    /// SHA-256 of the contents, lower-case hex.
    pub sha256: Option<String>,
}

/// Where a run stands in the cgroup tree: one line of `/proc/PID/cgroup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupPath {
    /// Hierarchy number; 0 is the unified (v2) hierarchy.
    pub hierarchy: u32,
    /// Controllers of a v1 hierarchy, comma-separated; empty for v2.
    pub controllers: String,
    /// Path as the process' own cgroup namespace shows it.
    pub path: String,
}

/// A cgroup that was made for one run. Only in such a one may processes be killed by cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeCgroup {
    /// The interface.
    pub version: CgroupVersion,
    /// As `/proc/PID/cgroup` showed it to its maker.
    pub path: String,
    /// Its folder on this host, lossy UTF-8.
    pub folder: String,
}

/// `run.json`: written durably before the prover's first instruction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Sorts by start: `YYYYMMDDTHHMMSS.mmmZ-PID`.
    pub run_id: String,
    /// Program and arguments as given.
    pub command: Vec<String>,
    /// Absent when no process could be made.
    pub identity: Option<ProcessIdentity>,
    /// The executable that `exec` was asked for.
    pub executable: Executable,
    /// When the process was made (it starts to run after this record is durable).
    pub started_at: Timestamp,
    /// Cgroups of the process at its start.
    pub cgroups: Vec<CgroupPath>,
    /// The one among them that was made for this run; `null` where none was.
    #[serde(default)]
    pub made_cgroup: Option<MadeCgroup>,
    /// What the supervisor hands the prover as its memory budget; absent where none is set.
    pub budget_bytes: Option<u64>,
}
