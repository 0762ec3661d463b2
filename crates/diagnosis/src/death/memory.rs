//! Was it the out-of-memory killer?
//!
//! Three witnesses, in the order of what they can prove:
//!
//! 1. a **kernel line** that names one of the run's tasks;
//! 2. the **counter** of the run's own cgroup, which the kernel raises before it kills: a counter that was readable and
//!    did not move rules the killer out, whatever else happened;
//! 3. the **host's counter** of all such kills, which only rules out.
//!
//! A counter that moved says that *someone* in that cgroup was killed. Whether it was the run depends on who else could
//! have been: in a shared cgroup it may have been a neighbour, so that alone never makes a verdict.

use sexton_model::baseline::{LevelDifference, difference};
use sexton_model::cgroup::MemoryCgroup;
use sexton_model::reading::Reading;
use sexton_model::verdict::{Confidence, Level};

use super::facts::{Facts, Membership};
use super::kernel_lines::{self, OomKill, Victim};

/// Where the memory ran out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Whose limit.
    pub level: Level,
    /// Path of the cgroup whose limit was reached, where that is known.
    pub path: Option<String>,
}

/// The answer to the question, for a run that ended by SIGKILL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The kernel killed it for lack of memory.
    Killed {
        /// How sure.
        confidence: Confidence,
        /// Where.
        place: Place,
        /// What shows it.
        because: String,
    },
    /// Signs, and no proof.
    Suspected {
        /// What they are, and why they prove nothing.
        because: String,
    },
    /// It was not the out-of-memory killer.
    Excluded {
        /// What shows it.
        because: String,
    },
    /// Nothing that could tell was readable.
    Open {
        /// What was not.
        because: String,
    },
}

/// Kills that the counters of the run's cgroups gained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// How many that can have hit the run.
    pub kills: u64,
    /// How many more before, which it lived through.
    pub survived: u64,
    /// Whether nobody was in those cgroups who could have been the victim instead.
    pub exclusive: bool,
    /// The cgroup that counted.
    pub path: String,
}

/// Answers for `facts`, whose run ended by a SIGKILL that was not ours.
pub fn judge(facts: &Facts) -> Answer {
    let lines = kernel_lines::oom_kills(facts);
    if let Reading::Value(kills) = &lines
        && let Some(kill) = kills.iter().find(|kill| matches!(kill.victim, Victim::Run(_)))
    {
        return named(facts, kill);
    }
    match counted(facts) {
        Reading::Value(counted) if counted.kills > 0 => by_counter(facts, &counted, &lines),
        Reading::Value(counted) => still(facts, &counted, &lines),
        missing => without_counter(facts, &lines, &missing),
    }
}

/// How long after it was last seen in its cgroup a run can have moved and been killed in another, seconds.
const MOVE_SECONDS: f64 = 1.0;

/// The counter of its cgroup did not move. The run may have: then it was killed where nobody looked.
fn still(facts: &Facts, counted: &Counted, lines: &Reading<Vec<OomKill>>) -> Answer {
    let unmoved = format!(
        "the OOM-kill counter of {} did not move, and the kernel counts before it kills",
        counted.path
    );
    let seen = facts.cgroup_last_seen_seconds.is_some_and(|seconds| seconds <= MOVE_SECONDS);
    let log_whole =
        matches!(&facts.kernel_log, Reading::Value(log) if log.whole) && facts.tasks.numbers_are_global;
    let host_still = facts.vmstat_oom_kills == Reading::Value(0);
    if seen || host_still || (lines.value().is_some() && log_whole) {
        return Answer::Excluded { because: unmoved };
    }
    match facts.vmstat_oom_kills.value() {
        Some(kills) => Answer::Suspected {
            because: format!(
                "the host counted {kills} OOM kills while it ran; its own cgroup none, but nobody saw whether it had moved"
            ),
        },
        None => Answer::Open {
            because: "its cgroup counted no OOM kill, but nobody saw whether it had moved".to_owned(),
        },
    }
}

