//! The pass over the script that [`super::flow`] starts.

use std::collections::BTreeMap;

use super::flow::{Flow, How, Status, Use};
use super::options::{self, Options, Switch};
use super::syntax::{Block, Command, Expansion, Kind, List, Operator, Pipeline, Simple, Span, Statement};
use super::transition::{State, meet_quiet};
use super::vocabulary::{block_can_fail, hides_failure, is_quiet, is_true};

/// The pass itself: what it has seen so far.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    source: &'a str,
    uses: Vec<Use<'a>>,
    functions: BTreeMap<&'a str, Function<'a>>,
    /// In the order of the text, redefinitions too.
    bodies: Vec<&'a Command>,
}

/// A function of the script, as its callers see it.
#[derive(Debug, Clone, Copy)]
struct Function<'a> {
    body: &'a Command,
    sets_options: bool,
    only_speaks: bool,
}

impl<'a> Walk<'a> {
    /// Follows the whole script, then each function.
    pub(super) fn follow(script: &'a Block, source: &'a str, start: Options) -> Flow<'a> {
        let mut walk = Self { source, uses: Vec::new(), functions: BTreeMap::new(), bodies: Vec::new() };
        let mut state = State::new(start);
        walk.block(script, &mut state);
        if let Some(last) = script.statements.last() {
            walk.record(How::ScriptEnd, last.list.last().span, &state, None);
        }
        let at_call = options::on_call(script, start, state.options);
        // Functions may define functions, while they are walked.
        let mut done = 0;
        while let Some(body) = walk.bodies.get(done).copied() {
            done += 1;
            walk.function(body, State::new(at_call));
        }
        let functions = walk.functions.into_iter().map(|(name, function)| (name, function.body)).collect();
        Flow { uses: walk.uses, functions }
    }

    fn function(&mut self, body: &'a Command, mut state: State<'a>) {
        self.command(body, &mut state);
        let Kind::Group(block) = &body.kind else { return };
        if let Some(last) = block.statements.last() {
            self.record(How::FunctionEnd, last.list.last().span, &state, None);
        }
    }

    fn record(&mut self, how: How, at: Span, state: &State<'a>, by: Option<&'a Command>) {
        self.uses.push(Use { how, at, status: state.status, pipefail: state.options.pipefail, by });
    }

    fn block(&mut self, block: &'a Block, state: &mut State<'a>) {
        for statement in &block.statements {
            self.statement(statement, state);
        }
    }

    fn statement(&mut self, statement: &'a Statement, state: &mut State<'a>) {
        if statement.background {
            let mut job = *state;
            self.list(&statement.list, &mut job);
            state.status = Status::Started(statement);
            return;
        }
        self.list(&statement.list, state);
        let last = statement.list.last();
        if state.options.errexit == Switch::On && !state.tested && !last.negated {
            self.record(How::Errexit, last.span, state, None);
        }
    }

    fn list(&mut self, list: &'a List, state: &mut State<'a>) {
        let tested = state.tested;
        state.tested |= !list.rest.is_empty();
        self.pipeline(&list.first, state);
        for (index, (operator, pipeline)) in list.rest.iter().enumerate() {
            // `cmd || true` makes no use of it.
            if *operator == Operator::And || !pipeline.command().is_some_and(is_true) {
                self.record(How::Operator, pipeline.span, state, None);
            }
            let skipped = *state;
            state.tested = tested || index + 1 < list.rest.len();
            *state = state.known(*operator == Operator::And, self.source);
            self.pipeline(pipeline, state);
            *state = state.meet(skipped, list, index);
        }
        state.tested = tested;
    }

    fn pipeline(&mut self, pipeline: &'a Pipeline, state: &mut State<'a>) {
        match pipeline.stages.as_slice() {
            [command] => {
                let tested = state.tested;
                state.tested |= pipeline.negated;
                self.command(command, state);
                state.tested = tested;
            }
            stages => {
                for stage in stages {
                    let mut copy = *state;
                    self.command(stage, &mut copy);
                }
                state.status = Status::Pipeline(pipeline);
            }
        }
        if pipeline.negated && !state.is_unreachable() {
            state.status = Status::Negated { pipeline, failed: false };
        }
    }

    fn command(&mut self, command: &'a Command, state: &mut State<'a>) {
        let substituted = self.expansions(command, state);
        match &command.kind {
            Kind::Simple(simple) => self.simple(command, simple, state),
            Kind::Declaration(declaration) => {
                let substitutes = declaration.assignments.iter().any(|assignment| assignment.substitutes);
                state.status = match command.substitution() {
                    Some(block) if substitutes && block_can_fail(block) => Status::Declared(command),
                    _ => state.overwritten(command),
                };
            }
            // `x=$(…)` ends with the status of what is within.
            Kind::Assignment => {
                state.status = match substituted {
                    Some(Status::Unreachable | Status::Unknown) => Status::Of(command),
                    Some(status) => status,
                    None => state.overwritten(command),
                };
            }
            Kind::Test if command.reads_status() || command.reads_pipe_status() => {
                state.status = state.overwritten(command);
            }
            Kind::Test => state.status = Status::Of(command),
            Kind::Group(block) => self.block(block, state),
            Kind::Subshell(block) => {
                let mut inner = *state;
                self.block(block, &mut inner);
                state.status = match inner.status {
                    Status::Unreachable | Status::Unknown => Status::Of(command),
                    status => status,
                };
            }
            Kind::If { arms, otherwise } => self.conditional(command, arms, otherwise.as_ref(), state),
            Kind::Loop { condition, body } => self.repetition(condition, body, state),
            Kind::For(body) => {
                let mut inner = state.unknown();
                self.block(body, &mut inner);
                *state = State { options: state.options.join(inner.options), ..state.unknown() };
            }
            Kind::Case(items) => self.case(items, state),
            Kind::Function { name, body } => {
                let only_speaks = matches!(&body.kind, Kind::Group(_)) && hides_failure(body);
                let sets_options = options::sets_options(body);
                self.functions.insert(name, Function { body, sets_options, only_speaks });
                self.bodies.push(body);
                state.status = Status::Unknown;
            }
            Kind::Opaque => state.status = Status::Unknown,
        }
    }

    /// Records the reads among a command's words. Returns the status of the last `$(…)`.
    fn expansions(&mut self, command: &'a Command, state: &State<'a>) -> Option<Status<'a>> {
        let mut seen = *state;
        let mut substituted = None;
        for expansion in &command.expansions {
            match expansion {
                Expansion::Status(at) => self.record(How::Read, *at, &seen, Some(command)),
                Expansion::PipeStatus(at) => self.record(How::PipeStatus, *at, &seen, Some(command)),
                Expansion::LastJob => {}
                Expansion::Substitution(block) | Expansion::Process(block) => {
                    let mut inner =
                        State { options: Options { errexit: Switch::Off, ..seen.options }, ..seen };
                    self.block(block, &mut inner);
                    if matches!(expansion, Expansion::Substitution(_)) {
                        substituted = Some(inner.status);
                        seen.status = Status::Unknown;
                    }
                }
            }
        }
        substituted
    }

    fn simple(&mut self, command: &'a Command, simple: &'a Simple, state: &mut State<'a>) {
        if let Some(handler) = &simple.handler {
            // Runs some other time; what is odd within it is odd all the same.
            self.block(handler, &mut State { tested: true, ..State::new(Options::UNKNOWN) });
        }
        let ends = matches!(simple.name.as_str(), "exit" | "return");
        if ends && simple.arguments.is_empty() {
            self.record(How::BareExit, command.span, state, Some(command));
        }
        let becomes_another = simple.name == "exec" && !simple.arguments.is_empty();
        if ends || becomes_another || matches!(simple.name.as_str(), "break" | "continue") {
            state.status = Status::Unreachable;
            return;
        }
        let function = self.functions.get(simple.name.as_str()).copied();
        let speaks = is_quiet(command) || function.is_some_and(|function| function.only_speaks);
        let tests = simple.name == "test" && command.reads_status();
        state.status = if speaks || tests { state.overwritten(command) } else { Status::Of(command) };
        if function.is_some_and(|function| function.sets_options) {
            state.options = Options::UNKNOWN;
        }
        state.options = state.options.after(simple);
    }

    fn condition(&mut self, condition: &'a Block, state: &mut State<'a>) {
        let tested = std::mem::replace(&mut state.tested, true);
        self.block(condition, state);
        state.tested = tested;
        if let Some(last) = condition.statements.last() {
            self.record(How::Condition, last.list.last().span, state, None);
        }
    }

    fn conditional(
        &mut self,
        command: &'a Command,
        arms: &'a [(Block, Block)],
        otherwise: Option<&'a Block>,
        state: &mut State<'a>,
    ) {
        let mut ends = Vec::new();
        for (condition, body) in arms {
            let before = *state;
            self.condition(condition, state);
            // `if [ -n "$VERBOSE" ]; then …` has nothing to do with what ran before it, and overwrites its status.
            if let Status::Of(test) = state.status
                && matches!(test.kind, Kind::Test)
            {
                state.status = before.overwritten(test);
            }
            let mut then = state.known(true, self.source);
            self.block(body, &mut then);
            ends.push(then);
            *state = state.known(false, self.source);
        }
        // Without `else` the status is 0, not that of the condition.
        let mut last = *state;
        if let Some(block) = otherwise {
            self.block(block, &mut last);
        }
        ends.push(last);
        ends.retain(|end| !end.is_unreachable());
        let options = ends.iter().map(|end| end.options).reduce(Options::join);
        let status = match ends.as_slice() {
            [] => Status::Unreachable,
            ends => meet_quiet(command, ends),
        };
        *state = State { status, options: options.unwrap_or(state.options), ..*state };
    }

    fn case(&mut self, items: &'a [Block], state: &mut State<'a>) {
        let before = *state;
        for item in items {
            let mut inner = before;
            self.block(item, &mut inner);
            if !inner.is_unreachable() {
                state.options = state.options.join(inner.options);
            }
        }
        state.status = Status::Unknown;
    }

    fn repetition(&mut self, condition: &'a Block, body: &'a Block, state: &mut State<'a>) {
        self.condition(condition, state);
        // `until` runs its body with the true status, `while` with 0: neither loses anything, but for `!`.
        let mut inner = match state.status {
            Status::Negated { .. } => state.known(true, self.source),
            _ => state.unknown(),
        };
        self.block(body, &mut inner);
        *state = State { options: state.options.join(inner.options), ..state.unknown() };
    }
}
