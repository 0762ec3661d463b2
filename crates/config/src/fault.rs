//! What can be wrong with a configuration, as one line each.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// Something wrong within one value, before it is known which key and which file it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line in the file; 0 where it stands in none.
    pub line: usize,
    /// Where below the key: `.300`, `[2]`, or nothing.
    pub below: String,
    /// What is wrong and what to do.
    pub text: String,
}

impl Problem {
    /// A problem at a line.
    pub fn at(line: usize, text: impl Into<String>) -> Self {
        Self { line, below: String::new(), text: text.into() }
    }

    /// The same, seen from one step further out.
    #[must_use]
    pub fn under(mut self, step: &str) -> Self {
        self.below.insert_str(0, step);
        self
    }
}

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "origin", rename_all = "snake_case")]
pub enum Origin {
    /// On the command line.
    Flag {
        /// `--restart`.
        flag: &'static str,
    },
    /// In the environment.
    Env {
        /// `SEXTON_RESTART`.
        variable: String,
    },
    /// In a file.
    File {
        /// As it was given.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// It follows from something else.
    Derived {
        /// Why: `no command is given`.
        reason: &'static str,
    },
    /// By a preset.
    Preset {
        /// Its name.
        preset: &'static str,
    },
    /// Nowhere: it is what the program does by itself.
    Default,
}

/// As the end of a line of `config print`, and the beginning of a fault.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag { flag } => f.write_str(flag),
            Self::Env { variable } => f.write_str(variable),
            Self::File { path, line: 0 } => write!(f, "{}", path.display()),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Derived { reason } => f.write_str(reason),
            Self::Preset { preset } => write!(f, "preset {preset}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One fault, or one warning: `FILE:LINE: section.key: what, what to do`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Where.
    #[serde(flatten)]
    pub origin: Origin,
    /// `restart.codes.300`; empty where no key is meant.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// The one of `known` that `word` was probably meant to be.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let word = plain(word);
    let scored = known.into_iter().map(|name| (strsim::damerau_levenshtein(&word, &plain(name)), name));
    let (distance, name) = scored.min_by_key(|(distance, _)| *distance)?;
    // A third of its letters wrong: another word.
    (distance <= (name.chars().count() / 3).max(1)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_a_slip_of_the_finger_away_or_is_none() {
        let known = ["exit_timeout", "quiesce_timeout", "signal", "kill"];
        assert_eq!(nearest("exit-timeout", known), Some("exit_timeout"));
        assert_eq!(nearest("Exit_Timeuot", known), Some("exit_timeout"));
        assert_eq!(nearest("kil", known), Some("kill"));
        assert_eq!(nearest("patience", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
