//! `# sexton: allow RULE`, on the same line or the line before.

use tree_sitter::Tree;

use super::parse::visit;
use super::rule::Rule;

/// A comment that silences rules.
#[derive(Debug)]
pub(super) struct Allowed {
    line: usize,
    rules: Vec<String>,
}

/// All such comments. What looks like one within a string or a here-document is none.
pub(super) fn comments(source: &str, tree: &Tree) -> Vec<Allowed> {
    let mut found = Vec::new();
    visit(tree.root_node(), |node, _| {
        if node.kind() == "comment" {
            let text = source.get(node.byte_range()).unwrap_or_default();
            found.extend(rules(text).map(|rules| Allowed { line: node.start_position().row + 1, rules }));
        }
        true
    });
    found
}

fn rules(comment: &str) -> Option<Vec<String>> {
    let rest = comment.trim_start_matches('#').trim_start().strip_prefix("sexton:")?;
    let rest = rest.trim_start().strip_prefix("allow")?;
    // Behind the ids there may be a reason.
    let names = rest.split([' ', ',', '\t']).filter(|name| !name.is_empty());
    Some(
        names.take_while(|name| Rule::ALL.iter().any(|rule| rule.id() == *name)).map(str::to_owned).collect(),
    )
}

/// Whether a finding is silenced.
pub(super) fn covers(allowed: &[Allowed], line: usize, rule: Rule) -> bool {
    let near = |comment: &&Allowed| comment.line == line || comment.line + 1 == line;
    allowed.iter().filter(near).any(|comment| comment.rules.iter().any(|name| name == rule.id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_names_one_rule_or_several_and_may_give_a_reason() {
        assert_eq!(rules("# sexton: allow bare-wait"), Some(vec!["bare-wait".to_owned()]));
        assert_eq!(rules("#sexton: allow bare-wait, masked-status the log is all we want").unwrap().len(), 2);
        assert_eq!(rules("# bare-wait"), None);
    }
}
