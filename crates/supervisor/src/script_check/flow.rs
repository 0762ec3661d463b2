//! Follows `$?` through the script: where is it read or relied upon, and whose status is it there?
//!
//! One pass in the order of the text ([`super::walk`]), with both branches of each `if`. Rules judge the [`Use`]s that it
//! leaves behind; where two ways meet and disagree the status is unknown, and no rule speaks.

use std::collections::BTreeMap;

use super::options::Switch;
use super::syntax::{Command, List, Pipeline, Span, Statement};

/// Whose status `$?` is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Status<'a> {
    /// Several ways lead here, or nothing is known.
    Unknown,
    /// Nothing comes here.
    Unreachable,
    /// Of one command.
    Of(&'a Command),
    /// Of a command that is known to have failed.
    Failed(Span),
    /// Of a pipeline with several stages.
    Pipeline(&'a Pipeline),
    /// Of `! pipeline`: 0 or 1. `failed`: in the branch where the pipeline failed.
    Negated { pipeline: &'a Pipeline, failed: bool },
    /// Of `local x=$(…)`: of `local`.
    Declared(&'a Command),
    /// Of `… || true`.
    Masked(&'a List),
    /// 0, since a job was started.
    Started(&'a Statement),
    /// Of a command that is not meant by anyone who reads `$?`.
    Overwritten { by: &'a Command, lost: Option<Lost> },
}

/// A status that nobody can read any more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lost {
    /// The command whose it was.
    pub(super) of: Span,
    /// It was a pipeline: `PIPESTATUS` is gone as well.
    pub(super) piped: bool,
    /// It is an answer (`grep -q`), no outcome.
    pub(super) answer: bool,
    /// The script knows here that it failed.
    pub(super) failed: bool,
    /// `set -e` has looked at it already.
    pub(super) checked: bool,
    /// It is kept in a variable.
    pub(super) saved: bool,
}

impl Lost {
    /// Of one command, with nothing known about it.
    pub(super) fn new(of: Span) -> Self {
        Self { of, piped: false, answer: false, failed: false, checked: false, saved: false }
    }
}

/// In which way a status is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// `$?`
    Read,
    /// `PIPESTATUS`
    PipeStatus,
    /// Decides an `if`, `while` or `until`.
    Condition,
    /// Decides what follows `&&` or `||`.
    Operator,
    /// `set -e` decides by it.
    Errexit,
    /// `exit` or `return` without argument.
    BareExit,
    /// The last of a function.
    FunctionEnd,
    /// The last of the script.
    ScriptEnd,
}

/// One use of a status.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use<'a> {
    pub(super) how: How,
    pub(super) at: Span,
    pub(super) status: Status<'a>,
    pub(super) pipefail: Switch,
    /// The command that reads it.
    pub(super) by: Option<&'a Command>,
}

/// All of them, and the functions by name.
#[derive(Debug)]
pub(super) struct Flow<'a> {
    pub(super) uses: Vec<Use<'a>>,
    pub(super) functions: BTreeMap<&'a str, &'a Command>,
}
