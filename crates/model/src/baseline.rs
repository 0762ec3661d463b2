//! The counters at the start of a run, and what they gained until its end.
//!
//! Every counter of Linux that speaks of kills counts from the beginning of a cgroup or of the boot. What a run has to
//! do with is the difference: the kernel counts before it kills, so *at death − at spawn* cannot miss one.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::cgroup::{CgroupLevel, CgroupVersion, LevelCounters, MemoryCgroup};
use crate::reading::{ObstacleKind, Reading};

/// What stood on the counters when a run began, or when it moved to another cgroup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// When it was taken.
    pub at: Timestamp,
    /// The run's memory cgroup and those above it.
    pub cgroup: Reading<CgroupBaseline>,
    /// `/proc/vmstat oom_kill`: every out-of-memory kill on the host since boot.
    pub vmstat_oom_kill: Reading<u64>,
    /// Sequence number of the newest kernel-log record.
    pub kernel_log_sequence: Reading<u64>,
}

/// The part of a [`Baseline`] that belongs to one cgroup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CgroupBaseline {
    /// The interface.
    pub version: CgroupVersion,
    /// The own cgroup first.
    pub levels: Vec<LevelBaseline>,
}

/// One cgroup of the line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelBaseline {
    /// As [`CgroupLevel::path`].
    pub path: String,
    /// As [`CgroupLevel::folder`]: levels of two readings are the same cgroup when this is the same.
    pub folder: String,
    /// Its counters.
    pub counters: LevelCounters,
    /// [`CgroupLevel::charge_bytes`]: what the memory must come back to after the run.
    pub charge_bytes: Reading<u64>,
    /// Whether nobody but the run was in it. An empty cgroup is exclusive.
    pub exclusive: Reading<bool>,
}

impl CgroupBaseline {
    /// From a reading; `pids` are the processes of the run.
    pub fn of(cgroup: &MemoryCgroup, pids: &[i32]) -> Self {
        let level = |level: &CgroupLevel| LevelBaseline {
            path: level.path.clone(),
            folder: level.folder.clone(),
            counters: level.counters.clone(),
            charge_bytes: level.charge_bytes(),
            exclusive: level.exclusive_to(pids),
        };
        Self { version: cgroup.version, levels: cgroup.levels.iter().map(level).collect() }
    }
}

/// What happened in one cgroup between two readings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelDifference {
    /// As [`CgroupLevel::path`].
    pub path: String,
    /// As [`CgroupLevel::folder`].
    pub folder: String,
    /// How the two readings belong together.
    pub continuity: Continuity,
    /// What each counter gained. After [`Continuity::MadeAnew`] that is what happened since then: at least so much.
    pub gained: LevelCounters,
}

/// How a cgroup of a baseline is found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continuity {
    /// The same cgroup, as far as its counters tell.
    Same,
    /// A counter that cannot be reset went back: the cgroup was removed and made again under the same name.
    MadeAnew,
    /// It is in the later reading only: there is nothing to compare with.
    NoBaseline,
    /// It is in the baseline only: the process moved, or the cgroup was not read again.
    NotReadAgain,
}

/// Per level what came on top between `baseline` and `now`: levels of `now` first, in their order, then those that only
/// the baseline has. No difference is below 0.
pub fn difference(baseline: &CgroupBaseline, now: &MemoryCgroup) -> Vec<LevelDifference> {
    let known = |folder: &str| baseline.levels.iter().find(|level| level.folder == folder);
    let found = now.levels.iter().map(|level| {
        let (continuity, gained) = match known(&level.folder) {
            None => (Continuity::NoBaseline, nothing_known(&level.folder, "no baseline to compare with")),
            Some(then) => {
                let anew = level.counters.began_anew_since(&then.counters);
                let continuity = if anew { Continuity::MadeAnew } else { Continuity::Same };
                (continuity, level.counters.gained_since(&then.counters))
            }
        };
        LevelDifference { path: level.path.clone(), folder: level.folder.clone(), continuity, gained }
    });
    let lost =
        baseline.levels.iter().filter(|then| now.levels.iter().all(|level| level.folder != then.folder));
    found
        .chain(lost.map(|then| LevelDifference {
            path: then.path.clone(),
            folder: then.folder.clone(),
            continuity: Continuity::NotReadAgain,
            gained: nothing_known(&then.folder, "not read again after its baseline"),
        }))
        .collect()
}

fn nothing_known(folder: &str, why: &str) -> LevelCounters {
    LevelCounters::all(&Reading::unreadable(ObstacleKind::Failed, format!("{folder}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::Members;
    use crate::cgroup::tests::bare;

    fn cgroup(levels: &[(&str, u64)]) -> MemoryCgroup {
        let level = |(path, kills): &(&str, u64)| {
            let mut level = bare(path);
            level.counters.local.oom_kill = Reading::Value(*kills);
            level.members = Reading::Value(Members { pids: vec![7], foreign: 0 });
            level
        };
        MemoryCgroup {
            version: CgroupVersion::V1,
            hidden_ancestors: Reading::Value(false),
            levels: levels.iter().map(level).collect(),
        }
    }

    fn kills(difference: &LevelDifference) -> Option<u64> {
        difference.gained.local.oom_kill.value().copied()
    }

    #[test]
    fn kills_before_the_baseline_do_not_count() {
        let baseline = CgroupBaseline::of(&cgroup(&[("/a/b", 3), ("/a", 0)]), &[7]);
        let difference = difference(&baseline, &cgroup(&[("/a/b", 4), ("/a", 0)]));
        assert_eq!(difference.iter().map(kills).collect::<Vec<_>>(), [Some(1), Some(0)]);
        assert!(difference.iter().all(|level| level.continuity == Continuity::Same));
    }

    #[test]
    fn a_cgroup_made_anew_is_said_to_be() {
        let baseline = CgroupBaseline::of(&cgroup(&[("/a", 3)]), &[]);
        let difference = difference(&baseline, &cgroup(&[("/a", 1)]));
        assert_eq!((difference[0].continuity, kills(&difference[0])), (Continuity::MadeAnew, Some(1)));
    }

    #[test]
    fn a_move_leaves_both_cgroups_named_and_neither_counted() {
        let baseline = CgroupBaseline::of(&cgroup(&[("/a", 3)]), &[]);
        let difference = difference(&baseline, &cgroup(&[("/b", 9)]));
        let seen: Vec<_> =
            difference.iter().map(|level| (level.path.as_str(), level.continuity, kills(level))).collect();
        assert_eq!(seen, [("/b", Continuity::NoBaseline, None), ("/a", Continuity::NotReadAgain, None)]);
    }

    #[test]
    fn a_baseline_survives_json_and_knows_whether_the_cgroup_was_shared() {
        let baseline = Baseline {
            at: Timestamp::UNIX_EPOCH,
            cgroup: Reading::Value(CgroupBaseline::of(&cgroup(&[("/a", 3)]), &[7])),
            vmstat_oom_kill: Reading::Value(12),
            kernel_log_sequence: Reading::unreadable(ObstacleKind::Denied, "/dev/kmsg: permission denied"),
        };
        let json = serde_json::to_string(&baseline).unwrap();
        assert_eq!(serde_json::from_str::<Baseline>(&json).unwrap(), baseline);
        let exclusive =
            |pids: &[i32]| CgroupBaseline::of(&cgroup(&[("/a", 3)]), pids).levels[0].exclusive.clone();
        assert_eq!((exclusive(&[7]), exclusive(&[8])), (Reading::Value(true), Reading::Value(false)));
    }
}
