//! The grammar's tree, within bounds.
//!
//! The parser never fails: what it cannot read becomes an error node, and it goes on. It never recurses either, but those
//! who walk the tree do, so its depth is bounded here, once.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

/// Deepest tree that is walked. Ordinary scripts stay below 60; generated `configure` scripts below 100.
const MAX_DEPTH: usize = 300;
/// Longest time for one tree. Ordinary scripts take a millisecond; a few hostile ones take time by the square of their
/// length, in steps of growing cost: counting steps bounds nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoTree {
    TooDeep,
    TooLong,
}

impl NoTree {
    /// For a message.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::TooDeep => "nested too deeply to be read",
            Self::TooLong => "too intricate to be read",
        }
    }
}

/// Parses a text; gives up after [`PATIENCE`], between two steps.
pub(super) fn parse(source: &str) -> Result<Tree, NoTree> {
    let mut parser = Parser::new();
    // Fails only for a grammar of another generation of the library: a test would have seen it.
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|_| NoTree::TooLong)?;
    let start = Instant::now();
    let mut patience = |_: &ParseState| match start.elapsed() < PATIENCE {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let mut text = |at: usize, _| source.as_bytes().get(at..).unwrap_or_default();
    let options = ParseOptions::new().progress_callback(&mut patience);
    let tree = parser.parse_with_options(&mut text, None, Some(options)).ok_or(NoTree::TooLong)?;
    if depth(&tree) > MAX_DEPTH { Err(NoTree::TooDeep) } else { Ok(tree) }
}

/// Visits all nodes in the order of the text, without recursion. `enter` says whether to go below a node.
pub(super) fn visit<'tree>(root: Node<'tree>, mut enter: impl FnMut(Node<'tree>, usize) -> bool) {
    let mut cursor = root.walk();
    let mut depth = 0;
    loop {
        if enter(cursor.node(), depth) && cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
            depth -= 1;
        }
    }
}

fn depth(tree: &Tree) -> usize {
    let mut deepest = 0;
    visit(tree.root_node(), |_, depth| {
        deepest = deepest.max(depth);
        deepest <= MAX_DEPTH
    });
    deepest
}

/// The first place where the grammar lost its way.
///
/// Not: an oddity within one word of one line. Where words end is clear all the same, and the grammar does not know all of
/// `${…}`.
pub(super) fn first_error(tree: &Tree) -> Option<usize> {
    let mut first = None;
    // Depth of the word that is being visited.
    let mut word = None;
    visit(tree.root_node(), |node, depth| {
        if first.is_some() || !node.has_error() {
            return false;
        }
        if word.is_some_and(|word| depth <= word) {
            word = None;
        }
        if node.is_error() || node.is_missing() {
            let one_line = node.start_position().row == node.end_position().row;
            if word.is_none() || !one_line {
                first = Some(lost_at(node));
            }
            return false;
        }
        let is_word =
            matches!(node.kind(), "expansion" | "simple_expansion" | "string" | "arithmetic_expansion");
        if is_word && word.is_none() {
            word = Some(depth);
        }
        // A substitution in a word holds commands again.
        if node.kind() == "command_substitution" {
            word = None;
        }
        true
    });
    first
}

/// Where within an error the trouble starts: an error node may begin with statements that are fine.
fn lost_at(error: Node<'_>) -> usize {
    let fine = |child: &Node<'_>| {
        (child.is_named() && !child.has_error()) || matches!(child.kind(), ";" | "&" | "\n" | ";;")
    };
    let trouble = error.children(&mut error.walk()).find(|child| !fine(child));
    trouble.map_or(error.start_byte(), |child| child.start_byte())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_found_where_it_is() {
        let at = |source: &str| first_error(&parse(source).unwrap());
        assert_eq!(at("a; b\nif c; then d; fi\n"), None);
        assert!(at("a; b\nif c; then )\n").is_some_and(|at| at >= 5));
    }

    #[test]
    fn an_oddity_in_one_word_is_none() {
        assert_eq!(first_error(&parse("while x=\"${arg:$i:1}\"; do a; done\n").unwrap()), None);
    }

    #[test]
    fn depth_and_work_are_bounded() {
        assert_eq!(
            parse(&format!("{}a{}", "(".repeat(5000), ")".repeat(5000))).unwrap_err(),
            NoTree::TooDeep
        );
    }
}
