//! `if ! cmd; then rc=$?`: behind `!` there is no code any more.

use super::{Context, Found};
use crate::script_check::flow::{How, Status, Use};
use crate::script_check::rule::Rule;
use crate::script_check::vocabulary::pipeline_can_fail;

pub(super) fn judge(context: &Context<'_>, used: &Use<'_>) -> Option<Found> {
    let Status::Negated { pipeline, failed } = used.status else { return None };
    let applies = match used.how {
        How::Read => true,
        // `if ! cmd; then exit; fi` exits with 0. After `if ! grep -q …` one may mean it.
        How::BareExit => failed && pipeline_can_fail(pipeline),
        _ => false,
    };
    let what = if used.how == How::Read { "`$?`" } else { "the status it ends with" };
    let piped = if pipeline.pipes() { ", with pipefail too" } else { "" };
    let reason = if failed {
        format!("{what} is 0 here: `!` has turned the failure into success{piped}")
    } else {
        format!("{what} is that of `!`, 0 or 1, never the code of the command")
    };
    applies.then(|| Found {
        at: used.at,
        rule: Rule::NegatedStatus,
        reason,
        fix: context.keep_pipeline(pipeline),
    })
}
