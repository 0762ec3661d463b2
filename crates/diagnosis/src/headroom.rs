//! What a new process may take now, and which limit binds.
//!
//! | limit | leaves |
//! |---|---|
//! | host | `MemAvailable` alone: it counts clean page cache already, so nothing is added to it |
//! | cgroup, each level up to the top | limit − usage + page cache that can be dropped at once |
//! | v1 `hierarchical_memory_limit` below all that can be seen | the same, with the usage of the topmost level seen |
//! | v2 `memory.high` | as a limit: over it a prover hardly moves |
//! | v1 memory+swap | limit − usage − swap + the same page cache |
//! | `CommitLimit`, with overcommit 2 only | `CommitLimit` − `Committed_AS` |
//! | RLIMIT_AS, RLIMIT_DATA | all of it: a new process has used none |
//! | NUMA nodes, where not all are allowed | what these nodes have, reckoned as the kernel does for the host |
//!
//! `memory.swap.max` is no limit of memory and is not here: a prover's memory is pinned and is never swapped out. Shared
//! memory is part of `Cached` and of usage and is never taken for free: `cuMemHostAlloc` is in it. Pools of huge pages
//! (`hugetlb`) are in no figure but `MemTotal`, so what they hold back is not counted as free.
//!
//! Differences saturate at 0, since no two files are read at one instant; "unlimited" is a value of its own
//! ([`sexton_model::cgroup::Limit`]), never a large number.

use sexton_model::cgroup::{CgroupLevel, MemoryCgroup};
use sexton_model::headroom::{Headroom, HeadroomLimit, LimitLevel, LimitSource};
use sexton_model::memory::{Meminfo, OvercommitMode};
use sexton_model::numa::{MemoryNodes, NodeMemory};
use sexton_model::process_limits::ProcessLimits;
use sexton_model::reading::{Obstacle, ObstacleKind, Reading};

/// Where the new process is going to be.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// The host's memory.
    pub meminfo: &'a Reading<Meminfo>,
    /// `vm.overcommit_memory`.
    pub overcommit: &'a Reading<OvercommitMode>,
    /// The cgroup that the process is going to be in, and those above it. Absent: there is no memory controller.
    pub cgroup: &'a Reading<MemoryCgroup>,
    /// Resource limits that it inherits or is given.
    pub process: &'a ProcessLimits,
    /// NUMA nodes that it may use.
    pub nodes: &'a MemoryNodes,
    /// A limit that is going to be set on a cgroup made for the process, below that one.
    pub own_cgroup_limit: Option<u64>,
    /// What an ended run is still giving back; passed on as it is.
    pub being_released_bytes: u64,
}

/// What a new process may take in these circumstances.
pub fn headroom(circumstances: &Circumstances<'_>) -> Headroom {
    let mut found = Found::default();
    found.process(circumstances.process);
    if let Some(limit) = circumstances.own_cgroup_limit {
        found.planned(limit);
    }
    match circumstances.cgroup {
        Reading::Value(cgroup) => found.cgroup(cgroup),
        Reading::Absent => {}
        Reading::Unreadable(obstacle) => found.obstacle(obstacle),
    }
    let mut contradictions = Vec::new();
    match circumstances.meminfo {
        Reading::Value(meminfo) => {
            contradictions = meminfo.contradictions().into_iter().map(str::to_owned).collect();
            found.nodes(circumstances.nodes, meminfo);
            found.host(meminfo);
            found.commitment(meminfo, circumstances.overcommit);
        }
        Reading::Absent => found.obstacle(&failed("/proc/meminfo: not there: is /proc mounted?")),
        Reading::Unreadable(obstacle) => found.obstacle(obstacle),
    }
    found.into_headroom(contradictions, circumstances.being_released_bytes)
}

fn failed(why: impl Into<String>) -> Obstacle {
    Obstacle::new(ObstacleKind::Failed, why)
}

/// Limits found so far, the nearest to the process first.
#[derive(Debug, Default)]
struct Found {
    limits: Vec<HeadroomLimit>,
    obstacles: Vec<Obstacle>,
}

impl Found {
    fn obstacle(&mut self, obstacle: &Obstacle) {
        if !self.obstacles.contains(obstacle) {
            self.obstacles.push(obstacle.clone());
        }
    }

