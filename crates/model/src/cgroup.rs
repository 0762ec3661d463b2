//! What the memory controller says about a process' cgroup and every cgroup above it that this host shows.
//!
//! Filled in by `host::cgroup`, judged by `diagnosis`. Sources: kernel `Documentation/admin-guide/cgroup-v1/memory.rst`
//! and `cgroup-v2.rst`, `mm/memcontrol.c`, `mm/memcontrol-v1.c`.
//!
//! Counters come in two kinds that must not be mixed up. *Local* ones count what happened to members of this very
//! cgroup; *subtree* ones also what happened to those of its descendants. v1 has local ones only. An out-of-memory kill
//! is counted where the **victim** was, which need not be where the limit was: a parent at its limit shows it in
//! `failcnt` and usage, and (v2) in the local `oom`.

mod bounds;
mod counters;
mod limit;

use serde::{Deserialize, Serialize};

use crate::memory::Pressure;
use crate::reading::Reading;

pub use bounds::{Bound, BoundKind, Tightest};
pub use counters::{LevelCounters, MemoryEvents};
pub use limit::Limit;

/// Which of the two interfaces owns the memory controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// `cgroup`, one hierarchy a controller or group of controllers; hybrid hosts that keep `memory` there too.
    V1,
    /// `cgroup2`, the unified hierarchy.
    V2,
}

/// A process' place under the memory controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryCgroup {
    /// The interface.
    pub version: CgroupVersion,
    /// Whether there are cgroups above the last of `levels`, which this host does not show: a container sees its own
    /// part of the tree only. Their limits bind all the same.
    pub hidden_ancestors: Reading<bool>,
    /// The cgroup that the process' memory is charged to, its parent, and so on up to the root of the mount. Never empty.
    /// In v2 the first one is the nearest that has the memory controller; the process may be in one below it.
    pub levels: Vec<CgroupLevel>,
}

/// One cgroup of that line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CgroupLevel {
    /// Its path as `/proc/PID/cgroup` shows it to the reader; `/` is the root of the hierarchy or of the reader's cgroup
    /// namespace.
    pub path: String,
    /// The folder of its files.
    pub folder: String,
    /// Memory limit: `memory.limit_in_bytes`, `memory.max`. Absent at the root of a v2 hierarchy, which has none.
    pub limit: Reading<Limit>,
    /// v2 `memory.high`: above it members are slowed down and reclaimed from, not killed.
    pub high: Reading<Limit>,
    /// v1 `memory.memsw.limit_in_bytes`: memory **and** swap together. Absent without swap accounting.
    pub memsw_limit: Reading<Limit>,
    /// v2 `memory.swap.max`: swap alone.
    pub swap_limit: Reading<Limit>,
    /// `memory.usage_in_bytes`, `memory.current`: bytes, page cache and descendants included.
    pub usage_bytes: Reading<u64>,
    /// `memory.max_usage_in_bytes`, `memory.peak` (Linux ≥ 5.19): largest usage so far, bytes. v1 lets it be reset.
    pub peak_bytes: Reading<u64>,
    /// Swap in use, bytes, descendants included: v1 `memory.stat`, v2 `memory.swap.current`.
    pub swap_bytes: Reading<u64>,
    /// What the usage consists of.
    pub stat: MemoryStat,
    /// What happened so far.
    pub counters: LevelCounters,
    /// v1 `oom_kill_disable`: at the limit tasks sleep (state D) instead of being killed.
    pub oom_kill_disable: Reading<bool>,
    /// v1 `under_oom`: that is so at this moment.
    pub under_oom: Reading<bool>,
    /// v2 `memory.oom.group`: an out-of-memory kill takes all members at once.
    pub oom_group: Reading<bool>,
    /// v2 `memory.pressure`. Absent where PSI is off.
    pub pressure: Reading<Pressure>,
    /// Processes in this very cgroup. Unreadable where the process is charged to it from a cgroup below, as others may
    /// be.
    pub members: Reading<Members>,
}

/// Parts of a cgroup's usage in bytes, descendants included: v1 the `total_…` lines of `memory.stat`, v2 all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStat {
    /// `anon`, v1 `rss`: anonymous memory.
    pub anon_bytes: Reading<u64>,
    /// `shmem`: shared memory and tmpfs, `cuMemHostAlloc` included. It is no cache: it goes only when its owners go.
    pub shmem_bytes: Reading<u64>,
    /// `active_file`: page cache used lately.
    pub active_file_bytes: Reading<u64>,
    /// `inactive_file`: page cache first to be reclaimed.
    pub inactive_file_bytes: Reading<u64>,
    /// `file_dirty`, v1 `dirty`: page cache that must be written before it can be reclaimed.
    pub dirty_bytes: Reading<u64>,
    /// `file_writeback`, v1 `writeback`: page cache that is being written now.
    pub writeback_bytes: Reading<u64>,
    /// v1 `hierarchical_memory_limit`: the least limit of this cgroup and **all** above it, hidden ones included.
    pub hierarchical_limit: Reading<Limit>,
}

/// The processes of one cgroup: `cgroup.procs`. A process that is over is not listed, though unreaped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// PIDs in the reader's namespace, as listed.
    pub pids: Vec<i32>,
    /// How many there are besides, outside the reader's PID namespace (listed as 0).
    pub foreign: u64,
}

impl Members {
    /// Whether nobody but `pids` is in it.
    pub fn all_among(&self, pids: &[i32]) -> bool {
        self.foreign == 0 && self.pids.iter().all(|pid| pids.contains(pid))
    }
}