/// Whether a counter shows a kill for which the kernel log, readable as it is, has no line yet.
pub fn line_is_missing(facts: &Facts) -> bool {
    let Reading::Value(kills) = kernel_lines::oom_kills(facts) else { return false };
    let Reading::Value(counted) = counted(facts) else { return false };
    let named = kills.iter().any(|kill| matches!(kill.victim, Victim::Run(_)));
    counted.kills > 0 && !named && !is_all_there(facts, &counted, &kills)
}

/// Whether no line is still to come about a kill that `counted` counted. Each kill has its line, but when there are many
/// the one before it, which names the cgroup, is left out: then the host's counter says how many lines there must be.
fn is_all_there(facts: &Facts, counted: &Counted, kills: &[OomKill]) -> bool {
    let in_ours = kills.iter().filter(|kill| kill.is_in(&counted.path)).count() as u64;
    let all_of_host = facts.vmstat_oom_kills.value().is_some_and(|all| kills.len() as u64 >= *all);
    all_of_host || in_ours >= counted.kills + counted.survived
}

/// The kernel says so itself.
fn named(facts: &Facts, kill: &OomKill) -> Answer {
    let confidence = match kill.victim {
        Victim::Run(confidence) => confidence,
        Victim::Other => Confidence::Unknown,
    };
    let place = kill.place(facts).unwrap_or_else(|| place_by_counters(facts));
    Answer::Killed { confidence, place, because: format!("the kernel log names it: {}", kill.words()) }
}

fn by_counter(facts: &Facts, counted: &Counted, lines: &Reading<Vec<OomKill>>) -> Answer {
    let gap = matches!(&facts.kernel_log, Reading::Value(log) if !log.whole);
    // In another PID namespace than the kernel's first, a victim of an unknown name is the run all the same where nobody
    // else is in its cgroup.
    if let Reading::Value(kills) = lines
        && !gap
        && (facts.tasks.numbers_are_global || !counted.exclusive)
    {
        // A line that names the run was looked for before.
        if is_all_there(facts, counted, kills) {
            let names: Vec<String> = kills.iter().map(OomKill::words).collect();
            return Answer::Excluded {
                because: format!(
                    "the kernel log names somebody else for each counted kill: {}",
                    names.join("; ")
                ),
            };
        }
    }
    let times = if counted.kills == 1 { "once".to_owned() } else { format!("{} times", counted.kills) };
    let counter = format!("the OOM-kill counter of {} rose {times} while it ran", counted.path);
    if !counted.exclusive {
        return Answer::Suspected {
            because: format!(
                "{counter}, but other processes share that cgroup and the kernel log names nobody"
            ),
        };
    }
    Answer::Killed {
        confidence: Confidence::Likely,
        place: place_by_counters(facts),
        because: format!("{counter}, and nobody else in it can have been hit"),
    }
}

fn without_counter<T>(facts: &Facts, lines: &Reading<Vec<OomKill>>, missing: &Reading<T>) -> Answer {
    let why = kernel_lines::why_missing(missing);
    if facts.vmstat_oom_kills == Reading::Value(0) {
        return Answer::Excluded {
            because: "the host's counter of OOM kills did not move while it ran".to_owned(),
        };
    }
    let gap = matches!(&facts.kernel_log, Reading::Value(log) if !log.whole);
    match (lines, facts.vmstat_oom_kills.value()) {
        // Numbers of another PID namespace cannot be told from ours by their absence.
        (Reading::Value(_), _) if !gap && facts.tasks.numbers_are_global => Answer::Excluded {
            because: "the kernel log is complete since its start and names no OOM kill of it".to_owned(),
        },
        (_, Some(kills)) => Answer::Suspected {
            because: format!(
                "the host counted {kills} OOM kills while it ran, and which cgroup they hit is not readable ({why})"
            ),
        },
        _ => Answer::Open { because: format!("the OOM-kill counter is not readable ({why})") },
    }
}

