//! What the kernel says about the memory of the whole host.
//!
//! Filled in by `host::memory` and `host::pressure`. Sources: proc(5), kernel `Documentation/filesystems/proc.rst`,
//! `Documentation/admin-guide/sysctl/vm.rst`, `Documentation/accounting/psi.rst`.
//!
//! What is free is [`Meminfo::available_bytes`] alone: it already counts clean page cache. [`Meminfo::cached_bytes`]
//! includes shared memory, pinned buffers among it, and is never free memory.

use serde::{Deserialize, Serialize};

use crate::reading::Reading;

/// `/proc/meminfo`, in bytes unless said otherwise. In a container it may be lxcfs' invention; see
/// [`Meminfo::contradictions`]. Numbers that do not fit are `u64::MAX`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meminfo {
    /// `MemTotal`. May grow while a VM uses memory.
    pub total_bytes: Reading<u64>,
    /// `MemFree`: pages that hold nothing.
    pub free_bytes: Reading<u64>,
    /// `MemAvailable`: what new programs can take without swapping.
    pub available_bytes: Reading<u64>,
    /// `Buffers`.
    pub buffers_bytes: Reading<u64>,
    /// `Cached`: page cache **and** shared memory.
    pub cached_bytes: Reading<u64>,
    /// `Active(file)`.
    pub active_file_bytes: Reading<u64>,
    /// `Inactive(file)`.
    pub inactive_file_bytes: Reading<u64>,
    /// `Unevictable`.
    pub unevictable_bytes: Reading<u64>,
    /// `Mlocked`. Memory pinned by a GPU driver is not in it.
    pub mlocked_bytes: Reading<u64>,
    /// `Dirty`: page cache that waits to be written.
    pub dirty_bytes: Reading<u64>,
    /// `Writeback`: page cache that is being written.
    pub writeback_bytes: Reading<u64>,
    /// `AnonPages`.
    pub anon_bytes: Reading<u64>,
    /// `Mapped`: page cache and shared memory that is mapped.
    pub mapped_bytes: Reading<u64>,
    /// `Shmem`: shared memory and tmpfs; `cuMemHostAlloc` is here.
    pub shmem_bytes: Reading<u64>,
    /// `SReclaimable`.
    pub slab_reclaimable_bytes: Reading<u64>,
    /// `SUnreclaim`.
    pub slab_unreclaimable_bytes: Reading<u64>,
    /// `KernelStack`.
    pub kernel_stack_bytes: Reading<u64>,
    /// `PageTables`: 2 MiB per GiB mapped by 4 KiB pages.
    pub page_tables_bytes: Reading<u64>,
    /// `SecPageTables` (Linux ≥ 6.1): page tables of IOMMUs and guests.
    pub secondary_page_tables_bytes: Reading<u64>,
    /// `Percpu`.
    pub percpu_bytes: Reading<u64>,
    /// `SwapTotal`.
    pub swap_total_bytes: Reading<u64>,
    /// `SwapFree`.
    pub swap_free_bytes: Reading<u64>,
    /// `SwapCached`.
    pub swap_cached_bytes: Reading<u64>,
    /// `CommitLimit`: binds only in [`OvercommitMode::Never`].
    pub commit_limit_bytes: Reading<u64>,
    /// `Committed_AS`: what all programs together may come to use.
    pub committed_bytes: Reading<u64>,
    /// `AnonHugePages`: transparent huge pages of anonymous memory.
    pub anon_huge_bytes: Reading<u64>,
    /// `ShmemHugePages`: the same of shared memory.
    pub shmem_huge_bytes: Reading<u64>,
    /// `FileHugePages`: the same of page cache.
    pub file_huge_bytes: Reading<u64>,
    /// `HugePages_Total`: pages in the pool of the default size. A number of pages.
    pub huge_pages_total: Reading<u64>,
    /// `HugePages_Free`: pages.
    pub huge_pages_free: Reading<u64>,
    /// `HugePages_Rsvd`: promised, not yet taken. Pages.
    pub huge_pages_reserved: Reading<u64>,
    /// `HugePages_Surp`: above the pool's size. Pages.
    pub huge_pages_surplus: Reading<u64>,
    /// `Hugepagesize`: the default size.
    pub huge_page_size_bytes: Reading<u64>,
    /// `Hugetlb`: all pools of all sizes. In no other figure but the total.
    pub hugetlb_bytes: Reading<u64>,
    /// `Balloon` (Linux ≥ 6.16): taken back by the hypervisor.
    pub balloon_bytes: Reading<u64>,
}

