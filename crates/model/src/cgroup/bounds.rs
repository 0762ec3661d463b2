//! Which of all limits of a line of cgroups binds.

use serde::{Deserialize, Serialize};

use super::{CgroupLevel, Limit, MemoryCgroup};
use crate::reading::{Obstacle, Reading};

/// What sort of limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundKind {
    /// [`CgroupLevel::limit`]: over it, the out-of-memory killer.
    Limit,
    /// [`CgroupLevel::high`]: over it, throttling.
    High,
    /// [`CgroupLevel::memsw_limit`]: as `Limit`, for memory and swap together.
    Memsw,
}

/// The tightest of several limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The limit, or what is free below it: the function that answers with this says which.
    pub bytes: u64,
    /// Its sort.
    pub kind: BoundKind,
    /// Index into [`MemoryCgroup::levels`]; `null`: a cgroup above them that this host does not show.
    pub level: Option<usize>,
}

/// The tightest bound, as far as could be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tightest {
    /// `null`: none of those that were read is set.
    pub bound: Option<Bound>,
    /// What could not be read: one of these may bind tighter.
    pub obstacles: Vec<Obstacle>,
}

impl MemoryCgroup {
    /// The least limit over the line, usage left aside: the most that a process here can ever have.
    pub fn tightest_limit(&self) -> Tightest {
        let mut found = Search::default();
        for (index, level) in self.levels.iter().enumerate() {
            for (kind, limit) in [(BoundKind::Limit, &level.limit), (BoundKind::High, &level.high)] {
                found
                    .consider(limit, |limit| Some(Bound { bytes: limit.bytes()?, kind, level: Some(index) }));
            }
        }
        if let Some(bytes) = self.hidden_limit() {
            found.take(Bound { bytes, kind: BoundKind::Limit, level: None });
        }
        found.tightest
    }

    /// What can still be taken, by the level with the least of it: limit − usage + clean page cache of its own. Unlike
    /// [`Self::tightest_limit`] this sees what siblings hold. A hidden limit counts as if all usage below it were ours,
    /// the most that it can leave.
    pub fn least_free(&self) -> Tightest {
        let mut found = Search::default();
        for (index, level) in self.levels.iter().enumerate() {
            for kind in [BoundKind::Limit, BoundKind::High, BoundKind::Memsw] {
                found.consider(&level.free_bytes(kind), |free| {
                    Some(Bound { bytes: (*free)?, kind, level: Some(index) })
                });
            }
        }
        if let (Some(limit), Some(top)) = (self.hidden_limit(), self.levels.last()) {
            let free =
                free_below(&Reading::Value(Limit::Bytes(limit)), &top.usage_bytes, &top.clean_cache_bytes());
            found
                .consider(&free, |free| Some(Bound { bytes: (*free)?, kind: BoundKind::Limit, level: None }));
        }
        found.tightest
    }

    /// A limit of a hidden ancestor, in bytes, where v1 proves one: `hierarchical_memory_limit` is below every limit
    /// that can be seen. v2 has no such line; there a hidden limit shows only when it is met.
    pub fn hidden_limit(&self) -> Option<u64> {
        let hierarchical = self.own()?.stat.hierarchical_limit.value()?.bytes()?;
        let mut visible = self.levels.iter().map(|level| &level.limit);
        // An unreadable limit on the way may be the one that shows.
        let all_above =
            visible.all(|limit| limit.value().is_some_and(|limit| *limit > Limit::Bytes(hierarchical)));
        all_above.then_some(hierarchical)
    }
}

impl CgroupLevel {
    /// What this level alone leaves free below one of its limits, in bytes; the inner `None`: unlimited. Absent where
    /// there is no such limit.
    pub fn free_bytes(&self, kind: BoundKind) -> Reading<Option<u64>> {
        let clean = self.clean_cache_bytes();
        match kind {
            BoundKind::Limit => free_below(&self.limit, &self.usage_bytes, &clean),
            BoundKind::High => free_below(&self.high, &self.usage_bytes, &clean),
            BoundKind::Memsw => {
                let both = self
                    .usage_bytes
                    .clone()
                    .and_then(|usage| self.swap_bytes.clone().map(|swap| usage.saturating_add(swap)));
                free_below(&self.memsw_limit, &both, &clean)
            }
        }
    }
}

/// limit − usage + clean cache, at least 0. A missing usage is an obstacle here, where a limit is known to be set.
fn free_below(limit: &Reading<Limit>, usage: &Reading<u64>, clean: &Reading<u64>) -> Reading<Option<u64>> {
    limit.clone().and_then(|limit| match limit.bytes() {
        None => Reading::Value(None),
        Some(limit) => usage.clone().and_then(|usage| {
            let cache = clean.value().copied().unwrap_or(0);
            Reading::Value(Some(limit.saturating_sub(usage.saturating_sub(cache))))
        }),
    })
}