    /// The value, or its obstacle noted.
    fn take<'a, T>(&mut self, reading: &'a Reading<T>) -> Option<&'a T> {
        if let Reading::Unreadable(obstacle) = reading {
            self.obstacle(obstacle);
        }
        reading.value()
    }

    fn process(&mut self, limits: &ProcessLimits) {
        let both =
            [(&limits.address_space, LimitSource::AddressSpace), (&limits.data, LimitSource::DataSegment)];
        for (limit, source) in both {
            if let Some(bytes) = self.take(limit).and_then(|limit| limit.bytes()) {
                let level = LimitLevel::Process;
                self.limits.push(HeadroomLimit {
                    bytes,
                    limit_bytes: Some(bytes),
                    cache_bytes: 0,
                    source,
                    level,
                    path: None,
                });
            }
        }
    }

    fn planned(&mut self, limit: u64) {
        self.limits.push(HeadroomLimit {
            bytes: limit,
            limit_bytes: Some(limit),
            cache_bytes: 0,
            source: LimitSource::CgroupLimit,
            level: LimitLevel::Own,
            path: None,
        });
    }

    fn cgroup(&mut self, cgroup: &MemoryCgroup) {
        for (index, level) in cgroup.levels.iter().enumerate() {
            let place = if index == 0 { LimitLevel::Own } else { LimitLevel::Ancestor };
            let kinds = [
                (&level.limit, LimitSource::CgroupLimit),
                (&level.high, LimitSource::CgroupHigh),
                (&level.memsw_limit, LimitSource::CgroupMemsw),
            ];
            for (limit, source) in kinds {
                if let Some(bytes) = self.take(limit).and_then(|limit| limit.bytes()) {
                    self.level(level, bytes, source, place);
                }
            }
        }
        if let (Some(limit), Some(top)) = (cgroup.hidden_limit(), cgroup.levels.last()) {
            // Whatever else is below the hidden cgroup is not seen: this is the most that it can leave.
            self.level(top, limit, LimitSource::CgroupHidden, LimitLevel::Hidden);
        }
    }

    fn level(&mut self, level: &CgroupLevel, limit: u64, source: LimitSource, place: LimitLevel) {
        let Some(usage) = self.take(&level.usage_bytes).copied() else {
            if level.usage_bytes == Reading::Absent {
                self.obstacle(&failed(format!("{}: a limit is set and no usage shown", level.folder)));
            }
            return;
        };
        let swap = match source {
            LimitSource::CgroupMemsw => self.take(&level.swap_bytes).copied().unwrap_or(0),
            _ => 0,
        };
        let cache = droppable_cache(level).min(usage);
        let bytes = limit.saturating_sub((usage - cache).saturating_add(swap));
        self.limits.push(HeadroomLimit {
            bytes,
            limit_bytes: Some(limit),
            cache_bytes: cache.min(bytes),
            source,
            level: place,
            path: (place != LimitLevel::Hidden).then(|| level.path.clone()),
        });
    }

    fn host(&mut self, meminfo: &Meminfo) {
        let total = meminfo.total_bytes.value().copied();
        // Linux before 3.14 has no MemAvailable: free pages are then all that is certain.
        let available = match &meminfo.available_bytes {
            Reading::Absent => self.take(&meminfo.free_bytes).copied(),
            reading => self.take(reading).copied(),
        };
        let Some(available) = available else {
            if meminfo.available_bytes == Reading::Absent && meminfo.free_bytes == Reading::Absent {
                self.obstacle(&failed("/proc/meminfo: neither MemAvailable nor MemFree"));
            }
            return;
        };
        let bytes = total.map_or(available, |total| available.min(total));
        let cache = meminfo.free_bytes.value().map_or(0, |free| bytes.saturating_sub(*free));
        self.limits.push(HeadroomLimit {
            bytes,
            limit_bytes: total,
            cache_bytes: cache,
            source: LimitSource::HostAvailable,
            level: LimitLevel::Host,
            path: None,
        });
    }

    fn commitment(&mut self, meminfo: &Meminfo, overcommit: &Reading<OvercommitMode>) {
        if self.take(overcommit) != Some(&OvercommitMode::Never) {
            return;
        }
        let (limit, committed) = (&meminfo.commit_limit_bytes, &meminfo.committed_bytes);
        let (Some(limit), Some(committed)) = (self.take(limit).copied(), self.take(committed).copied())
        else {
            return;
        };
        self.limits.push(HeadroomLimit {
            bytes: limit.saturating_sub(committed),
            limit_bytes: Some(limit),
            cache_bytes: 0,
            source: LimitSource::CommitLimit,
            level: LimitLevel::Host,
            path: None,
        });
    }

    /// Only where some nodes with memory are not allowed: else the host's figure says the same, better.
    fn nodes(&mut self, nodes: &MemoryNodes, meminfo: &Meminfo) {
        let (Some(allowed), Some(all)) = (self.take(&nodes.allowed), self.take(&nodes.nodes)) else { return };
        let usable: Vec<&NodeMemory> = all.iter().filter(|node| allowed.contains(&node.node)).collect();
        if usable.len() == all.len() {
            return;
        }
        if usable.is_empty() {
            return self.obstacle(&failed(format!("none of the allowed NUMA nodes {allowed:?} has memory")));
        }
        let host_total = meminfo.total_bytes.value().copied().unwrap_or(0);
        let reserve = kept_back_by_kernel(meminfo);
        let (mut bytes, mut total, mut cache) = (0_u64, 0_u64, 0_u64);
        for node in usable {
            let Some(free) = self.take(&node.free_bytes).copied() else { return };
            let size = node.total_bytes.value().copied().unwrap_or(0);
            let droppable = cache_of(node);
            let share = match host_total {
                0 => 0,
                whole => u64::try_from(u128::from(reserve) * u128::from(size) / u128::from(whole))
                    .unwrap_or(reserve),
            };
            bytes = bytes.saturating_add(free.saturating_add(droppable).saturating_sub(share));
            total = total.saturating_add(size);
            cache = cache.saturating_add(droppable);
        }
        self.limits.push(HeadroomLimit {
            bytes,
            limit_bytes: Some(total),
            cache_bytes: cache.min(bytes),
            source: LimitSource::NumaNodes,
            level: LimitLevel::Process,
            path: None,
        });
    }

    fn into_headroom(mut self, contradictions: Vec<String>, being_released_bytes: u64) -> Headroom {
        // Stable: of equal ones the nearest stays first.
        self.limits.sort_by_key(|limit| limit.bytes);
        let binding_limit = self.limits.first().cloned();
        let bytes = match (&binding_limit, self.obstacles.first()) {
            (Some(limit), _) => Reading::Value(limit.bytes),
            (None, Some(obstacle)) => Reading::Unreadable(obstacle.clone()),
            (None, None) => Reading::Absent,
        };
        Headroom {
            bytes,
            binding_limit,
            limits: self.limits,
            obstacles: self.obstacles,
            contradictions,
            being_released_bytes,
        }
    }
}

