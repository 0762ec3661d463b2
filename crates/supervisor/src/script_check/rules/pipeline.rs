//! `cmd | tee log` without pipefail: the status is that of `tee`.

use super::{Context, Found};
use crate::script_check::dialect::Dialect;
use crate::script_check::flow::{How, Status, Use};
use crate::script_check::options::Switch;
use crate::script_check::rule::Rule;
use crate::script_check::syntax::{Command, Pipeline, Span};
use crate::script_check::vocabulary::{command_can_fail, is_logger, passes_on};

pub(super) fn judge(context: &Context<'_>, used: &Use<'_>) -> Option<Found> {
    let Status::Pipeline(pipeline) = used.status else { return None };
    let (last, producers) = pipeline.stages.split_last()?;
    if used.pipefail != Switch::Off || !producers.iter().any(command_can_fail) {
        return None;
    }
    if let Some(cmd) = producers.first().and_then(executed) {
        return Some(exec(context, pipeline, cmd));
    }
    let reads_all = used.by.is_some_and(Command::reads_pipe_status);
    let relies = match used.how {
        How::Read | How::Condition | How::Operator => passes_on(last, context.source) && !reads_all,
        How::BareExit | How::Errexit | How::FunctionEnd | How::ScriptEnd => is_logger(last),
        How::PipeStatus => false,
    };
    let use_of = match used.how {
        How::Read => "`$?` is",
        How::Condition => "the condition is decided by",
        How::Operator => "what follows is decided by",
        How::Errexit => "`set -e` sees",
        How::FunctionEnd => "the function ends with",
        How::BareExit | How::ScriptEnd | How::PipeStatus => "the script ends with",
    };
    relies.then(|| Found {
        // The pipeline is what has to change, whoever asks for its status; `$?` shows where it hurts.
        at: if used.how == How::Read { used.at } else { pipeline.span },
        rule: Rule::PipelineStatus,
        reason: format!("without pipefail {use_of} the status of {}", name_of(last)),
        fix: context.keep_pipeline(pipeline),
    })
}

fn name_of(last: &Command) -> String {
    match last.simple() {
        Some(simple) if !simple.program().is_empty() => {
            format!("`{}`, not of what is before it", simple.program())
        }
        _ => "its last part".to_owned(),
    }
}

/// `exec cmd`, as the first stage: `cmd`.
fn executed(first: &Command) -> Option<Span> {
    let simple = first.simple().filter(|simple| simple.name == "exec" && !simple.arguments.is_empty())?;
    let skip = simple.name.len() + 1;
    Some(Span { start: first.span.start + skip, end: first.span.end })
}

fn exec(context: &Context<'_>, pipeline: &Pipeline, cmd: Span) -> Found {
    let fix = match (context.dialect, pipeline.stages.as_slice()) {
        (Dialect::Sh, _) => format!("{}; exit \"$(cat code)\"", context.report_beside(pipeline, cmd)),
        (_, [_, second]) => {
            format!("exec {} > >({})", context.quote(cmd), context.quote_or(second.span, "tee log"))
        }
        _ => {
            let quoted = context.quote_or(cmd.to(pipeline.span), "cmd | tee log");
            format!("set -o pipefail; {quoted}; exit \"$?\"")
        }
    };
    Found {
        at: pipeline.span,
        rule: Rule::ExecInPipeline,
        reason: "`exec` replaces a copy of the shell only, and the shell has the status of the pipeline's last part"
            .to_owned(),
        fix,
    }
}
