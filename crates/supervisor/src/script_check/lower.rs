//! From the grammar's tree to [`super::syntax`].
//!
//! The grammar binds some things in its own way, which is put right here: `! a | b` negates the pipeline, not `a`; what
//! follows `<<EOF` on its line belongs to the list around it; `x=1 y=2` on the line above a command is no part of it.

use tree_sitter::Node;

use super::repair::STAND_IN;
use super::syntax::{Block, Command, Expansion, Kind, List, Operator, Pipeline, Simple, Span, Statement};

/// Lowers a whole script.
pub(super) fn lower(source: &str, root: Node<'_>) -> Block {
    Lowering { source, base: 0, in_handler: false }.block(root)
}

/// A position in a script, or in the text of a handler within it.
#[derive(Clone, Copy)]
pub(super) struct Lowering<'a> {
    /// What was parsed.
    pub(super) source: &'a str,
    /// Where it begins in the script.
    pub(super) base: usize,
    /// It is the text of a handler.
    pub(super) in_handler: bool,
}

/// All children, tokens too.
pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.children(&mut node.walk()).collect()
}

/// It has a status.
pub(super) fn is_statement(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "command"
            | "list"
            | "pipeline"
            | "redirected_statement"
            | "negated_command"
            | "declaration_command"
            | "unset_command"
            | "test_command"
            | "compound_statement"
            | "subshell"
            | "if_statement"
            | "while_statement"
            | "for_statement"
            | "c_style_for_statement"
            | "case_statement"
            | "function_definition"
            | "variable_assignment"
            | "variable_assignments"
    )
}