/// Page cache that the kernel drops when a member wants memory: active and inactive, without what must be written
/// first. Active cache counts too: a prover's parameters, read twice, are tens of GiB of it and outlive the prover in its
/// cgroup; taken for used, they would keep the next one out for ever.
fn droppable_cache(level: &CgroupLevel) -> u64 {
    let part = |reading: &Reading<u64>| reading.value().copied().unwrap_or(0);
    let stat = &level.stat;
    part(&stat.active_file_bytes)
        .saturating_add(part(&stat.inactive_file_bytes))
        .saturating_sub(part(&stat.dirty_bytes))
        .saturating_sub(part(&stat.writeback_bytes))
}

fn cache_of(node: &NodeMemory) -> u64 {
    let part = |reading: &Reading<u64>| reading.value().copied().unwrap_or(0);
    part(&node.active_file_bytes)
        .saturating_add(part(&node.inactive_file_bytes))
        .saturating_sub(part(&node.dirty_bytes))
        .saturating_sub(part(&node.writeback_bytes))
        .saturating_add(part(&node.slab_reclaimable_bytes))
}

/// What the kernel does not count as available though it is free or cache (`si_mem_available()`: watermarks, and half of
/// small caches). Nodes have no such figure, so each bears its share.
fn kept_back_by_kernel(meminfo: &Meminfo) -> u64 {
    let part = |reading: &Reading<u64>| reading.value().copied().unwrap_or(0);
    let gross = [
        &meminfo.free_bytes,
        &meminfo.active_file_bytes,
        &meminfo.inactive_file_bytes,
        &meminfo.slab_reclaimable_bytes,
    ]
    .into_iter()
    .fold(0_u64, |sum, reading| sum.saturating_add(part(reading)));
    meminfo.available_bytes.value().map_or(0, |available| gross.saturating_sub(*available))
}
