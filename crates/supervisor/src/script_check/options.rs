//! `set -o pipefail` and `set -e`, followed through the script.

use super::syntax::{Block, Command, Expansion, Kind, Simple, Statement};

/// An option of the shell at some point of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
    /// It depends on the way taken, or on a file that was sourced.
    Unknown,
}

/// The options that decide over lost exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) pipefail: Switch,
    pub(super) errexit: Switch,
}

impl From<bool> for Switch {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

impl Switch {
    fn join(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }
}

impl Options {
    /// Nothing known.
    pub(super) const UNKNOWN: Self = Self { pipefail: Switch::Unknown, errexit: Switch::Unknown };

    /// Where two ways meet.
    pub(super) fn join(self, other: Self) -> Self {
        Self { pipefail: self.pipefail.join(other.pipefail), errexit: self.errexit.join(other.errexit) }
    }

    /// After a command.
    pub(super) fn after(self, simple: &Simple) -> Self {
        match simple.name.as_str() {
            "set" => self.after_set(simple),
            "." | "source" if !brings_variables_only(simple) => Self {
                // A library may well say `set -euo pipefail`.
                pipefail: self.pipefail.join(Switch::On),
                errexit: self.errexit.join(Switch::On),
            },
            "eval" => Self::UNKNOWN,
            _ => self,
        }
    }

    fn after_set(mut self, set: &Simple) -> Self {
        let mut words = set.arguments.iter().map(|word| word.text.as_str());
        while let Some(word) = words.next() {
            let on = match word.chars().next() {
                Some('-') if word != "--" => true,
                Some('+') => false,
                Some('$') => return Self::UNKNOWN,
                // `set -- words`
                _ => break,
            };
            if word.contains('e') {
                self.errexit = on.into();
            }
            if word.ends_with('o') {
                match words.next() {
                    Some("pipefail") => self.pipefail = on.into(),
                    Some("errexit") => self.errexit = on.into(),
                    _ => {}
                }
            }
        }
        self
    }
}

/// Environment files, by their customary names.
fn brings_variables_only(source: &Simple) -> bool {
    let Some(file) = source.arguments.first() else { return true };
    let text = file.text.trim_matches('"');
    let name = text.rsplit('/').next().unwrap_or(text);
    let lower = name.to_ascii_lowercase();
    text.starts_with("/etc/default/")
        || text.starts_with("/etc/sysconfig/")
        || ["env", "activate", "profile", "bashrc", "rc", "os-release", ".conf", "setvars.sh", "config"]
            .iter()
            .any(|end| lower.ends_with(end) || lower.ends_with(&format!("{end}.sh")))
}

/// What a function may find when it is called: options that the script switches somewhere, whenever that is, are on for
/// certain only where nothing switches them off and they are on at the end of the script.
pub(super) fn on_call(script: &Block, start: Options, end: Options) -> Options {
    let mut seen = start;
    each_simple(script, &mut |simple| seen = seen.join(start.after(simple)));
    let settled = |start: Switch, seen: Switch, end: Switch| match (start, seen, end) {
        _ if start == seen => start,
        // Functions come first, the options after them, the calls last.
        (_, _, Switch::On) => Switch::On,
        _ => Switch::Unknown,
    };
    Options {
        pipefail: settled(start.pipefail, seen.pipefail, end.pipefail),
        errexit: settled(start.errexit, seen.errexit, end.errexit),
    }
}

/// Whether a command list says `set` to this shell.
pub(super) fn sets_options(command: &Command) -> bool {
    let mut sets = false;
    let mut look = |simple: &Simple| sets |= matches!(simple.name.as_str(), "set" | "." | "source" | "eval");
    each_in_command(command, &mut look);
    sets
}

/// Every simple command that runs in this shell or in a function of it: not those in subshells.
pub(super) fn each_simple(block: &Block, look: &mut impl FnMut(&Simple)) {
    for Statement { list, .. } in &block.statements {
        for pipeline in list.pipelines() {
            if let [command] = pipeline.stages.as_slice() {
                each_in_command(command, look);
            }
        }
    }
}

fn each_in_command(command: &Command, look: &mut impl FnMut(&Simple)) {
    match &command.kind {
        Kind::Simple(simple) => look(simple),
        Kind::Function { body, .. } => each_in_command(body, look),
        _ => blocks(command).into_iter().for_each(|block| each_simple(block, look)),
    }
}

/// The blocks of a compound command that run in the shell itself.
pub(super) fn blocks(command: &Command) -> Vec<&Block> {
    match &command.kind {
        Kind::Group(block) | Kind::For(block) => vec![block],
        Kind::If { arms, otherwise } => {
            arms.iter().flat_map(|(condition, body)| [condition, body]).chain(otherwise).collect()
        }
        Kind::Loop { condition, body } => vec![condition, body],
        Kind::Case(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

/// The blocks that run in a copy of the shell: `( … )`, `$( … )`, `<( … )`.
pub(super) fn subshells(command: &Command) -> Vec<&Block> {
    let own = match &command.kind {
        Kind::Subshell(block) => Some(block),
        _ => None,
    };
    let expanded = command.expansions.iter().filter_map(|expansion| match expansion {
        Expansion::Substitution(block) | Expansion::Process(block) => Some(block),
        _ => None,
    });
    own.into_iter().chain(expanded).collect()
}
