//! How a status changes on the way: overwritten, masked, known to be a failure, joined with others.

use super::flow::{Lost, Status};
use super::options::{Options, Switch};
use super::syntax::{Command, Kind, List, Operator, Span};
use super::vocabulary::{
    block_can_fail, command_can_fail, ends_as_work, hides_failure, is_answer, pipeline_can_fail,
};

/// What is known at a point of the script.
#[derive(Debug, Clone, Copy)]
pub(super) struct State<'a> {
    pub(super) status: Status<'a>,
    pub(super) options: Options,
    /// Within a condition, where `set -e` does not act.
    pub(super) tested: bool,
}

impl<'a> State<'a> {
    /// At the beginning of a script or a function.
    pub(super) fn new(options: Options) -> Self {
        Self { status: Status::Unknown, options, tested: false }
    }

    /// With the status unknown.
    pub(super) fn unknown(self) -> Self {
        Self { status: Status::Unknown, ..self }
    }

    /// Nothing comes here.
    pub(super) fn is_unreachable(&self) -> bool {
        matches!(self.status, Status::Unreachable)
    }

    /// The status behind `left && right`, `left || right`.
    ///
    /// `skipped`: as it was before the right side; `self`: behind it; `index`: of the right side in `list.rest`.
    pub(super) fn meet(self, skipped: Self, list: &'a List, index: usize) -> Self {
        let Some((operator, right)) = list.rest.get(index) else { return self };
        let ran = self;
        let options = match ran.status {
            Status::Unreachable => skipped.options,
            _ => skipped.options.join(ran.options),
        };
        let hides = *operator == Operator::Or && right.command().is_some_and(hides_failure);
        let whole = index + 1 == list.rest.len();
        let status = match (skipped.status, ran.status) {
            // `cmd || exit`: past it, it went well.
            (_, Status::Unreachable) => Status::Unknown,
            _ if hides && whole && hidden_can_fail(list) => Status::Masked(list),
            // `[ $? -ne 0 ] && echo failed`: the 1 of `[`, or the 0 of `echo`.
            (before @ Status::Overwritten { lost: Some(_), .. }, Status::Overwritten { .. }) => before,
            _ => Status::Unknown,
        };
        Self { status, options, tested: ran.tested }
    }

    /// `$?` after a command that nobody asks about.
    pub(super) fn overwritten(self, by: &'a Command) -> Status<'a> {
        let keeps = match &by.kind {
            Kind::Assignment | Kind::Declaration(_) => by.reads_status() || by.reads_pipe_status(),
            Kind::Simple(simple) => {
                !matches!(simple.program(), "echo" | "printf" | "test") && by.reads_status()
            }
            _ => false,
        };
        let looks = matches!(&by.kind, Kind::Test) || by.simple().is_some_and(|simple| simple.name == "test");
        // `… || { failed=1; return; }` has made a note of it.
        let notes = matches!(by.kind, Kind::Assignment | Kind::Declaration(_));
        // `echo "$(cmd)"` has lost a status of its own.
        let inner = by.simple().and_then(|_| by.substitution()).filter(|block| block_can_fail(block));
        let before = self.lost().filter(|lost| inner.is_none() || lost.failed);
        let lost = before.or(inner.map(|_| Lost::new(by.span))).map(|lost| Lost {
            saved: lost.saved || keeps || (notes && lost.failed),
            // Who looks at it wants to know.
            answer: lost.answer && !(looks || by.reads_status()),
            ..lost
        });
        match self.status {
            Status::Unreachable => Status::Unreachable,
            _ => Status::Overwritten { by, lost },
        }
    }

    /// What is lost when the next command overwrites `$?`.
    fn lost(self) -> Option<Lost> {
        let checked = self.options.errexit != Switch::Off && !self.tested;
        let new = |of: Span| Lost { checked, ..Lost::new(of) };
        match self.status {
            Status::Overwritten { lost, .. } => lost,
            Status::Of(command) => {
                let answer = !command_can_fail(command);
                Some(Lost { answer: answer || is_answer(command), ..new(command.span) })
            }
            Status::Pipeline(pipeline) => {
                let checked = checked && self.options.pipefail != Switch::Off;
                Some(Lost {
                    piped: true,
                    answer: !pipeline_can_fail(pipeline),
                    checked,
                    ..new(pipeline.span)
                })
            }
            Status::Negated { pipeline, failed } => {
                let answer = !(failed && pipeline_can_fail(pipeline));
                Some(Lost { piped: pipeline.pipes(), answer, failed, checked: false, ..new(pipeline.span) })
            }
            Status::Failed(of) => Some(Lost { failed: true, checked: false, ..new(of) }),
            _ => None,
        }
    }

    /// The state where it is known whether the status is 0: behind `&&` or `||`, or in a branch.
    pub(super) fn known(self, success: bool, source: &str) -> Self {
        let status = match self.status {
            Status::Of(command) if !success && command_can_fail(command) => Status::Failed(command.span),
            Status::Pipeline(pipeline) if !success && ends_as_work(pipeline) => Status::Failed(pipeline.span),
            Status::Of(_) | Status::Pipeline(_) => Status::Unknown,
            Status::Negated { pipeline, .. } => Status::Negated { pipeline, failed: success },
            Status::Overwritten { by, lost: Some(lost) } if by.reads_status() || by.reads_pipe_status() => {
                match zero_means_success(by.span.of(source)) {
                    Some(zero) if zero != success => {
                        Status::Overwritten { by, lost: Some(Lost { failed: true, ..lost }) }
                    }
                    _ => Status::Unknown,
                }
            }
            status => status,
        };
        Self { status, ..self }
    }
}

/// What stands before `|| true` can fail, and nobody expects it to.
fn hidden_can_fail(list: &List) -> bool {
    let handled = list.rest.iter().rev().skip(1).any(|(operator, _)| *operator == Operator::Or);
    !handled && list.pipelines().rev().skip(1).any(pipeline_can_fail)
}

/// Behind an `if` all of whose ways end with 0, a status from before it is lost.
pub(super) fn meet_quiet<'a>(command: &'a Command, ends: &[State<'a>]) -> Status<'a> {
    let mut lost = None;
    for end in ends {
        match end.status {
            Status::Overwritten { lost: Some(found), .. } if !found.saved => lost = Some(found),
            _ => return Status::Unknown,
        }
    }
    Status::Overwritten { by: command, lost }
}

/// Whether a test of `$?` holds when the command went well; none where it asks for more than that.
fn zero_means_success(test: &str) -> Option<bool> {
    if ["&&", "||", " -a ", " -o "].iter().any(|more| test.contains(more)) {
        return None;
    }
    let text = test.replace(['"', '\''], "");
    let has = |forms: &[&str]| forms.iter().any(|form| text.contains(form));
    if has(&["-ne 0", "!= 0", "-gt 0", "-ge 1", "> 0", "!=0", "x0 != x", ">0"]) {
        Some(false)
    } else if has(&["-eq 0", "= 0", "-lt 1", "==0", "=0"]) {
        Some(true)
    } else if text.starts_with("((") {
        Some(false)
    } else {
        None
    }
}