impl Meminfo {
    /// Swap in use, bytes, at least 0.
    pub fn swap_used_bytes(&self) -> Reading<u64> {
        self.swap_total_bytes
            .clone()
            .and_then(|total| self.swap_free_bytes.clone().map(|free| total.saturating_sub(free)))
    }

    /// Parts that claim to be larger than their whole, as `PART > WHOLE`: figures made up by lxcfs, or wrapped around.
    pub fn contradictions(&self) -> Vec<&'static str> {
        let pairs = [
            ("MemFree > MemTotal", &self.free_bytes, &self.total_bytes),
            ("MemAvailable > MemTotal", &self.available_bytes, &self.total_bytes),
            ("Cached > MemTotal", &self.cached_bytes, &self.total_bytes),
            ("SwapFree > SwapTotal", &self.swap_free_bytes, &self.swap_total_bytes),
            ("HugePages_Free > HugePages_Total", &self.huge_pages_free, &self.huge_pages_total),
        ];
        let contradicts = |part: &Reading<u64>, whole: &Reading<u64>| match (part, whole) {
            (Reading::Value(part), Reading::Value(whole)) => part > whole,
            _ => false,
        };
        pairs.into_iter().filter(|(_, part, whole)| contradicts(part, whole)).map(|(name, ..)| name).collect()
    }
}

/// The part of `/proc/vmstat` that tells of want of memory. All are counts since boot, over the whole host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vmstat {
    /// Out-of-memory kills of any sort (Linux ≥ 4.13).
    pub oom_kill: Reading<u64>,
    /// Pages looked at by `kswapd`, the reclaimer in the background.
    pub scanned_background: Reading<u64>,
    /// Pages looked at by tasks that wanted memory and had to wait for it.
    pub scanned_direct: Reading<u64>,
    /// Pages that `kswapd` freed.
    pub reclaimed_background: Reading<u64>,
    /// Pages that waiting tasks freed.
    pub reclaimed_direct: Reading<u64>,
    /// Pages read from swap.
    pub swapped_in: Reading<u64>,
    /// Pages written to swap.
    pub swapped_out: Reading<u64>,
}

/// `vm.overcommit_memory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OvercommitMode {
    /// 0: obvious excess is refused.
    Heuristic,
    /// 1: nothing is refused.
    Always,
    /// 2: what exceeds `CommitLimit` is refused.
    Never,
}

/// `vm.panic_on_oom`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PanicOnOom {
    /// 0: the killer kills.
    Never,
    /// 1: the machine panics when all of its memory is used up, not for a limit of a cgroup, cpuset or memory policy.
    HostOnly,
    /// 2: it panics for those too. Any cgroup that meets its limit takes the machine with it.
    Always,
}

/// Settings that decide what want of memory leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPolicy {
    /// `vm.overcommit_memory`.
    pub overcommit: Reading<OvercommitMode>,
    /// `vm.panic_on_oom`.
    pub panic_on_oom: Reading<PanicOnOom>,
    /// `vm.oom_kill_allocating_task`: whoever asks last is killed, whatever its score.
    pub oom_kill_allocating_task: Reading<bool>,
}

/// Time lost by tasks that waited for a resource (pressure stall information).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// At least one task waited.
    pub some: Reading<Stall>,
    /// All tasks that had something to do waited. Absent for the CPU before Linux 5.13.
    pub full: Reading<Stall>,
}

/// One line of a pressure file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Share of the last 10 seconds, 0 to 1.
    pub avg10_ratio: f64,
    /// Share of the last minute, 0 to 1.
    pub avg60_ratio: f64,
    /// Share of the last 5 minutes, 0 to 1.
    pub avg300_ratio: f64,
    /// All of it since boot, or since the cgroup was made: microseconds.
    pub total_us: u64,
}
