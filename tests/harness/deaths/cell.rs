//! One cell of the matrix: a death under one set of conditions.

use std::fmt;

use sexton_diagnosis::death::Facts;
use sexton_model::event::EventKind;
use sexton_model::exit::ExitRecord;
use sexton_model::verdict::{Cause, Confidence, Verdict};

use super::stage::Stage;
use super::table::{Expected, Sight, expected};
use super::{Company, Death, KernelLog, act};
use crate::Skip;

/// A cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    /// How it dies.
    pub death: Death,
    /// Who else is in its cgroup.
    pub company: Company,
    /// Whether the supervisor can read the kernel log.
    pub log: KernelLog,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// Which cell.
    pub cell: Cell,
    /// What it had to come to.
    pub expected: Expected,
    /// What it came to.
    pub record: ExitRecord,
    /// Whether the journal says that a member of its cgroup was OOM-killed.
    pub member_killed: bool,
    /// What is wrong with that, if anything is.
    pub wrong: Vec<String>,
    /// Whether the kernel log had lost lines, so that less could be known than should.
    pub log_overrun: bool,
}

impl Cell {
    /// All that are not excluded.
    pub fn all() -> impl Iterator<Item = Self> {
        Death::ALL.into_iter().flat_map(Self::of)
    }

    /// Those of one death.
    pub fn of(death: Death) -> impl Iterator<Item = Self> {
        let companies = Company::ALL.into_iter();
        let cells = companies
            .flat_map(move |company| KernelLog::ALL.map(|log| Self { death, company, log }).into_iter());
        cells.filter(|cell| cell.expected().is_some())
    }

    fn expected(self) -> Option<&'static Expected> {
        expected(self.death, self.company, self.log)
    }

    /// Lets somebody die so. `when_set` is called when everything is prepared.
    ///
    /// # Errors
    /// Where this machine lacks what it takes.
    #[track_caller]
    pub fn run(self, when_set: impl FnOnce()) -> Result<Outcome, Skip> {
        let Self { death, company, log } = self;
        let mut stage = Stage::set(death, company, log)?;
        when_set();
        act::bring_about(death, company, &mut stage);
        let record = stage.verdict();
        Ok(self.judge(&stage, record))
    }

    fn judge(self, stage: &Stage, record: ExitRecord) -> Outcome {
        let known = stage.facts().expect("facts are written before the exit record");
        let log = known.kernel_log.value();
        let log_overrun = log.is_some_and(|log| !log.whole);
        let mut right = self.expected().expect("excluded cells are not run").clone();
        if self.log == KernelLog::Readable && self.may_lack_its_line(&known) {
            let blind = Self { log: KernelLog::Unreadable, ..self };
            right.0.extend(blind.expected().expect("excluded in both columns").0.clone());
        }

        if was_starved(&known) {
            let suspected =
                Sight { cause: Cause::OomSuspected, level: None, confidence: Confidence::Possible };
            right.0.push(suspected);
        }

        let mut wrong = Vec::new();
        if !right.allows(&record.verdict) {
            wrong.push(format!("expected {right}"));
        }
        if self.death != Death::StartFailure && log.is_some() != (self.log == KernelLog::Readable) {
            wrong.push(format!("the kernel log was to be {}", self.log));
        }
        let member_killed = stage.event(EventKind::MemberOomKilled).is_some();
        if self.death.has_dead_member() && !member_killed {
            wrong.push("no event of the member that was OOM-killed".to_owned());
        }
        if record.wait.core != (self.death == Death::AbortWithCore) {
            wrong.push(format!("core dumped: {}", record.wait.core));
        }
        Outcome { cell: self, expected: right, record, member_killed, wrong, log_overrun }
    }

    /// The kernel overwrites its oldest lines, and writes only so many lines about faults (FACTS 5): then the judgement
    /// can rest on no more than where the log is unreadable.
    fn may_lack_its_line(self, known: &Facts) -> bool {
        let Some(log) = known.kernel_log.value() else { return false };
        let names_it = || {
            let own = format!("\"pid\":{}", known.tasks.pid.unwrap_or_default());
            let lines = log.events.iter().filter_map(|event| serde_json::to_string(event).ok());
            lines
                .into_iter()
                .any(|line| line.contains(&format!("{own},")) || line.contains(&format!("{own}}}")))
        };
        !log.whole || (self.death.is_logged_fault() && !names_it())
    }
}

/// Whether the supervisor was not let run for so long that the prover can have moved unseen to another cgroup, and been killed
/// there: then it may suspect an OOM kill where the host counted any, and must not say more.
pub(super) fn was_starved(known: &Facts) -> bool {
    known.cgroup_last_seen_seconds.is_none_or(|seconds| seconds > 1.0)
}

impl Outcome {
    /// Whether everything is as it must be.
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<22} {:<10} {:<10}", self.death, self.company, self.log)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { cause, level, confidence, .. } = self.record.verdict.clone();
        let seen = Sight { cause, level, confidence };
        write!(f, "{} {:<42} ", self.cell, seen.to_string())?;
        if self.is_right() {
            return write!(f, "right");
        }
        write!(f, "WRONG: {}: {}", self.wrong.join("; "), self.record.verdict.summary)
    }
}
