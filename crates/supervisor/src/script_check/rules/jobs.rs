//! Jobs: only `wait PID`, in the shell that started them, tells their code.

use std::collections::{BTreeMap, BTreeSet};

use super::{Context, Found};
use crate::script_check::options::{blocks, subshells};
use crate::script_check::rule::Rule;
use crate::script_check::syntax::{Block, Command, Expansion, Kind, Pipeline, Simple, Span, Statement};
use crate::script_check::vocabulary::list_can_fail;

/// A shell process of the script: the script itself, or the copy that `( … )`, `$( … )`, `… | …` or `… &` makes.
type Shell = usize;

/// The script itself.
const MAIN: Shell = 0;

#[derive(Debug, Default)]
struct Census<'a> {
    /// How many shells there are.
    shells: Shell,
    /// The first job of each shell, and the first that can fail.
    jobs: BTreeMap<Shell, Jobs<'a>>,
    /// Jobs that functions start: wherever these are called.
    jobs_of_functions: Jobs<'a>,
    waits: Vec<Wait<'a>>,
    /// Shells that wait by process id.
    addressed: BTreeSet<Shell>,
    /// Functions do.
    functions_address: bool,
    /// Places of `while kill -0 "$pid"`.
    polls: Vec<Span>,
    /// Shells in which functions are called: they may start jobs there.
    calling: BTreeSet<Shell>,
    /// `nohup`, `setsid`, `disown`: jobs are meant to outlive the script.
    detaches: bool,
    /// `$!` is taken somewhere.
    takes_job: bool,
    /// In a function: it runs wherever it is called.
    in_function: bool,
}

/// Jobs of one shell.
#[derive(Debug, Default, Clone, Copy)]
struct Jobs<'a> {
    any: bool,
    /// The first whose code can be worth something.
    failing: Option<&'a Statement>,
}

#[derive(Debug, Clone, Copy)]
struct Wait<'a> {
    command: &'a Command,
    call: &'a Simple,
    shell: Shell,
    in_function: bool,
    /// Behind a `kill`: the end of what was ended.
    after_kill: bool,
}

pub(super) fn judge(context: &Context<'_>) -> Vec<Found> {
    let mut census = Census::default();
    census.block(context, context.script, MAIN);
    let mut found: Vec<Found> = census.waits.iter().filter_map(|wait| census.wait(context, wait)).collect();
    found.extend(census.never_waited(context));
    found
}

/// A job with the code it ended with in `rc`.
pub(super) fn waited(context: &Context<'_>, job: &Statement) -> String {
    format!("{} & pid=$!; rc=0; wait \"$pid\" || rc=$?", context.quote(job.list.span()))
}

impl<'a> Census<'a> {
    /// `( … )`, `$( … )`, `… | …`, `… &`.
    fn another(&mut self) -> Shell {
        self.shells += 1;
        self.shells
    }

    fn start(&mut self, job: &'a Statement, shell: Shell) {
        let jobs = match self.in_function {
            true => &mut self.jobs_of_functions,
            false => self.jobs.entry(shell).or_default(),
        };
        jobs.any = true;
        if jobs.failing.is_none() && list_can_fail(&job.list) {
            jobs.failing = Some(job);
        }
    }

    fn block(&mut self, context: &Context<'a>, block: &'a Block, shell: Shell) {
        let mut killed = false;
        for statement in &block.statements {
            let mut inside = shell;
            if statement.background {
                self.start(statement, shell);
                inside = self.another();
            }
            for pipeline in statement.list.pipelines() {
                self.pipeline(context, pipeline, inside, killed);
            }
            killed = statement.list.pipelines().any(|pipeline| pipeline.stages.iter().any(kills));
        }
    }

    fn pipeline(&mut self, context: &Context<'a>, pipeline: &'a Pipeline, shell: Shell, killed: bool) {
        for stage in &pipeline.stages {
            let shell = if pipeline.pipes() { self.another() } else { shell };
            self.command(context, stage, shell, killed);
        }
    }

