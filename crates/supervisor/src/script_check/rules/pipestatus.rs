//! `PIPESTATUS` lasts until the next command, and only bash has it.

use super::{Context, Found};
use crate::script_check::dialect::Dialect;
use crate::script_check::flow::{How, Status, Use};
use crate::script_check::rule::Rule;

pub(super) fn judge(context: &Context<'_>, used: &Use<'_>) -> Option<Found> {
    if used.how != How::PipeStatus {
        return None;
    }
    if context.dialect == Dialect::Sh {
        return Some(Found {
            at: used.at,
            rule: Rule::PipestatusInSh,
            reason:
                "only bash has `PIPESTATUS`; a plain sh ends here with a bad substitution, or finds it empty"
                    .to_owned(),
            fix: match used.status {
                Status::Pipeline(pipeline) => context.keep_pipeline(pipeline),
                _ => "{ rc=0; cmd || rc=$?; echo \"$rc\" >code; } | tee log; rc=$(cat code)".to_owned(),
            },
        });
    }
    let Status::Overwritten { by, lost: Some(lost) } = used.status else { return None };
    let first = context.quote(by.span).split_whitespace().next().unwrap_or("cmd");
    lost.piped.then(|| Found {
        at: used.at,
        rule: Rule::StalePipestatus,
        reason: format!("`PIPESTATUS` is that of `{first}` by now, not of the pipeline before it"),
        fix: format!("{}; rc=${{PIPESTATUS[0]}}", context.quote_or(lost.of, "cmd | tee log")),
    })
}
