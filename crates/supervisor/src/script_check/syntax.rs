//! A script as the rules see it: blocks of and-or lists of pipelines of commands.
//!
//! Smaller than the grammar's tree on purpose: what cannot change `$?` is not here. [`super::lower`] builds it.

/// Bytes `start..end` of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Statements, one after the other.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) statements: Vec<Statement>,
}

/// A list, in the foreground or (`&`) as a job.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) list: List,
    pub(super) background: bool,
}

/// `first && second || third`, left to right.
#[derive(Debug)]
pub(super) struct List {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Operator, Pipeline)>,
}

/// What joins a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    And,
    Or,
}

/// `! first | second`; one stage is an ordinary command.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) negated: bool,
    /// Never empty.
    pub(super) stages: Vec<Command>,
    /// Without the `!`.
    pub(super) span: Span,
}

/// A command with all that the shell expands for it.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) kind: Kind,
    pub(super) span: Span,
    /// In the order of the text.
    pub(super) expansions: Vec<Expansion>,
    pub(super) redirects: Vec<Redirect>,
}

/// What kind of command.
#[derive(Debug)]
pub(super) enum Kind {
    Simple(Simple),
    /// `local x=…` and its like: the builtin has a status of its own.
    Declaration(Declaration),
    /// `x=…`, nothing else.
    Assignment,
    /// `[ … ]`, `[[ … ]]`, `(( … ))`.
    Test,
    Group(Block),
    Subshell(Block),
    If {
        /// Each condition with what runs when it holds.
        arms: Vec<(Block, Block)>,
        otherwise: Option<Block>,
    },
    /// `while` and `until`.
    Loop {
        condition: Block,
        body: Block,
    },
    /// `for` and `select`.
    For(Block),
    Case(Vec<Block>),
    Function {
        name: String,
        body: Box<Command>,
    },
    /// Not understood: its status may be anyone's.
    Opaque,
}

/// A program, builtin or function, called.
#[derive(Debug)]
pub(super) struct Simple {
    /// Empty where it is computed (`"$program" …`).
    pub(super) name: String,
    pub(super) arguments: Vec<Word>,
    /// `trap`'s first argument, where it is written out.
    pub(super) handler: Option<Block>,
}

/// `local`, `declare`, `typeset`, `export`, `readonly`.
#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) keyword: String,
    pub(super) flags: Vec<String>,
    pub(super) assignments: Vec<Assignment>,
}

/// `name=value`, declared.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) span: Span,
    /// The value holds `$(…)`.
    pub(super) substitutes: bool,
}

/// An argument.
#[derive(Debug)]
pub(super) struct Word {
    /// As written.
    pub(super) text: String,
    /// Without quotes, where nothing in it is expanded.
    pub(super) literal: Option<String>,
}

/// What the shell expands in a command's words.
#[derive(Debug)]
pub(super) enum Expansion {
    /// `$?`
    Status(Span),
    /// `PIPESTATUS`
    PipeStatus(Span),
    /// `$!`
    LastJob,
    /// `$(…)`, with its commands.
    Substitution(Block),
    /// `<(…)`, `>(…)`: its status goes nowhere.
    Process(Block),
}

/// Where a redirection leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirect {
    /// To or from a file, whose opening may fail.
    File,
    /// Another descriptor, `/dev/null`, the terminal.
    Harmless,
}

impl Span {
    /// The text it covers.
    pub(super) fn of(self, source: &str) -> &str {
        source.get(self.start..self.end).unwrap_or_default()
    }

    /// From the beginning of one to the end of the other.
    pub(super) fn to(self, last: Self) -> Self {
        Self { start: self.start, end: last.end }
    }
}

impl Block {
    /// From the first statement to the last.
    pub(super) fn span(&self) -> Option<Span> {
        Some(self.statements.first()?.list.span().to(self.statements.last()?.list.span()))
    }
}

impl Statement {
    /// Its one command, where it is nothing else.
    pub(super) fn command(&self) -> Option<&Command> {
        self.list.single()?.command()
    }
}

impl List {
    /// All its pipelines.
    pub(super) fn pipelines(&self) -> impl DoubleEndedIterator<Item = &Pipeline> {
        std::iter::once(&self.first).chain(self.rest.iter().map(|(_, pipeline)| pipeline))
    }

    /// A list of one pipeline.
    pub(super) fn single(&self) -> Option<&Pipeline> {
        self.rest.is_empty().then_some(&self.first)
    }

    /// The pipeline whose status the list ends with, unless an operator skips it.
    pub(super) fn last(&self) -> &Pipeline {
        self.rest.last().map_or(&self.first, |(_, pipeline)| pipeline)
    }

    /// See [`List::last`].
    pub(super) fn last_mut(&mut self) -> &mut Pipeline {
        self.rest.last_mut().map_or(&mut self.first, |(_, pipeline)| pipeline)
    }

    /// From the first pipeline to the last.
    pub(super) fn span(&self) -> Span {
        self.first.span.to(self.last().span)
    }
}

impl Pipeline {
    /// Its one command, where nothing is piped and nothing negated.
    pub(super) fn command(&self) -> Option<&Command> {
        match self.stages.as_slice() {
            [command] if !self.negated => Some(command),
            _ => None,
        }
    }

    /// It pipes.
    pub(super) fn pipes(&self) -> bool {
        self.stages.len() > 1
    }
}

impl Command {
    /// The program, builtin or function called.
    pub(super) fn simple(&self) -> Option<&Simple> {
        match &self.kind {
            Kind::Simple(simple) => Some(simple),
            _ => None,
        }
    }

    /// A word of it holds `$?`.
    pub(super) fn reads_status(&self) -> bool {
        self.expansions.iter().any(|expansion| matches!(expansion, Expansion::Status(_)))
    }

    /// A word of it holds `PIPESTATUS`.
    pub(super) fn reads_pipe_status(&self) -> bool {
        self.expansions.iter().any(|expansion| matches!(expansion, Expansion::PipeStatus(_)))
    }

    /// The last `$(…)` among its words: whose status an assignment has.
    pub(super) fn substitution(&self) -> Option<&Block> {
        self.expansions.iter().rev().find_map(|expansion| match expansion {
            Expansion::Substitution(block) => Some(block),
            _ => None,
        })
    }

    /// It opens a file.
    pub(super) fn opens_file(&self) -> bool {
        self.redirects.contains(&Redirect::File)
    }
}

impl Simple {
    /// The first argument, where it is literal.
    pub(super) fn first_literal(&self) -> Option<&str> {
        self.arguments.first()?.literal.as_deref()
    }
}
