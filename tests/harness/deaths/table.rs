//! What every cell must come to.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::de::DeserializeOwned;
use sexton_model::verdict::{Cause, Confidence, Level, Verdict};

use super::{Company, Death, KernelLog};

/// `cause confidence` or `cause/level confidence`; alternatives are separated by `|`. `-` and a reason: no such cell.
///
/// The rules behind it:
/// * a line of the kernel log that names the prover, or our own action, or an exit code, is proof: certain;
/// * a counter that rose in a cgroup without strangers is likely; with strangers it is a mere sign (suspected, possible);
/// * a neighbour's OOM kill beside a `kill -9` of the prover is never more than possible, whatever can be read;
/// * a signal that anybody can send is likely what it mostly means, unless the kernel logged the fault.
const TABLE: &str = "
death                 | cgroup          | kernel log readable                  | unreadable

own-limit             | exclusive moved | oom_own_limit/own certain            | oom_own_limit/own likely
own-limit             | shared          | oom_own_limit/own certain            | oom_suspected possible
ancestor-limit        | exclusive moved | oom_ancestor_limit/ancestor certain  | oom_ancestor_limit/ancestor likely
ancestor-limit        | shared          | oom_ancestor_limit/ancestor certain  | oom_suspected possible
thread-at-own-limit   | exclusive moved | oom_own_limit/own certain            | oom_own_limit/own likely
thread-at-own-limit   | shared          | oom_own_limit/own certain            | oom_suspected possible

sibling-oom-then-kill | exclusive moved | killed_unknown likely                | killed_unknown likely
sibling-oom-then-kill | shared          | killed_unknown likely                | oom_suspected possible | killed_unknown likely
member-oom            | all             | error_exit certain                   | error_exit certain
member-oom-then-kill  | all             | killed_unknown likely                | killed_unknown likely
member-oom-then-term  | all             | terminated likely                    | terminated likely
stall-then-kill       | moved           | killed_unknown likely                | killed_unknown likely
stall-then-kill       | exclusive       | -                                    | - the supervisor is in it and sleeps as well
stall-then-kill       | shared          | -                                    | - the supervisor is in it and sleeps as well

kill-9                | all             | killed_unknown likely                | killed_unknown likely
timeout-s-kill        | all             | killed_unknown likely                | killed_unknown likely
leader-gone-then-kill | all             | killed_unknown likely                | killed_unknown likely
traced-then-kill      | all             | killed_unknown likely                | killed_unknown likely
term                  | all             | terminated likely                    | terminated likely
own-stop              | all             | stopped_by_supervisor certain        | stopped_by_supervisor certain
own-escalation        | all             | killed_by_supervisor certain         | killed_by_supervisor certain

segfault              | all             | segfault certain                     | segfault likely
illegal-instruction   | all             | trap certain                         | trap likely
division-by-zero      | all             | trap certain                         | trap likely
bus-error             | all             | bus_error likely                     | bus_error likely
abort                 | all             | abort likely                         | abort likely
abort-with-core       | all             | abort likely                         | abort likely
panic-abort           | all             | panic certain                        | panic certain
panic                 | all             | panic certain                        | panic certain
exit-137              | all             | error_exit certain                   | error_exit certain
error-exit            | all             | error_exit certain                   | error_exit certain
clean-exit            | all             | clean_exit certain                   | clean_exit certain
start-failure         | exclusive shared | start_failed certain                | start_failed certain
start-failure         | moved           | -                                    | - nothing ever ran that could move
";

/// One right answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// Cause.
    pub cause: Cause,
    /// Whose limit it was.
    pub level: Option<Level>,
    /// How sure.
    pub confidence: Confidence,
}

/// What a cell must come to: any of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected(pub Vec<Sight>);

impl Expected {
    /// Whether a verdict is one of them.
    pub fn allows(&self, verdict: &Verdict) -> bool {
        let seen = Sight { cause: verdict.cause, level: verdict.level, confidence: verdict.confidence };
        self.0.contains(&seen)
    }
}

/// The two columns, or why there is no such cell.
type Row = Result<[Expected; 2], String>;
type Rows = BTreeMap<(Death, Company), Row>;

static ROWS: LazyLock<Rows> = LazyLock::new(|| {
    let mut rows = Rows::new();
    for line in TABLE.lines().skip(2).filter(|line| !line.is_empty()) {
        for (key, row) in parse(line) {
            assert!(rows.insert(key, row).is_none(), "{key:?} has two rows");
        }
    }
    rows
});

/// What a cell must come to; `None` for one that is excluded.
#[track_caller]
pub fn expected(death: Death, company: Company, log: KernelLog) -> Option<&'static Expected> {
    let row = ROWS.get(&(death, company)).unwrap_or_else(|| panic!("no row for {death}, {company}"));
    row.as_ref().ok().map(|[readable, unreadable]| match log {
        KernelLog::Readable => readable,
        KernelLog::Unreadable => unreadable,
    })
}

/// Cells that are left out, and why.
pub fn excluded() -> impl Iterator<Item = (Death, Company, &'static str)> {
    ROWS.iter().filter_map(|((death, company), row)| Some((*death, *company, row.as_ref().err()?.as_str())))
}

fn parse(line: &str) -> Vec<((Death, Company), Row)> {
    let mut columns = line.splitn(4, '|').map(str::trim);
    let mut next = || columns.next().unwrap_or_else(|| panic!("too few columns: {line}"));
    let [name, companies, readable, unreadable] = [next(), next(), next(), next()];
    let death = Death::ALL.into_iter().find(|death| death.name() == name);
    let death = death.unwrap_or_else(|| panic!("no death named {name}"));
    let wanted = |company: &Company| {
        companies == "all" || companies.split(' ').any(|word| word == company.to_string())
    };
    let row = match unreadable.strip_prefix('-') {
        Some(reason) => Err(reason.trim().to_owned()),
        None => Ok([sights(readable), sights(unreadable)]),
    };
    Company::ALL.into_iter().filter(wanted).map(|company| ((death, company), row.clone())).collect()
}

fn sights(column: &str) -> Expected {
    let one = |text: &str| {
        let (what, confidence) =
            text.trim().split_once(' ').unwrap_or_else(|| panic!("no confidence: {text}"));
        let (cause, level) = what.split_once('/').map_or((what, None), |(cause, level)| (cause, Some(level)));
        Sight { cause: named(cause), level: level.map(named), confidence: named(confidence) }
    };
    Expected(column.split('|').map(one).collect())
}

fn named<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_value(name.into()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

impl fmt::Display for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let word_of = |value: Result<_, serde_json::Error>| value.map(word).unwrap_or_default();
        write!(f, "{}", word_of(serde_json::to_value(self.cause)))?;
        if let Some(level) = self.level {
            write!(f, "/{}", word_of(serde_json::to_value(level)))?;
        }
        write!(f, " {}", word_of(serde_json::to_value(self.confidence)))
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.pad(&words.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_death_has_a_row_for_every_cgroup() {
        for death in Death::ALL {
            for company in Company::ALL {
                assert!(ROWS.contains_key(&(death, company)), "{death}, {company}");
            }
        }
    }

    #[test]
    fn a_cell_is_left_out_for_a_reason_only() {
        excluded().for_each(|(death, company, why)| assert!(!why.is_empty(), "{death}, {company}"));
    }

    #[test]
    fn a_neighbours_oom_kill_beside_a_kill_is_never_certain() {
        for log in KernelLog::ALL {
            let expected = expected(Death::SiblingThenKill, Company::Shared, log).unwrap();
            assert!(expected.0.iter().all(|sight| sight.confidence < Confidence::Certain));
        }
    }
}
