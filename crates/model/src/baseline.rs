//! The counters at the start of a run, and what they gained until its end.
//!
//! Every counter of Linux that speaks of kills counts from the beginning of a cgroup or of the boot. What a run has to
//! do with is the difference: the kernel counts before it kills, so *at death − at spawn* cannot miss one.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::cgroup::{CgroupLevel, CgroupVersion, LevelCounters, Limit, MemoryCgroup};
use crate::reading::{Obstacle, ObstacleKind, Reading};
use crate::units::Bytes;

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
    /// [`CgroupLevel::peak_bytes`]: where it stands higher later, usage rose to that since.
    pub peak_bytes: Reading<u64>,
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
            peak_bytes: level.peak_bytes.clone(),
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
    /// Whether usage met the limit of this cgroup in between, by whatever tells: see [`limit_met`]. Absent where it has
    /// no limit.
    pub limit_met: Reading<bool>,
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
    let known = |level: &&CgroupLevel| baseline.levels.iter().find(|then| then.folder == level.folder);
    let found = now.levels.iter().map(|level| match known(&level) {
        Some(then) => compared(then, level),
        None => incomparable(
            (&level.path, &level.folder),
            Continuity::NoBaseline,
            format!("{}: no baseline to compare with", level.folder),
        ),
    });
    let lost =
        baseline.levels.iter().filter(|then| now.levels.iter().all(|level| level.folder != then.folder));
    let lost = lost.map(|then| {
        let why = format!("{}: not read again after its baseline", then.folder);
        incomparable((&then.path, &then.folder), Continuity::NotReadAgain, why)
    });
    found.chain(lost).collect()
}

fn compared(then: &LevelBaseline, now: &CgroupLevel) -> LevelDifference {
    let anew = now.counters.began_anew_since(&then.counters);
    let gained = now.counters.gained_since(&then.counters);
    let peak_then = if anew { &Reading::Value(0) } else { &then.peak_bytes };
    LevelDifference {
        path: now.path.clone(),
        folder: now.folder.clone(),
        continuity: if anew { Continuity::MadeAnew } else { Continuity::Same },
        limit_met: limit_met(&gained, peak_then, now),
        gained,
    }
}

fn incomparable((path, folder): (&str, &str), continuity: Continuity, why: String) -> LevelDifference {
    let unknown = Obstacle::new(ObstacleKind::Failed, why);
    LevelDifference {
        path: path.to_owned(),
        folder: folder.to_owned(),
        continuity,
        gained: LevelCounters::all(&Reading::Unreadable(unknown.clone())),
        limit_met: Reading::Unreadable(unknown),
    }
}

/// Room below a limit in which usage counts as having met it: tasks are charged in batches of 64 pages
/// (`MEMCG_CHARGE_BATCH`), and a batch that does not fit is not counted.
const CHARGE_BATCH_BYTES: u64 = 64 * 4096;

/// Whether usage met a limit, which the victim's cgroup does not tell where the limit was an ancestor's.
///
/// The counters prove it where they moved. Where they did not, they prove nothing in v1: with equal limits for memory
/// and memory+swap, both failcnts stay 0 through an out-of-memory kill (Linux 6.18). Then the peak tells: not near the
/// limit, it was not met; risen to it since, it was; there before, nobody knows.
pub fn limit_met(gained: &LevelCounters, peak_then: &Reading<u64>, now: &CgroupLevel) -> Reading<bool> {
    let limit = match &now.limit {
        Reading::Value(Limit::Bytes(limit)) => *limit,
        Reading::Value(Limit::Unlimited) | Reading::Absent => return Reading::Absent,
        Reading::Unreadable(obstacle) => return Reading::Unreadable(obstacle.clone()),
    };
    let moved = |counter: &Reading<u64>| counter.value().is_some_and(|gained| *gained > 0);
    if [&gained.failcnt, &gained.memsw_failcnt, &gained.local.max, &gained.local.oom].into_iter().any(moved) {
        return Reading::Value(true);
    }
    let counted = gained.local.max.value().is_some();
    match (&now.peak_bytes, peak_then) {
        // v2 counts every time that the limit is met.
        _ if counted => Reading::Value(false),
        (Reading::Value(peak), _) if peak.saturating_add(CHARGE_BATCH_BYTES) < limit => Reading::Value(false),
        (Reading::Value(peak), Reading::Value(then)) if peak > then => Reading::Value(true),
        (Reading::Value(peak), Reading::Value(_)) => Reading::unreadable(
            ObstacleKind::Failed,
            format!("{}: the peak of {} was reached before the baseline", now.folder, Bytes(*peak)),
        ),
        (Reading::Value(_), without) => without.clone().map(|_| false),
        (without, _) => without.clone().map(|_| false),
    }
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

    /// Whether the limit of 100 MiB was met, by peaks before and after and what the failcnt gained.
    fn met(peak_then: u64, peak_now: u64, failcnt: u64) -> Reading<bool> {
        let mut level = bare("/a");
        level.limit = Reading::Value(Limit::Bytes(100 << 20));
        level.peak_bytes = Reading::Value(peak_now);
        let mut gained = LevelCounters::all(&Reading::Absent);
        gained.failcnt = Reading::Value(failcnt);
        limit_met(&gained, &Reading::Value(peak_then), &level)
    }

    #[test]
    fn a_limit_that_was_met_shows_in_the_peak_where_no_failcnt_moves() {
        assert_eq!(met(0, 100 << 20, 0), Reading::Value(true));
        assert_eq!(met(0, (100 << 20) - 4096, 0), Reading::Value(true), "within one batch");
        assert_eq!(met(0, 99 << 20, 0), Reading::Value(false));
        assert_eq!(met(0, 0, 1), Reading::Value(true), "the counter proves it by itself");
    }

    #[test]
    fn a_peak_from_before_the_run_is_not_blamed_on_it() {
        assert!(met(100 << 20, 100 << 20, 0).obstacle().is_some());
        assert_eq!(met(100 << 20, 100 << 20, 1), Reading::Value(true));
    }

    #[test]
    fn v2_counts_every_meeting_and_needs_no_peak() {
        let mut level = bare("/a");
        level.limit = Reading::Value(Limit::Bytes(100));
        let mut gained = LevelCounters::all(&Reading::Absent);
        gained.local.max = Reading::Value(0);
        assert_eq!(limit_met(&gained, &Reading::Absent, &level), Reading::Value(false));
        gained.local.max = Reading::Value(1);
        assert_eq!(limit_met(&gained, &Reading::Absent, &level), Reading::Value(true));
        level.limit = Reading::Value(Limit::Unlimited);
        assert_eq!(limit_met(&gained, &Reading::Absent, &level), Reading::Absent);
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
