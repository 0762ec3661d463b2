//! The judgement: from what [`super::flow`] saw to what is wrong. One file a family.

mod declaration;
mod exiting;
mod jobs;
mod masking;
mod negation;
mod overwriting;
mod pipeline;
mod pipestatus;
mod trap;

use super::dialect::Dialect;
use super::flow::Flow;
use super::rule::Rule;
use super::syntax::{Block, Pipeline, Span};

/// Longest command that is repeated in a right form, in characters.
const MAX_QUOTED: usize = 90;

/// What rules look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) source: &'a str,
    pub(super) script: &'a Block,
    pub(super) flow: &'a Flow<'a>,
    pub(super) dialect: Dialect,
}

/// A finding, before it has a line.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) at: Span,
    pub(super) rule: Rule,
    pub(super) reason: String,
    pub(super) fix: String,
}

/// All findings, in no order.
pub(super) fn judge(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for used in &context.flow.uses {
        found.extend(negation::judge(context, used));
        found.extend(pipeline::judge(context, used));
        found.extend(declaration::judge(context, used));
        found.extend(masking::judge(context, used));
        found.extend(overwriting::judge(context, used));
        found.extend(exiting::judge(context, used));
        found.extend(pipestatus::judge(context, used));
    }
    found.extend(jobs::judge(context));
    found.extend(trap::judge(context));
    found
}

impl Context<'_> {
    /// A command as it can be repeated in a right form: itself, or `cmd` where it is long or has several lines.
    fn quote(&self, span: Span) -> &str {
        self.quote_or(span, "cmd")
    }

    fn quote_or<'b>(&'b self, span: Span, otherwise: &'b str) -> &'b str {
        let text = span.of(self.source);
        let short = !text.is_empty() && !text.contains('\n') && text.chars().count() <= MAX_QUOTED;
        if short && !text.chars().any(char::is_control) { text } else { otherwise }
    }

    /// `cmd`, with its status in `rc`, whatever `set -e` says.
    fn keep(&self, span: Span) -> String {
        format!("rc=0; {} || rc=$?", self.quote(span))
    }

    /// A pipeline with the status of its first command in `rc`.
    fn keep_pipeline(&self, pipeline: &Pipeline) -> String {
        if !pipeline.pipes() {
            return self.keep(pipeline.span);
        }
        match self.dialect {
            Dialect::Bash | Dialect::Ksh => {
                let quoted = self.quote_or(pipeline.span, "cmd | tee log");
                format!("set -o pipefail; rc=0; {quoted} || rc=$?")
            }
            Dialect::Sh => {
                let first = pipeline.stages.first().map_or(pipeline.span, |first| first.span);
                format!("{}; rc=$(cat code)", self.report_beside(pipeline, first))
            }
        }
    }

    /// Without `pipefail`: the status of `cmd`, the first command of `pipeline`, goes through the file `code`.
    fn report_beside(&self, pipeline: &Pipeline, cmd: Span) -> String {
        let rest = match pipeline.stages.as_slice() {
            [_, second, .., last] => second.span.to(last.span),
            [.., last] => last.span,
            [] => pipeline.span,
        };
        let rest = self.quote_or(rest, "tee log");
        format!("{{ rc=0; {} || rc=$?; echo \"$rc\" >code; }} | {rest}", self.quote(cmd))
    }
}
