//! `cmd || true`: a status that was thrown away, and is wanted all the same.

use super::{Context, Found};
use crate::script_check::flow::{How, Lost, Status, Use};
use crate::script_check::rule::Rule;
use crate::script_check::syntax::{List, Operator, Pipeline, Span};
use crate::script_check::vocabulary::{is_cleaner, is_true};

pub(super) fn judge(context: &Context<'_>, used: &Use<'_>) -> Option<Found> {
    match used.status {
        Status::Masked(list) => masked(context, used, list),
        Status::Overwritten { by, lost: Some(lost) } if is_true(by) => followed(context, used, lost),
        _ => None,
    }
}

fn masked(context: &Context<'_>, used: &Use<'_>, list: &List) -> Option<Found> {
    let hidden = hidden(list);
    let by = list.last().span.of(context.source);
    let by = by.split_whitespace().next().unwrap_or_default();
    let (at, reason) = match used.how {
        How::Read => (used.at, format!("`$?` is 0: `|| {by}` has replaced the code")),
        // Deliberate, where it clears up.
        How::ScriptEnd if !list.first.stages.iter().any(is_cleaner) && is_true_list(list) => {
            (list.span(), format!("the script ends with 0 whatever the command did, because of `|| {by}`"))
        }
        How::BareExit => (used.at, format!("it ends with 0 whatever the command did, because of `|| {by}`")),
        _ => return None,
    };
    Some(Found { at, rule: Rule::MaskedStatus, reason, fix: context.keep(hidden) })
}

/// `cmd; true`
fn followed(context: &Context<'_>, used: &Use<'_>, lost: Lost) -> Option<Found> {
    let wanted =
        matches!(used.how, How::Read | How::ScriptEnd) && !lost.answer && !lost.checked && !lost.saved;
    let reason = match used.how {
        How::Read => "`$?` is the 0 of `true`",
        _ => "the script ends with the 0 of `true`, whatever the command before it did",
    };
    wanted.then(|| Found {
        at: used.at,
        rule: Rule::MaskedStatus,
        reason: reason.to_owned(),
        fix: context.keep(lost.of),
    })
}

/// What stands before the last `||`.
fn hidden(list: &List) -> Span {
    let before = list.rest.iter().rev().nth(1).map_or(&list.first, |(_, pipeline)| pipeline);
    list.first.span.to(before.span)
}

fn is_true_list(list: &List) -> bool {
    matches!(list.rest.last(), Some((Operator::Or, _))) && list.last().command().is_some_and(is_true)
        || Pipeline::command(list.last()).is_none()
}
