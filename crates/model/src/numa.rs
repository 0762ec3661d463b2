//! Memory of NUMA nodes, and which of them a process may use.

use serde::{Deserialize, Serialize};

use crate::reading::Reading;

/// `/sys/devices/system/node/nodeN/meminfo`, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeMemory {
    /// Number of the node.
    pub node: u32,
    /// `MemTotal`.
    pub total_bytes: Reading<u64>,
    /// `MemFree`.
    pub free_bytes: Reading<u64>,
    /// `Active(file)`.
    pub active_file_bytes: Reading<u64>,
    /// `Inactive(file)`.
    pub inactive_file_bytes: Reading<u64>,
    /// `Dirty`.
    pub dirty_bytes: Reading<u64>,
    /// `Writeback`.
    pub writeback_bytes: Reading<u64>,
    /// `SReclaimable`.
    pub slab_reclaimable_bytes: Reading<u64>,
}

/// The nodes that have memory, and those of them that count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryNodes {
    /// Numbers of the nodes that may be used (`Mems_allowed_list`, `cpuset.mems.effective`). It may name nodes that do
    /// not exist.
    pub allowed: Reading<Vec<u32>>,
    /// All nodes that have memory. Absent on a kernel without NUMA.
    pub nodes: Reading<Vec<NodeMemory>>,
}
