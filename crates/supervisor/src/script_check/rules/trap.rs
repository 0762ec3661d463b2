//! `trap '…; exit 0' EXIT`: the last word of a script is its handler's.

use super::{Context, Found};
use crate::script_check::options::{blocks, subshells};
use crate::script_check::rule::Rule;
use crate::script_check::syntax::{Block, Command, Expansion, Kind, Simple, Span, Statement};

pub(super) fn judge(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    block(context, context.script, &mut found);
    found
}

fn block(context: &Context<'_>, within: &Block, found: &mut Vec<Found>) {
    for Statement { list, .. } in &within.statements {
        for command in list.pipelines().flat_map(|pipeline| &pipeline.stages) {
            command_in(context, command, found);
        }
    }
}

fn command_in(context: &Context<'_>, command: &Command, found: &mut Vec<Found>) {
    found.extend(command.simple().and_then(|simple| trap(context, command.span, simple)));
    if let Kind::Function { body, .. } = &command.kind {
        command_in(context, body, found);
    }
    for inner in blocks(command).into_iter().chain(subshells(command)) {
        block(context, inner, found);
    }
}

fn trap(context: &Context<'_>, at: Span, trap: &Simple) -> Option<Found> {
    let mut signals = trap.arguments.iter().skip(1).filter_map(|word| word.literal.as_deref());
    if trap.name != "trap" || !signals.any(|signal| matches!(signal, "EXIT" | "0")) {
        return None;
    }
    let handler = trap.handler.as_ref();
    let called = handler.and_then(only_call).or_else(|| trap.first_literal());
    let function = called.and_then(|name| context.flow.functions.get(name)).map(|body| &body.kind);
    let body = match function {
        Some(Kind::Group(body)) => body,
        _ => handler?,
    };
    let reason = ends_otherwise(body)?;
    Some(Found { at, rule: Rule::TrapStatus, reason, fix: kept(context, body) })
}

/// `trap 'cleanup' EXIT`
fn only_call(handler: &Block) -> Option<&str> {
    let [only] = handler.statements.as_slice() else { return None };
    Some(only.command()?.simple()?.name.as_str())
}

/// Why a handler does not end with the script's own status; none where it does.
fn ends_otherwise(body: &Block) -> Option<String> {
    let (last, before) = body.statements.split_last()?;
    let exit = last.command()?;
    let code = exit.simple().filter(|simple| simple.name == "exit")?.arguments.first()?;
    // The first command of a handler finds the script's status in `$?`, all others that of the command before them.
    let first_read = before.iter().chain([last]).position(reads_status);
    match (first_read, code.literal.as_deref()) {
        (Some(0), _) => None,
        (None, Some("0")) => {
            Some("the script ends with 0 whatever happened: the handler has the last word".to_owned())
        }
        // `exit $status`: set elsewhere. `exit 1`: a guard, which a script that goes well takes away again.
        (None, _) => None,
        (Some(_), _) => Some(
            "`$?` in the handler is that of the handler's own command before it, not of the script"
                .to_owned(),
        ),
    }
}

fn reads_status(statement: &Statement) -> bool {
    statement.list.pipelines().flat_map(|pipeline| &pipeline.stages).any(|command| {
        let read = |expansion: &Expansion| match expansion {
            Expansion::Status(_) => true,
            Expansion::Substitution(block) | Expansion::Process(block) => {
                block.statements.iter().any(reads_status)
            }
            _ => false,
        };
        command.expansions.iter().any(read)
            || blocks(command).iter().any(|block| block.statements.iter().any(reads_status))
    })
}

/// The handler with its status kept first, and given back last.
fn kept(context: &Context<'_>, body: &Block) -> String {
    let work = match body.statements.split_last() {
        Some((_, [first, .., last])) => context.quote_or(first.list.span().to(last.list.span()), "…"),
        Some((_, [only])) => context.quote_or(only.list.span(), "…"),
        _ => ":",
    };
    let quote = if work.contains('\'') { "…" } else { work };
    format!("trap 'rc=$?; {quote}; exit \"$rc\"' EXIT")
}
