//! The second half of [`super::lower`]: words, assignments, redirections, and what the shell expands in them.

use tree_sitter::Node;

use super::lower::{Lowering, children, is_statement};
use super::parse::{self, visit};
use super::syntax::{Assignment, Block, Declaration, Expansion, Kind, Redirect, Word};

/// Longest handler of a `trap` that is read, in bytes.
const MAX_HANDLER: usize = 4096;

impl Lowering<'_> {
    pub(super) fn word(self, node: Node<'_>) -> Word {
        let text = self.text(node).trim();
        let expanded = text.contains(['$', '`', '\\']);
        let bare = text.strip_prefix(['"', '\'']).and_then(|text| text.strip_suffix(['"', '\'']));
        let literal = match (bare, text.starts_with('\'')) {
            (Some(bare), true) => Some(bare.to_owned()),
            _ if expanded => None,
            (Some(bare), false) => Some(bare.to_owned()),
            (None, _) => Some(text.to_owned()),
        };
        Word { text: text.to_owned(), literal }
    }

    /// The commands in `trap`'s first argument. Between double quotes only where nothing is escaped; not those of a handler
    /// within a handler.
    pub(super) fn handler(self, node: Node<'_>) -> Option<Block> {
        let text = self.text(node);
        let quoted =
            matches!(node.kind(), "raw_string" | "string") && text.len() >= 2 && !text.contains('\\');
        if !quoted || self.in_handler || text.len() > MAX_HANDLER {
            return None;
        }
        let inner = text.get(1..text.len() - 1)?;
        let tree = parse::parse(inner).ok().filter(|tree| !tree.root_node().has_error())?;
        let base = self.base + node.start_byte() + 1;
        Some(Lowering { source: inner, base, in_handler: true }.block(tree.root_node()))
    }

    fn assignments(self, node: Node<'_>) -> Vec<Assignment> {
        let parts = children(node).into_iter().filter(|part| part.kind() == "variable_assignment");
        parts.map(|part| self.assignment(part)).collect()
    }

    fn assignment(self, node: Node<'_>) -> Assignment {
        let name =
            node.child_by_field_name("name").map(|name| self.text(name).to_owned()).unwrap_or_default();
        let mut assignment = Assignment { name, span: self.span(node), substitutes: false };
        // Only a look: nothing is lowered twice, or nested substitutions would double the work at each level.
        visit(node, |part, _| {
            assignment.substitutes |= part.kind() == "command_substitution";
            part.kind() != "command_substitution"
        });
        assignment
    }

    pub(super) fn declaration(self, node: Node<'_>) -> Kind {
        let parts = children(node);
        let keyword = parts.first().map(|first| self.text(*first).to_owned()).unwrap_or_default();
        let flags = parts.iter().map(|part| self.text(*part)).filter(|text| text.starts_with('-'));
        Kind::Declaration(Declaration {
            keyword,
            flags: flags.map(str::to_owned).collect(),
            assignments: self.assignments(node),
        })
    }

    pub(super) fn redirection(self, node: Node<'_>) -> Redirect {
        let text = self.text(node);
        let duplicates = text.contains(">&") || text.contains("<&");
        let harmless = node.kind() != "file_redirect"
            || ["/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty", "/dev/fd/"]
                .iter()
                .any(|at| text.contains(at))
            || (duplicates
                && text.ends_with(|last: char| last.is_ascii_digit() || last == '-' || last == '}'))
            || text.contains("&$");
        if harmless { Redirect::Harmless } else { Redirect::File }
    }

    /// What is expanded in the words below a node; commands below it are not entered, except as substitutions.
    pub(super) fn expansions(self, node: Node<'_>) -> Vec<Expansion> {
        let mut found = Vec::new();
        let mut dollar = node;
        visit(node, |part, depth| {
            match part.kind() {
                "command_substitution" => found.push(Expansion::Substitution(self.block(part))),
                "process_substitution" => found.push(Expansion::Process(self.block(part))),
                "simple_expansion" | "expansion" => {
                    dollar = part;
                    return true;
                }
                "special_variable_name" | "variable_name" => {
                    let within =
                        dollar.end_byte() >= part.end_byte() && dollar.start_byte() + 3 >= part.start_byte();
                    let span = self.span(if within && dollar != node { dollar } else { part });
                    match self.text(part) {
                        "?" => found.push(Expansion::Status(span)),
                        "!" => found.push(Expansion::LastJob),
                        "PIPESTATUS" => found.push(Expansion::PipeStatus(span)),
                        _ => {}
                    }
                }
                // Lowered as commands of their own.
                "do_group" | "case_item" => {}
                kind if depth > 0 && kind.ends_with("_redirect") => {}
                _ => return depth == 0 || !is_statement(part) || part.kind() == "variable_assignment",
            }
            false
        });
        found
    }
}
