//! Headroom: what a new process may take now, and the limit that binds.
//!
//! Concluded by `diagnosis::headroom`, which says how each limit is reckoned. The supervisor's start gate and `memprobe`
//! show the same document.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::reading::{Obstacle, Reading};
use crate::units::Bytes;

/// Whose limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitSource {
    /// `MemAvailable`: what the host has left. No limit that is set, but the end all the same.
    HostAvailable,
    /// v1 `memory.limit_in_bytes`, v2 `memory.max`: over it, the out-of-memory killer.
    CgroupLimit,
    /// v2 `memory.high`: over it members are slowed down until they hardly move.
    CgroupHigh,
    /// v1 `memory.memsw.limit_in_bytes`: memory and swap together.
    CgroupMemsw,
    /// v1 `hierarchical_memory_limit` below every limit that can be seen: a cgroup that this host does not show.
    CgroupHidden,
    /// `CommitLimit` less what is promised, where `vm.overcommit_memory` is 2.
    CommitLimit,
    /// RLIMIT_AS: address space, which every mapping uses up whether it is touched or not.
    AddressSpace,
    /// RLIMIT_DATA: private writable mappings, touched or not.
    DataSegment,
    /// The NUMA nodes that the process may use, where these are not all.
    NumaNodes,
    /// Met by probing: a limit that nothing shows.
    Probed,
}

impl LimitSource {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostAvailable => "MemAvailable of the host",
            Self::CgroupLimit => "memory limit of the cgroup",
            Self::CgroupHigh => "memory.high of the cgroup",
            Self::CgroupMemsw => "memory and swap limit of the cgroup",
            Self::CgroupHidden => "memory limit of a cgroup above, not shown here",
            Self::CommitLimit => "CommitLimit (vm.overcommit_memory is 2)",
            Self::AddressSpace => "RLIMIT_AS",
            Self::DataSegment => "RLIMIT_DATA",
            Self::NumaNodes => "memory of the allowed NUMA nodes",
            Self::Probed => "a limit met by probing",
        }
    }
}

/// Where a limit is, seen from the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitLevel {
    /// The cgroup that is charged.
    Own,
    /// One above it.
    Ancestor,
    /// One above those that this host shows.
    Hidden,
    /// The whole host.
    Host,
    /// The process itself.
    Process,
}

/// One limit, and what it leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadroomLimit {
    /// What a new process can take before it meets this limit, bytes.
    pub bytes: u64,
    /// The limit itself, bytes: for the host and for nodes, all of their memory. `null` where that is not known.
    pub limit_bytes: Option<u64>,
    /// Page cache among what is left that the kernel must drop first, bytes.
    pub cache_bytes: u64,
    /// What sort it is.
    pub source: LimitSource,
    /// Where it is.
    pub level: LimitLevel,
    /// Path of the cgroup; `null` for other limits.
    pub path: Option<String>,
}

impl fmt::Display for HeadroomLimit {
    /// `memory limit of the cgroup /a/b (8.0 GiB): 2.0 GiB left`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source.name())?;
        if let Some(path) = &self.path {
            write!(f, " {path}")?;
        }
        if let Some(limit) = self.limit_bytes {
            write!(f, " ({})", Bytes(limit))?;
        }
        write!(f, ": {} left", Bytes(self.bytes))
    }
}

/// What a new process may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headroom {
    /// Bytes: the least that any limit leaves. Unreadable where no limit could be read at all.
    pub bytes: Reading<u64>,
    /// The limit that leaves the least.
    pub binding_limit: Option<HeadroomLimit>,
    /// All limits that are set, the tightest first; of equal ones the nearest to the process.
    pub limits: Vec<HeadroomLimit>,
    /// What could not be read: one of these may bind tighter.
    pub obstacles: Vec<Obstacle>,
    /// Figures that contradict each other (`MemAvailable > MemTotal`): made up by lxcfs, and believed as far as the other
    /// limits allow.
    pub contradictions: Vec<String>,
    /// Bytes that an ended run still holds and is giving back: not in `bytes` yet.
    pub being_released_bytes: u64,
}
