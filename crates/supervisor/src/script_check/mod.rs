//! Finds in a shell script the forms that lose an exit code.
//!
//! A prover that died of signal 9 behind a wrapper that says `cmd | tee log` ends with 0, and every supervisor above the
//! wrapper believes it. Called by [`crate::command`] for `supervisor check`; a pure function from text to findings:
//!
//! ```text
//! text → parse → lower → walk → rules → findings
//! ```
//!
//! | module | part |
//! |---|---|
//! | `dialect` | which shell the script is for |
//! | `parse`, `repair` | the grammar's tree, within bounds |
//! | `lower`, `words`, `syntax` | a small tree of what matters |
//! | `flow`, `walk`, `transition`, `options` | whose status `$?` is at each place where it is used |
//! | `vocabulary` | programs whose status says something, and others |
//! | `rules` | one file a family |
//! | `allow` | comments that silence a rule |

mod allow;
mod dialect;
mod flow;
mod lower;
mod options;
mod parse;
mod repair;
mod rule;
mod rules;
mod syntax;
mod transition;
mod vocabulary;
mod walk;
mod words;

#[cfg(test)]
mod tests;

use serde::Serialize;

use repair::Parsed;
pub use rule::Rule;

/// Largest script that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Most findings that are reported for one script.
pub const MAX_FINDINGS: usize = 1000;
/// Longest source line that is quoted, in characters.
const MAX_TEXT: usize = 200;

/// A form that loses an exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Which rule.
    pub rule: Rule,
    /// The line, without its indentation.
    pub text: String,
    /// What the status really is.
    pub reason: String,
    /// A form that keeps the code, as shell text.
    pub fix: String,
}

/// Where reading stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Why.
    pub why: &'static str,
}

/// What was found in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// In the order of the text.
    pub findings: Vec<Finding>,
    /// Lines, from 1, that were not understood while all the others were.
    pub skipped: Vec<usize>,
    /// Set where the script could not be read to its end: there are no findings behind.
    pub unread: Option<Unread>,
}

/// Why a text was not looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAScript {
    /// It is larger than [`MAX_BYTES`].
    #[error("larger than 1 MiB: no script that is written by hand")]
    TooLarge,
    /// It holds NUL bytes.
    #[error("a binary file, not a shell script")]
    Binary,
    /// Its first line names another interpreter.
    #[error("a script for {0}, not for sh, bash or ksh")]
    OtherLanguage(String),
}

/// Looks for lost exit codes in a script for sh, bash or ksh.
///
/// Takes any bytes, and gives up on what takes longer than some seconds.
pub fn check(script: &[u8]) -> Result<Report, NotAScript> {
    if script.len() > MAX_BYTES {
        return Err(NotAScript::TooLarge);
    }
    if script.contains(&0) {
        return Err(NotAScript::Binary);
    }
    let text = String::from_utf8_lossy(script);
    let source = text.as_ref();
    let shebang = dialect::shebang(source)?;
    let Parsed { tree, text: read, skipped } = match repair::parse_in_time(source) {
        Ok(parsed) => parsed,
        Err(why) => {
            let unread = Unread { line: 1, column: 1, why: why.as_str() };
            return Ok(Report { findings: Vec::new(), skipped: Vec::new(), unread: Some(unread) });
        }
    };
    let script = lower::lower(&read, tree.root_node());
    let start = options::Options { pipefail: shebang.pipefail.into(), errexit: shebang.errexit.into() };
    let flow = walk::Walk::follow(&script, source, start);
    let allowed = allow::comments(&read, &tree);
    let error = parse::first_error(&tree);
    let mut found =
        rules::judge(&rules::Context { source, script: &script, flow: &flow, dialect: shebang.dialect });
    found.retain(|found| error.is_none_or(|error| found.at.end <= error));
    found.sort_by_key(|found| (found.at, found.rule));
    found.dedup_by_key(|found| (found.at, found.rule));
    let mut place = Place::default();
    let mut findings = Vec::new();
    for found in found {
        place.advance(source, found.at.start);
        let Place { line, column, .. } = place;
        if findings.len() < MAX_FINDINGS && !allow::covers(&allowed, line, found.rule) {
            let text = place.text(source);
            findings.push(Finding {
                line,
                column,
                rule: found.rule,
                text,
                reason: found.reason,
                fix: found.fix,
            });
        }
    }
    let unread = error.map(|error| {
        let mut place = Place::default();
        place.advance(source, error);
        Unread { line: place.line, column: place.column, why: "cannot read the script from here on" }
    });
    Ok(Report { findings, skipped, unread })
}

/// A place in the text that only moves forwards, so that a thousand findings in one long line take no longer than one.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: usize,
    line_start: usize,
    line: usize,
    column: usize,
}

impl Default for Place {
    fn default() -> Self {
        Self { at: 0, line_start: 0, line: 1, column: 1 }
    }
}

impl Place {
    fn advance(&mut self, source: &str, to: usize) {
        for (offset, letter) in source.get(self.at..to).unwrap_or_default().char_indices() {
            self.column += 1;
            if letter == '\n' {
                self.line += 1;
                self.column = 1;
                self.line_start = self.at + offset + 1;
            }
        }
        self.at = self.at.max(to);
    }

    /// The line, without its indentation and calm enough for a terminal.
    fn text(&self, source: &str) -> String {
        let line = source.get(self.line_start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let mut calm: String = line
            .trim_start()
            .chars()
            .take(MAX_TEXT)
            .map(|c| {
                if c == '\t' {
                    ' '
                } else if c.is_control() {
                    '\u{fffd}'
                } else {
                    c
                }
            })
            .collect();
        calm.truncate(calm.trim_end().len());
        if line.trim_start().chars().nth(MAX_TEXT).is_some() {
            calm.push('…');
        }
        calm
    }
}