impl Lowering<'_> {
    pub(super) fn span(&self, node: Node<'_>) -> Span {
        let text = self.text(node);
        // Some nodes take the line break along.
        let end = node.start_byte() + text.trim_end().len();
        Span { start: self.base + node.start_byte(), end: self.base + end }
    }

    pub(super) fn text(&self, node: Node<'_>) -> &str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    /// The statements among a node's children.
    pub(super) fn block(self, node: Node<'_>) -> Block {
        self.statements(children(node).into_iter())
    }

    fn statements<'tree>(self, nodes: impl Iterator<Item = Node<'tree>>) -> Block {
        let mut statements = Vec::new();
        for node in nodes {
            if is_statement(node) {
                let list = self.list(node, &mut statements);
                statements.push(Statement { list, background: false });
            } else if node.kind() == "&" {
                if let Some(job) = statements.last_mut() {
                    job.background = true;
                }
            } else if node.is_error() {
                let list = self.single(self.command_of(node, Kind::Opaque, Vec::new()));
                statements.push(Statement { list, background: false });
            }
        }
        Block { statements }
    }

    fn single(self, command: Command) -> List {
        let span = command.span;
        List { first: Pipeline { negated: false, stages: vec![command], span }, rest: Vec::new() }
    }

    /// `before` takes assignments that the grammar mistook for a part of the command below them.
    fn list(self, node: Node<'_>, before: &mut Vec<Statement>) -> List {
        match node.kind() {
            "list" => self.and_or(node, before),
            "pipeline" => self.pipeline(node, before),
            "negated_command" => {
                let inner = children(node).into_iter().find(|child| is_statement(*child));
                let mut list = match inner {
                    Some(inner) => self.list(inner, before),
                    None => self.single(self.command_of(node, Kind::Opaque, Vec::new())),
                };
                list.first.negated = !list.first.negated;
                list
            }
            "redirected_statement" => self.redirected(node, before),
            _ => self.single(self.command(node, before)),
        }
    }

    /// A chain of a thousand `&&` is no deeper than one.
    fn and_or(self, node: Node<'_>, before: &mut Vec<Statement>) -> List {
        let mut tail = Vec::new();
        let mut first = node;
        while first.kind() == "list" {
            let parts = children(first);
            let (Some(left), Some(right)) = (parts.first(), parts.last()) else { break };
            let or = parts.iter().any(|part| part.kind() == "||");
            tail.push((if or { Operator::Or } else { Operator::And }, *right));
            first = *left;
        }
        let mut list = self.list(first, before);
        for (operator, right) in tail.into_iter().rev() {
            let right = self.list(right, before);
            list.rest.push((operator, right.first));
            list.rest.extend(right.rest);
        }
        list
    }

    fn pipeline(self, node: Node<'_>, before: &mut Vec<Statement>) -> List {
        let mut whole: Option<List> = None;
        for stage in children(node).into_iter().filter(|child| is_statement(*child)) {
            let stage = self.list(stage, before);
            match &mut whole {
                None => whole = Some(stage),
                Some(list) => pipe(list, stage),
            }
        }
        whole.unwrap_or_else(|| self.single(self.command_of(node, Kind::Opaque, Vec::new())))
    }

    fn redirected(self, node: Node<'_>, before: &mut Vec<Statement>) -> List {
        let parts = children(node);
        let mut list = match parts.iter().find(|part| is_statement(**part)) {
            Some(body) => self.list(*body, before),
            // `> file`, alone.
            None => self.single(self.command_of(node, Kind::Assignment, Vec::new())),
        };
        for redirect in parts.iter().filter(|part| part.kind().ends_with("_redirect")) {
            self.redirect(*redirect, &mut list, before);
        }
        list
    }

    /// Adds a redirection to the last command, and what follows `<<EOF` on its line to the list.
    fn redirect(self, node: Node<'_>, list: &mut List, before: &mut Vec<Statement>) {
        let (redirect, expansions) = (self.redirection(node), self.expansions(node));
        let end = self.span(node).end;
        let pipeline = list.last_mut();
        if let Some(command) = pipeline.stages.last_mut() {
            command.redirects.push(redirect);
            command.expansions.extend(expansions);
            if node.kind() != "heredoc_redirect" {
                command.span.end = command.span.end.max(end);
                pipeline.span.end = pipeline.span.end.max(end);
            }
        }
        if node.kind() != "heredoc_redirect" {
            return;
        }
        let mut operator = Operator::And;
        for part in children(node) {
            match part.kind() {
                "&&" => operator = Operator::And,
                "||" => operator = Operator::Or,
                "pipeline" => pipe(list, self.pipeline(part, before)),
                kind if kind.ends_with("_redirect") => self.redirect(part, list, before),
                _ if is_statement(part) => {
                    let right = self.list(part, before);
                    list.rest.push((operator, right.first));
                    list.rest.extend(right.rest);
                }
                _ => {}
            }
        }
    }

    fn command(self, node: Node<'_>, before: &mut Vec<Statement>) -> Command {
        let kind = match node.kind() {
            "command" => return self.simple(node, before),
            "variable_assignment" | "variable_assignments" => Kind::Assignment,
            "declaration_command" => self.declaration(node),
            "unset_command" => {
                Kind::Simple(Simple { name: "unset".to_owned(), arguments: Vec::new(), handler: None })
            }
            "test_command" => Kind::Test,
            "compound_statement" if self.text(node).starts_with("((") => Kind::Test,
            "compound_statement" => Kind::Group(self.block(node)),
            "subshell" => Kind::Subshell(self.block(node)),
            "if_statement" => self.conditional(node),
            "while_statement" => self.repetition(node),
            "for_statement" | "c_style_for_statement" => Kind::For(self.body(node)),
            "case_statement" => {
                let items = children(node).into_iter().filter(|child| child.kind() == "case_item");
                Kind::Case(items.map(|item| self.case_item(item)).collect())
            }
            "function_definition" => return self.function(node),
            _ => Kind::Opaque,
        };
        let expansions = match kind {
            Kind::Group(_) | Kind::Subshell(_) | Kind::If { .. } | Kind::Loop { .. } => Vec::new(),
            // The words of `for x in …` and `case … in` only.
            _ => self.expansions(node),
        };
        self.command_of(node, kind, expansions)
    }

    fn command_of(self, node: Node<'_>, kind: Kind, expansions: Vec<Expansion>) -> Command {
        Command { kind, span: self.span(node), expansions, redirects: Vec::new() }
    }

    fn simple(self, node: Node<'_>, before: &mut Vec<Statement>) -> Command {
        let parts = children(node);
        let start = self.split_lines(&parts, before);
        let parts = &parts[start..];
        let mut words = Vec::new();
        let mut expansions = Vec::new();
        let mut redirects = Vec::new();
        let mut arguments = Vec::new();
        for part in parts {
            expansions.extend(self.expansions(*part));
            if part.kind().ends_with("_redirect") {
                redirects.push(self.redirection(*part));
            } else if part.kind() != "variable_assignment" {
                words.push(self.word(*part));
                arguments.push(*part);
            }
        }
        let mut words = words.into_iter();
        let name = words.next().and_then(|name| name.literal).unwrap_or_default();
        let handler = (name == "trap").then(|| self.handler(*arguments.get(1)?)).flatten();
        let first = parts.first().map_or(node, |first| *first);
        let span = Span { start: self.base + first.start_byte(), end: self.span(node).end };
        let kind = match name.as_str() {
            STAND_IN => Kind::Opaque,
            _ => Kind::Simple(Simple { name, arguments: words.collect(), handler }),
        };
        Command { kind, span, expansions, redirects }
    }

    /// Moves assignments that stand on earlier lines than the command into statements of their own.
    fn split_lines(self, parts: &[Node<'_>], before: &mut Vec<Statement>) -> usize {
        let mut start = 0;
        for (index, pair) in parts.windows(2).enumerate() {
            let [left, right] = pair else { continue };
            let between = self.source.get(left.end_byte()..right.start_byte()).unwrap_or_default();
            if left.kind() != "variable_assignment" || !between.replace("\\\n", "").contains('\n') {
                continue;
            }
            let (Some(first), Some(line)) = (parts.get(start), parts.get(start..=index)) else { continue };
            let command = Command {
                kind: Kind::Assignment,
                span: self.span(*first).to(self.span(*left)),
                expansions: line.iter().flat_map(|part| self.expansions(*part)).collect(),
                redirects: Vec::new(),
            };
            before.push(Statement { list: self.single(command), background: false });
            start = index + 1;
        }
        start
    }

    fn conditional(self, node: Node<'_>) -> Kind {
        let mut arms = vec![self.arm(node)];
        let mut otherwise = None;
        for part in children(node) {
            match part.kind() {
                "elif_clause" => arms.push(self.arm(part)),
                "else_clause" => otherwise = Some(self.block(part)),
                _ => {}
            }
        }
        Kind::If { arms, otherwise }
    }

    /// `[if|elif] condition then body`.
    fn arm(self, node: Node<'_>) -> (Block, Block) {
        let parts = children(node);
        let then = parts.iter().position(|part| part.kind() == "then").unwrap_or(parts.len());
        let (condition, body) = parts.split_at(then);
        (self.statements(condition.iter().copied()), self.statements(body.iter().copied()))
    }

    fn repetition(self, node: Node<'_>) -> Kind {
        let condition = children(node).into_iter().filter(|part| part.kind() != "do_group");
        Kind::Loop { condition: self.statements(condition), body: self.body(node) }
    }

    fn body(self, node: Node<'_>) -> Block {
        match node.child_by_field_name("body") {
            Some(body) => self.block(body),
            None => Block::default(),
        }
    }

    fn case_item(self, node: Node<'_>) -> Block {
        let parts = children(node);
        let open = parts.iter().position(|part| part.kind() == ")").map_or(0, |at| at + 1);
        self.statements(parts.into_iter().skip(open))
    }

    fn function(self, node: Node<'_>) -> Command {
        let name =
            node.child_by_field_name("name").map(|name| self.text(name).to_owned()).unwrap_or_default();
        let body = match node.child_by_field_name("body") {
            Some(body) => self.command(body, &mut Vec::new()),
            None => self.command_of(node, Kind::Opaque, Vec::new()),
        };
        self.command_of(node, Kind::Function { name, body: Box::new(body) }, Vec::new())
    }
}

/// Joins `left`'s last pipeline and `right`'s first.
fn pipe(left: &mut List, right: List) {
    let last = left.last_mut();
    last.span = last.span.to(right.first.span);
    last.stages.extend(right.first.stages);
    left.rest.extend(right.rest);
}