impl CgroupLevel {
    /// Bytes held: usage without page cache, never below 0. This is what must come back after a process has ended; a
    /// file that was read stays charged, with nobody in the cgroup, until memory is short.
    pub fn charge_bytes(&self) -> Reading<u64> {
        self.file_cache_bytes()
            .and_then(|cache| self.usage_bytes.clone().map(|usage| usage.saturating_sub(cache)))
    }

    /// Bytes of page cache, clean or not.
    pub fn file_cache_bytes(&self) -> Reading<u64> {
        self.stat.active_file_bytes.clone().and_then(|active| {
            self.stat.inactive_file_bytes.clone().map(|inactive| active.saturating_add(inactive))
        })
    }

    /// Bytes of page cache that the kernel can drop at once. Where the kernel does not say how much of it is dirty, all
    /// of it counts.
    pub fn clean_cache_bytes(&self) -> Reading<u64> {
        let unclean = |part: &Reading<u64>| part.value().copied().unwrap_or(0);
        let unclean = unclean(&self.stat.dirty_bytes).saturating_add(unclean(&self.stat.writeback_bytes));
        self.file_cache_bytes().map(|cache| cache.saturating_sub(unclean))
    }

    /// Whether nobody but `pids` is in this cgroup. Only then are its local counters about them alone.
    pub fn exclusive_to(&self, pids: &[i32]) -> Reading<bool> {
        self.members.clone().map(|members| members.all_among(pids))
    }
}

impl MemoryCgroup {
    /// The cgroup that is charged.
    pub fn own(&self) -> Option<&CgroupLevel> {
        self.levels.first()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A level of which nothing was read.
    pub(crate) fn bare(path: &str) -> CgroupLevel {
        CgroupLevel {
            path: path.to_owned(),
            folder: format!("/sys/fs/cgroup{path}"),
            limit: Reading::Absent,
            high: Reading::Absent,
            memsw_limit: Reading::Absent,
            swap_limit: Reading::Absent,
            usage_bytes: Reading::Absent,
            peak_bytes: Reading::Absent,
            swap_bytes: Reading::Absent,
            stat: MemoryStat {
                anon_bytes: Reading::Absent,
                shmem_bytes: Reading::Absent,
                active_file_bytes: Reading::Absent,
                inactive_file_bytes: Reading::Absent,
                dirty_bytes: Reading::Absent,
                writeback_bytes: Reading::Absent,
                hierarchical_limit: Reading::Absent,
            },
            counters: LevelCounters::all(&Reading::Absent),
            oom_kill_disable: Reading::Absent,
            under_oom: Reading::Absent,
            oom_group: Reading::Absent,
            pressure: Reading::Absent,
            members: Reading::Absent,
        }
    }

    /// `bare`, with a usage of which `cache` bytes are page cache.
    pub(crate) fn used(path: &str, usage: u64, cache: u64) -> CgroupLevel {
        let mut level = bare(path);
        level.usage_bytes = Reading::Value(usage);
        level.stat.active_file_bytes = Reading::Value(cache / 2);
        level.stat.inactive_file_bytes = Reading::Value(cache - cache / 2);
        level
    }

    #[test]
    fn page_cache_is_not_held_memory() {
        assert_eq!(used("/a", 10 << 30, 3 << 30).charge_bytes(), Reading::Value(7 << 30));
        assert_eq!(
            used("/a", 5, 7).charge_bytes(),
            Reading::Value(0),
            "the two files are not read at one instant"
        );
        let mut unknown = used("/a", 5, 1);
        unknown.stat.active_file_bytes = Reading::Absent;
        assert_eq!(unknown.charge_bytes(), Reading::Absent);
    }

    #[test]
    fn dirty_page_cache_is_not_free() {
        let mut level = used("/a", 100, 50);
        level.stat.dirty_bytes = Reading::Value(10);
        level.stat.writeback_bytes = Reading::Value(5);
        assert_eq!(level.clean_cache_bytes(), Reading::Value(35));
        level.stat.dirty_bytes = Reading::Value(u64::MAX);
        assert_eq!(level.clean_cache_bytes(), Reading::Value(0));
    }

    #[test]
    fn a_member_outside_the_pid_namespace_makes_a_cgroup_shared() {
        let mut level = bare("/a");
        level.members = Reading::Value(Members { pids: vec![7, 9], foreign: 0 });
        assert_eq!(level.exclusive_to(&[7, 8, 9]), Reading::Value(true));
        assert_eq!(level.exclusive_to(&[7]), Reading::Value(false));
        level.members = Reading::Value(Members { pids: vec![7], foreign: 1 });
        assert_eq!(level.exclusive_to(&[7]), Reading::Value(false));
        assert_eq!(bare("/a").exclusive_to(&[7]), Reading::Absent, "not read: not said");
    }

    #[test]
    fn a_memory_cgroup_survives_json() {
        let mut level = used("/a", u64::MAX, 7);
        level.limit = Reading::Value(Limit::Unlimited);
        level.high = Reading::Value(Limit::Bytes(64));
        let cgroup = MemoryCgroup {
            version: CgroupVersion::V2,
            hidden_ancestors: Reading::Value(true),
            levels: vec![level],
        };
        let json = serde_json::to_string(&cgroup).unwrap();
        assert_eq!(serde_json::from_str::<MemoryCgroup>(&json).unwrap(), cgroup);
    }
}
