//! Counters of one cgroup, and what they gained between two readings.

use serde::{Deserialize, Serialize};

use crate::reading::Reading;

/// What happened in a cgroup since it was made, or what came on top between two readings of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelCounters {
    /// v1 `memory.failcnt`: how often usage met the limit. Reclaim that succeeds counts too, and anyone may reset it. It
    /// stays 0 where the memory+swap limit is equal, for that is met first: 0 proves nothing.
    pub failcnt: Reading<u64>,
    /// v1 `memory.memsw.failcnt`: the same of the memory+swap limit. Linux 6.18 does not count it: 0 proves nothing.
    pub memsw_failcnt: Reading<u64>,
    /// About members of this very cgroup: v1 `memory.oom_control` (of which `oom_kill` only, Linux ≥ 4.13), v2
    /// `memory.events.local` (Linux ≥ 5.2).
    pub local: MemoryEvents,
    /// About members of this cgroup and of its descendants: v2 `memory.events`. Absent in v1, and where the hierarchy
    /// is mounted with `memory_localevents`.
    pub subtree: MemoryEvents,
}

/// Lines of `memory.events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEvents {
    /// How often usage was about to exceed `memory.high`.
    pub high: Reading<u64>,
    /// How often usage was about to exceed `memory.max`. Reclaim that succeeds counts too.
    pub max: Reading<u64>,
    /// How often that ended in an out-of-memory condition. Counted where the **limit** was.
    pub oom: Reading<u64>,
    /// Processes killed by any out-of-memory killer. Counted where the **victim** was, before the signal is sent.
    pub oom_kill: Reading<u64>,
    /// Whole-group kills (Linux ≥ 5.17).
    pub oom_group_kill: Reading<u64>,
}

impl MemoryEvents {
    /// The same answer in every field.
    pub fn all(answer: &Reading<u64>) -> Self {
        Self {
            high: answer.clone(),
            max: answer.clone(),
            oom: answer.clone(),
            oom_kill: answer.clone(),
            oom_group_kill: answer.clone(),
        }
    }

    fn fields(&self) -> [&Reading<u64>; 5] {
        [&self.high, &self.max, &self.oom, &self.oom_kill, &self.oom_group_kill]
    }

    fn zip_with(&self, then: &Self, f: &impl Fn(&Reading<u64>, &Reading<u64>) -> Reading<u64>) -> Self {
        Self {
            high: f(&self.high, &then.high),
            max: f(&self.max, &then.max),
            oom: f(&self.oom, &then.oom),
            oom_kill: f(&self.oom_kill, &then.oom_kill),
            oom_group_kill: f(&self.oom_group_kill, &then.oom_group_kill),
        }
    }
}

impl LevelCounters {
    /// The same answer in every field.
    pub fn all(answer: &Reading<u64>) -> Self {
        Self {
            failcnt: answer.clone(),
            memsw_failcnt: answer.clone(),
            local: MemoryEvents::all(answer),
            subtree: MemoryEvents::all(answer),
        }
    }

    /// Whether one of the counters that nobody can reset stood higher `then`. If so, the cgroup was removed and made
    /// again in between.
    pub fn began_anew_since(&self, then: &Self) -> bool {
        let went_back = |(now, then): (&Reading<u64>, &Reading<u64>)| match (now, then) {
            (Reading::Value(now), Reading::Value(then)) => now < then,
            _ => false,
        };
        let pairs = |now: &Self, then: &Self| {
            now.local.fields().into_iter().zip(then.local.fields()).any(went_back)
                || now.subtree.fields().into_iter().zip(then.subtree.fields()).any(went_back)
        };
        pairs(self, then)
    }

    /// What each counter gained since `then`; never below 0. A counter that stands lower began again at 0 in between, so
    /// that all of it came on top: as in a cgroup that was made anew, of which no counter is compared.
    pub fn gained_since(&self, then: &Self) -> Self {
        let anew = self.began_anew_since(then);
        let gain = |now: &Reading<u64>, then: &Reading<u64>| match (now, then) {
            (Reading::Value(now), Reading::Value(then)) if !anew && now >= then => Reading::Value(now - then),
            (Reading::Value(now), Reading::Value(_)) => Reading::Value(*now),
            // A counter without a beginning is not a difference: the reason why there is none stands in its place.
            (Reading::Value(_), without) => without.clone(),
            (without, _) => without.clone(),
        };
        Self {
            failcnt: gain(&self.failcnt, &then.failcnt),
            memsw_failcnt: gain(&self.memsw_failcnt, &then.memsw_failcnt),
            local: self.local.zip_with(&then.local, &gain),
            subtree: self.subtree.zip_with(&then.subtree, &gain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::ObstacleKind;

    fn counters(failcnt: u64, oom_kill: u64) -> LevelCounters {
        let mut counters = LevelCounters::all(&Reading::Absent);
        counters.failcnt = Reading::Value(failcnt);
        counters.local.oom_kill = Reading::Value(oom_kill);
        counters
    }

    #[test]
    fn a_difference_counts_what_came_on_top() {
        let gained = counters(9, 5).gained_since(&counters(2, 4));
        assert_eq!(gained, counters(7, 1));
        assert!(!counters(9, 5).began_anew_since(&counters(2, 4)));
    }

    #[test]
    fn a_kill_counter_that_went_back_is_a_cgroup_made_anew() {
        assert!(counters(9, 1).began_anew_since(&counters(2, 4)));
        assert_eq!(counters(9, 1).gained_since(&counters(2, 4)), counters(9, 1));
    }

    #[test]
    fn a_failcnt_that_went_back_was_only_reset() {
        assert!(!counters(1, 5).began_anew_since(&counters(2, 4)));
        assert_eq!(counters(1, 5).gained_since(&counters(2, 4)), counters(1, 1));
    }

    #[test]
    fn without_a_beginning_there_is_no_difference() {
        let denied = Reading::unreadable(ObstacleKind::Denied, "memory.oom_control: permission denied");
        let gained = counters(9, 5).gained_since(&LevelCounters::all(&denied));
        assert_eq!((gained.failcnt, gained.local.oom_kill), (denied.clone(), denied));
    }
}