/// What the counters of all cgroups that the run was in gained together. A cgroup that cannot be compared makes the sum
/// unreadable, unless the others gained something already.
pub fn counted(facts: &Facts) -> Reading<Counted> {
    let mut sum: Option<Counted> = None;
    let mut missing = Reading::Absent;
    for membership in &facts.memberships {
        match gained(membership) {
            Reading::Value(one) => {
                sum = Some(match sum {
                    None => one,
                    // Who else was in a cgroup matters where something was counted.
                    Some(sum) if one.kills == 0 && sum.kills > 0 => sum,
                    Some(sum) if sum.kills == 0 && one.kills > 0 => one,
                    Some(sum) => Counted {
                        kills: sum.kills + one.kills,
                        survived: sum.survived + one.survived,
                        exclusive: sum.exclusive && one.exclusive,
                        path: sum.path,
                    },
                });
            }
            other => missing = other,
        }
    }
    match (sum, missing) {
        (Some(sum), Reading::Unreadable(_)) if sum.kills > 0 => Reading::Value(sum),
        (_, Reading::Unreadable(obstacle)) => Reading::Unreadable(obstacle),
        (Some(sum), _) => Reading::Value(sum),
        (None, missing) => missing,
    }
}

fn gained(membership: &Membership) -> Reading<Counted> {
    membership.baseline.clone().and_then(|baseline| {
        membership.at_death.clone().and_then(|now| {
            let Some(own) = difference(&baseline, &now).into_iter().next() else { return Reading::Absent };
            let exclusive =
                baseline.levels.first().is_some_and(|level| level.exclusive == Reading::Value(true));
            // Before Linux 5.2 v2 counts the subtree only, which holds the own cgroup.
            let kills = match own.gained.local.oom_kill {
                Reading::Absent => own.gained.subtree.oom_kill,
                local => local,
            };
            let survived = membership.kills_survived;
            kills.map(|kills| Counted {
                kills: kills.saturating_sub(survived),
                survived,
                exclusive,
                path: own.path,
            })
        })
    })
}

/// Whose limit it was, as far as counters and limits tell.
fn place_by_counters(facts: &Facts) -> Place {
    let Some(membership) = facts.memberships.first() else { return Place { level: Level::Host, path: None } };
    let (Reading::Value(baseline), Reading::Value(now)) = (&membership.baseline, &membership.at_death) else {
        return Place { level: Level::Host, path: None };
    };
    let differences = difference(baseline, now);
    let met = |level: &LevelDifference| level.limit_met == Reading::Value(true);
    // A peak that had been at the limit before the run began: this cgroup may have been the one, no other is known to be.
    let perhaps = |level: &LevelDifference| level.limit_met.obstacle().is_some();
    let hit = differences.iter().position(met).or_else(|| differences.iter().position(perhaps));
    match hit {
        Some(0) => Place { level: Level::Own, path: differences.first().map(|level| level.path.clone()) },
        Some(index) => {
            Place { level: Level::Ancestor, path: differences.get(index).map(|level| level.path.clone()) }
        }
        None if limited_from_outside(now) => Place { level: Level::Hidden, path: None },
        None => Place { level: Level::Host, path: None },
    }
}

/// Whether a cgroup that is not visible here can have been the one.
fn limited_from_outside(now: &MemoryCgroup) -> bool {
    let visible =
        now.levels.iter().filter_map(|level| level.limit.value()).filter_map(|limit| limit.bytes()).min();
    let effective = now
        .levels
        .first()
        .and_then(|own| own.stat.hierarchical_limit.value())
        .and_then(|limit| limit.bytes());
    match (effective, visible) {
        (Some(effective), Some(visible)) => effective < visible,
        (Some(_), None) => true,
        (None, _) => now.hidden_ancestors == Reading::Value(true),
    }
}
