//! `local x=$(cmd)`: the status is that of `local`.

use super::{Context, Found};
use crate::script_check::flow::{How, Status, Use};
use crate::script_check::rule::Rule;
use crate::script_check::syntax::{Declaration, Kind, Span};

pub(super) fn judge(context: &Context<'_>, used: &Use<'_>) -> Option<Found> {
    let Status::Declared(command) = used.status else { return None };
    let Kind::Declaration(declaration) = &command.kind else { return None };
    let keyword = &declaration.keyword;
    let reason = match used.how {
        How::Read => format!("`$?` is the status of `{keyword}`, 0 whatever the command in it did"),
        How::Errexit => {
            format!("`set -e` sees the status of `{keyword}`, and goes on when the command in it fails")
        }
        How::Condition | How::Operator => {
            format!("what follows is decided by `{keyword}`, which succeeds when the command in it fails")
        }
        How::BareExit | How::PipeStatus | How::FunctionEnd | How::ScriptEnd => return None,
    };
    let at = if used.how == How::Read { used.at } else { command.span };
    Some(Found {
        at,
        rule: Rule::DeclaredStatus,
        reason,
        fix: apart(context, declaration, command.span, used.how),
    })
}

/// Declaration and assignment as two commands, the assignment last where that can be.
fn apart(context: &Context<'_>, declaration: &Declaration, whole: Span, how: How) -> String {
    let Declaration { keyword, flags, assignments } = declaration;
    let Some(assignment) = assignments.iter().rev().find(|assignment| assignment.substitutes) else {
        return context.keep(whole);
    };
    let name = &assignment.name;
    let short = format!("{name}=$(cmd)");
    let set = context.quote_or(assignment.span, &short);
    let fixed = keyword == "readonly" || flags.iter().any(|flag| flag.contains('r'));
    if !fixed {
        let words: String = [keyword].into_iter().chain(flags).map(|word| format!("{word} ")).collect();
        return format!("{words}{name}; {set}");
    }
    let first = if keyword == "readonly" { String::new() } else { format!("{keyword} {name}; ") };
    match how {
        How::Errexit => format!("{first}{set}; readonly {name}"),
        _ => format!("{first}rc=0; {set} || rc=$?; readonly {name}"),
    }
}