/// A search for the least.
struct Search {
    tightest: Tightest,
}

impl Default for Search {
    fn default() -> Self {
        Self { tightest: Tightest { bound: None, obstacles: Vec::new() } }
    }
}

impl Search {
    fn consider<T>(&mut self, reading: &Reading<T>, bound: impl FnOnce(&T) -> Option<Bound>) {
        match reading {
            Reading::Value(value) => {
                if let Some(bound) = bound(value) {
                    self.take(bound);
                }
            }
            Reading::Absent => {}
            Reading::Unreadable(obstacle) => {
                if !self.tightest.obstacles.contains(obstacle) {
                    self.tightest.obstacles.push(obstacle.clone());
                }
            }
        }
    }

    /// Of equal bounds the first one stays: the nearest level.
    fn take(&mut self, bound: Bound) {
        if self.tightest.bound.as_ref().is_none_or(|found| bound.bytes < found.bytes) {
            self.tightest.bound = Some(bound);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bare, used};
    use super::super::{CgroupVersion, MemoryCgroup};
    use super::*;
    use crate::reading::ObstacleKind;

    fn limited(mut level: CgroupLevel, limit: u64) -> CgroupLevel {
        level.limit = Reading::Value(Limit::Bytes(limit));
        level
    }

    fn line(levels: Vec<CgroupLevel>) -> MemoryCgroup {
        MemoryCgroup { version: CgroupVersion::V1, hidden_ancestors: Reading::Value(false), levels }
    }

    fn bound(bytes: u64, level: Option<usize>) -> Option<Bound> {
        Some(Bound { bytes, kind: BoundKind::Limit, level })
    }

    #[test]
    fn the_least_limit_binds_and_of_equal_ones_the_nearest() {
        let cgroup = line(vec![limited(bare("/a/b"), 8), limited(bare("/a"), 4), limited(bare("/"), 4)]);
        assert_eq!(cgroup.tightest_limit().bound, bound(4, Some(1)));
    }

    #[test]
    fn the_level_with_the_least_left_need_not_have_the_least_limit() {
        let cgroup = line(vec![limited(used("/a/b", 1, 0), 8), limited(used("/a", 98, 0), 100)]);
        assert_eq!(cgroup.tightest_limit().bound, bound(8, Some(0)));
        assert_eq!(cgroup.least_free().bound, bound(2, Some(1)));
    }

    #[test]
    fn clean_page_cache_counts_as_free_once() {
        let cgroup = line(vec![limited(used("/a", 100, 40), 100)]);
        assert_eq!(cgroup.least_free().bound, bound(40, Some(0)));
    }

    #[test]
    fn memory_and_swap_together_can_bind_first() {
        let mut level = limited(used("/a", 60, 0), 100);
        level.memsw_limit = Reading::Value(Limit::Bytes(100));
        level.swap_bytes = Reading::Value(30);
        let expected = Bound { bytes: 10, kind: BoundKind::Memsw, level: Some(0) };
        assert_eq!(line(vec![level]).least_free().bound, Some(expected));
    }

    #[test]
    fn the_hierarchical_limit_proves_a_hidden_one_only_below_all_visible_ones() {
        let mut own = limited(used("/a", 10, 0), 100);
        own.stat.hierarchical_limit = Reading::Value(Limit::Bytes(64));
        let cgroup = line(vec![own.clone()]);
        assert_eq!(cgroup.hidden_limit(), Some(64));
        assert_eq!(cgroup.tightest_limit().bound, bound(64, None));
        assert_eq!(cgroup.least_free().bound, bound(54, None));

        assert_eq!(
            line(vec![own.clone(), limited(bare("/"), 64)]).hidden_limit(),
            None,
            "it is the parent's"
        );
        let mut unreadable = bare("/");
        unreadable.limit = Reading::unreadable(ObstacleKind::Denied, "/sys/…: permission denied");
        assert_eq!(line(vec![own, unreadable]).hidden_limit(), None, "it may be the parent's");
    }

    #[test]
    fn what_could_not_be_read_is_named() {
        let mut parent = bare("/");
        parent.limit = Reading::unreadable(ObstacleKind::Denied, "/sys/…: permission denied");
        let tightest = line(vec![limited(used("/a", 1, 0), 8), parent]).tightest_limit();
        assert_eq!((tightest.bound, tightest.obstacles.len()), (bound(8, Some(0)), 1));
    }
}
