//! `cmd; echo done; rc=$?`: each command has its own status, `echo` and `[` too.

use super::{Context, Found, jobs};
use crate::script_check::flow::{How, Lost, Status, Use};
use crate::script_check::rule::Rule;
use crate::script_check::syntax::{Block, Command, Kind};
use crate::script_check::vocabulary::is_true;

pub(super) fn judge(context: &Context<'_>, used: &Use<'_>) -> Option<Found> {
    if used.how != How::Read {
        return None;
    }
    let (reason, fix) = match used.status {
        Status::Started(job) => {
            ("`$?` is 0: a job was started, and has not ended yet".to_owned(), jobs::waited(context, job))
        }
        Status::Overwritten { by, lost: Some(lost) } if !is_true(by) && matters(by, lost) => {
            let inner = by.substitution().and_then(Block::span).filter(|_| lost.of == by.span);
            match inner {
                Some(inner) => (reason(by), format!("x=$({}); rc=$?", context.quote(inner))),
                None => (reason(by), format!("{}; rc=$?", context.quote(lost.of))),
            }
        }
        _ => return None,
    };
    Some(Found { at: used.at, rule: Rule::OverwrittenStatus, reason, fix })
}

fn matters(by: &Command, lost: Lost) -> bool {
    let saves = matches!(by.kind, Kind::Assignment | Kind::Declaration(_)) && by.reads_status();
    // `rc=$?; [ $? … ]` is wrong though the code is kept; `rc=$?; echo; … $?` may mean what it says.
    !lost.checked && ((!lost.answer && !lost.saved) || saves)
}

fn reason(by: &Command) -> String {
    match &by.kind {
        Kind::Test => "`$?` is that of the test, 0 or 1: a test is a command too".to_owned(),
        Kind::If { .. } => "`$?` is that of the `if` before it, which ends with 0".to_owned(),
        Kind::Assignment => "`$?` is 0: the assignment before it has overwritten the code".to_owned(),
        Kind::Declaration(declaration) => {
            format!("`$?` is the 0 of `{}`, which has overwritten the code", declaration.keyword)
        }
        Kind::Simple(simple) if simple.name == "test" => "`$?` is that of `test`, 0 or 1".to_owned(),
        Kind::Simple(simple) => format!("`$?` is the 0 of `{}`, which has overwritten the code", simple.name),
        _ => "`$?` is that of the command before it, which has overwritten the code".to_owned(),
    }
}
