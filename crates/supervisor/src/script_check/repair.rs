//! Reads on where the grammar knows less than the shell.
//!
//! One script in twenty holds a line that is good bash and that the grammar does not know: `for i do`, a quoted piece of a
//! regular expression behind `=~`, `((` for two subshells. Such a line is replaced by a stand-in of the same length where
//! that makes the whole script readable; what the line does is then unknown, and it is named in the report.

use std::ops::Range;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tree_sitter::Tree;

use super::parse::{self, NoTree, visit};

/// The command that stands for a line: never the name of a program.
pub(super) const STAND_IN: &str = "_";
/// What may stand for a line: a command, or a pattern of a `case`.
const STAND_INS: [&str; 2] = [STAND_IN, "*)"];
/// With more lines than that the script is for another shell, or broken.
const MAX_LINES: usize = 4;
/// Lines tried, for each one that is replaced.
const MAX_TRIED: usize = 24;
/// Larger scripts are not repaired: each try is a whole parse.
const MAX_BYTES: usize = 64 << 10;
/// Longest time for everything.
const GIVE_UP: Duration = Duration::from_secs(10);
/// Time for all tries.
const PATIENCE: Duration = Duration::from_secs(2);

/// A tree with the text that it was made from.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) tree: Tree,
    /// As long as the script, and equal to it but for the lines skipped.
    pub(super) text: String,
    /// From 1, in order.
    pub(super) skipped: Vec<usize>,
}

/// Parses a script of any size in bounded time, without some lines if need be. With errors still in the tree, nothing is
/// skipped.
///
/// Recovering from an error at the end of a very long pipeline is one single step of the parser, which nothing can
/// interrupt: so it has a thread, which is left behind in that case.
pub(super) fn parse_in_time(script: &str) -> Result<Parsed, NoTree> {
    let text = script.to_owned();
    let (send, receive) = mpsc::sync_channel(1);
    let parser = move || {
        let _ = send.send(parse(text));
    };
    thread::Builder::new().name("parser".to_owned()).spawn(parser).map_err(|_| NoTree::TooLong)?;
    receive.recv_timeout(GIVE_UP).unwrap_or(Err(NoTree::TooLong))
}

fn parse(script: String) -> Result<Parsed, NoTree> {
    let tree = parse::parse(&script)?;
    let unread = Parsed { tree, text: script, skipped: Vec::new() };
    if parse::first_error(&unread.tree).is_none() || unread.text.len() > MAX_BYTES {
        return Ok(unread);
    }
    Ok(repaired(&unread).unwrap_or(unread))
}

fn repaired(unread: &Parsed) -> Option<Parsed> {
    let start = Instant::now();
    let mut best = Parsed { tree: unread.tree.clone(), text: unread.text.clone(), skipped: Vec::new() };
    while parse::first_error(&best.tree).is_some() {
        if best.skipped.len() == MAX_LINES {
            return None;
        }
        best = better(&best, start)?;
    }
    best.skipped.sort_unstable();
    Some(best)
}

/// With the one line replaced whose absence leaves the least unread.
fn better(parsed: &Parsed, start: Instant) -> Option<Parsed> {
    let (mut least, rows) = errors(&parsed.tree);
    let mut best = None;
    for row in rows.into_iter().take(MAX_TRIED) {
        for stand_in in STAND_INS {
            if start.elapsed() > PATIENCE {
                return None;
            }
            let Some(text) = replaced(&parsed.text, row, stand_in) else { continue };
            let Ok(tree) = parse::parse(&text) else { continue };
            let (unread, _) = errors(&tree);
            if unread < least && leaves_its_end(parsed, row, &text, &tree) {
                least = unread;
                let skipped = parsed.skipped.iter().copied().chain([row + 1]).collect();
                best = Some(Parsed { tree, text, skipped });
            }
        }
    }
    best
}

/// Whether the end of what a line begins is still there, as in `for i do` … `done`. Where it is not, the line is fine, and the
/// script has no end: nothing to be passed over.
fn leaves_its_end(parsed: &Parsed, row: usize, text: &str, tree: &Tree) -> bool {
    let line = line(&parsed.text, row).and_then(|line| parsed.text.get(line)).unwrap_or_default();
    let words = || line.split([' ', '\t', ';']).filter(|word| !word.is_empty());
    let end = match (words().next(), words().next_back()) {
        (Some("if"), _) => "fi",
        (Some("for" | "while" | "until" | "select"), _) => "done",
        (Some("case"), _) => "esac",
        (_, Some("{")) => "}",
        _ => return true,
    };
    let mut left = words().any(|word| word == end);
    visit(tree.root_node(), |node, _| {
        let names = node.kind() == "command_name" && node.start_position().row > row;
        left |= names && text.get(node.byte_range()) == Some(end);
        !left
    });
    left
}

/// How many lines are in error nodes, and the first and last row of each.
fn errors(tree: &Tree) -> (usize, Vec<usize>) {
    let mut rows = Vec::new();
    let mut lines = 0;
    visit(tree.root_node(), |node, _| {
        if node.is_error() || node.is_missing() {
            let (first, last) = (node.start_position().row, node.end_position().row);
            lines += 1 + last - first;
            rows.extend([first, last]);
        }
        node.has_error()
    });
    rows.sort_unstable();
    rows.dedup();
    (lines, rows)
}

fn replaced(text: &str, row: usize, stand_in: &str) -> Option<String> {
    let Range { start, end } = line(text, row)?;
    let blanks = (end - start).checked_sub(stand_in.len())?;
    Some(format!("{}{stand_in}{}{}", text.get(..start)?, " ".repeat(blanks), text.get(end..)?))
}

fn line(text: &str, row: usize) -> Option<Range<usize>> {
    let start = match row {
        0 => 0,
        _ => text.match_indices('\n').nth(row - 1)?.0 + 1,
    };
    let length = text.get(start..)?.find('\n').unwrap_or(text.len() - start);
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(script: &str) -> Option<Vec<usize>> {
        let parsed = parse(script.to_owned()).unwrap();
        assert_eq!(parsed.text.len(), script.len());
        parse::first_error(&parsed.tree).is_none().then_some(parsed.skipped)
    }

    #[test]
    fn a_line_that_the_grammar_does_not_know_is_skipped() {
        assert_eq!(skipped("a\nfor i do\n  b\ndone\nc\n"), Some(vec![2]));
        assert_eq!(
            skipped("[[ $x =~ \\\"$1\\\"[[:space:]]*:(\\\"([^\\\"]*)\\\"|[^,}]+) ]] || b\nc\n"),
            Some(vec![1])
        );
    }

    #[test]
    fn nothing_is_skipped_in_what_is_read() {
        assert_eq!(skipped("if a; then b; fi\n"), Some(vec![]));
    }

    #[test]
    fn what_has_no_end_is_not_repaired() {
        assert_eq!(skipped("a\nif b; then\n  c\n"), None);
        assert_eq!(skipped("f() {\n  a\nb\n"), None);
    }
}