    fn command(&mut self, context: &Context<'a>, command: &'a Command, shell: Shell, after_kill: bool) {
        match &command.kind {
            Kind::Simple(call) => {
                self.detaches |=
                    matches!(call.name.as_str(), "nohup" | "setsid" | "disown" | "start-stop-daemon");
                if call.name == "wait" {
                    let in_function = self.in_function;
                    let wait = Wait { command, call, shell, in_function, after_kill };
                    if wait.is_addressed() {
                        self.functions_address |= in_function;
                        self.addressed.insert(shell);
                    }
                    self.waits.push(wait);
                }
                if context.flow.functions.contains_key(call.name.as_str()) {
                    self.calling.insert(shell);
                }
            }
            Kind::Function { body, .. } => {
                let outside = std::mem::replace(&mut self.in_function, true);
                self.command(context, body, shell, false);
                self.in_function = outside;
            }
            Kind::Loop { condition, .. } => self.polls.extend(polls(condition)),
            _ => {}
        }
        self.takes_job |= command.expansions.iter().any(|expansion| matches!(expansion, Expansion::LastJob));
        for block in blocks(command) {
            self.block(context, block, shell);
        }
        for block in subshells(command) {
            let copy = self.another();
            self.block(context, block, copy);
        }
    }

    fn wait(&self, context: &Context<'a>, wait: &Wait<'a>) -> Option<Found> {
        let at = wait.command.span;
        let own = self.jobs.get(&wait.shell).copied().unwrap_or_default();
        let started_here = own.any || self.jobs_of_functions.any || wait.in_function;
        if !started_here && !self.calling.contains(&wait.shell) {
            let job = self.jobs.values().find_map(|jobs| jobs.failing)?;
            let reason = if wait.is_addressed() {
                "the job was started by another shell, and a shell can wait for its own children only: the status is 127"
            } else {
                "the job was started by another shell, so there is nothing to wait for here: the status is 0"
            };
            let fix = waited(context, job);
            return Some(Found { at, rule: Rule::WaitElsewhere, reason: reason.to_owned(), fix });
        }
        // A script that waits by process id looks after its jobs; a bare `wait` besides is for the rest.
        let looked_after = self.functions_address || self.addressed.contains(&wait.shell);
        if wait.is_addressed() || wait.after_kill || looked_after {
            return None;
        }
        let elsewhere = || self.jobs.values().find_map(|jobs| jobs.failing).filter(|_| wait.in_function);
        let job = own.failing.or(self.jobs_of_functions.failing).or_else(elsewhere)?;
        Some(Found {
            at,
            rule: Rule::BareWait,
            reason: "`wait` without a process id ends with 0, whatever the jobs ended with".to_owned(),
            fix: waited(context, job),
        })
    }

    fn never_waited(&self, context: &Context<'a>) -> Option<Found> {
        let job = self.jobs.values().find_map(|jobs| jobs.failing).or(self.jobs_of_functions.failing)?;
        if !self.waits.is_empty() || self.detaches {
            return None;
        }
        let found = |at: Span, reason: &str| Found {
            at,
            rule: Rule::JobNotWaited,
            reason: reason.to_owned(),
            fix: waited(context, job),
        };
        if let (Some(at), true) = (self.polls.first(), self.takes_job) {
            return Some(found(
                *at,
                "`kill -0` tells that the job has ended, only `wait` tells with which code",
            ));
        }
        let last = ends_with_job(context.script)?;
        let silent =
            last.list.last().stages.iter().any(|stage| stage.span.of(context.source).contains("/dev/null"));
        let wanted = !self.takes_job && !silent && list_can_fail(&last.list);
        wanted.then(|| {
            found(last.list.span(), "the script ends with 0 while the job still runs: nobody sees its code")
        })
    }
}

impl Wait<'_> {
    /// For one job: by process id, or `-n`, the next that ends.
    fn is_addressed(&self) -> bool {
        self.call.arguments.iter().any(|word| !word.text.starts_with("--"))
    }
}

fn kills(command: &Command) -> bool {
    command.simple().is_some_and(|simple| matches!(simple.program(), "kill" | "pkill" | "killall"))
}

/// `kill -0 PID` as the last of a loop's condition.
fn polls(condition: &Block) -> Option<Span> {
    let pipeline = condition.statements.last()?.list.single()?;
    let [command] = pipeline.stages.as_slice() else { return None };
    let kill = command.simple().filter(|simple| simple.name == "kill")?;
    let asks = matches!(kill.first_literal(), Some("-0"))
        && kill.arguments.iter().any(|word| word.text.contains('$'));
    asks.then_some(command.span)
}

/// The job that a script starts last, but for `exit 0`.
fn ends_with_job(script: &Block) -> Option<&Statement> {
    let leaves = |statement: &&Statement| {
        let command = statement.command();
        let exit = command.and_then(Command::simple).filter(|simple| simple.name == "exit");
        exit.is_some_and(|exit| matches!(exit.first_literal(), None | Some("0"))) && !statement.background
    };
    script.statements.iter().rev().find(|statement| !leaves(statement)).filter(|last| last.background)
}
