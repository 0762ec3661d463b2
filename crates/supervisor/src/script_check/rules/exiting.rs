//! `cmd || { echo failed; exit; }`: `exit` without a number ends with the status of `echo`.

use super::{Context, Found};
use crate::script_check::flow::{How, Status, Use};
use crate::script_check::rule::Rule;
use crate::script_check::vocabulary::says_skip;

pub(super) fn judge(context: &Context<'_>, used: &Use<'_>) -> Option<Found> {
    let Status::Overwritten { by, lost: Some(lost) } = used.status else { return None };
    // `echo bye; exit` in passing is ordinary; where the script knows of a failure it is not.
    if used.how != How::BareExit || !lost.failed || lost.answer || lost.saved || says_skip(by, context.source)
    {
        return None;
    }
    let word = used.by.and_then(|command| command.simple()).map_or("exit", |simple| simple.name.as_str());
    let first = context.quote(by.span).split_whitespace().next().unwrap_or("cmd");
    Some(Found {
        at: used.at,
        rule: Rule::ExitAfterMessage,
        reason: format!("`{word}` without a number ends with the status of `{first}`, which succeeded"),
        fix: format!(
            "{} || {{ rc=$?; {}; {word} \"$rc\"; }}",
            context.quote(lost.of),
            context.quote_or(by.span, "echo failed >&2")
        ),
    })
}
