//! `--color` and NO_COLOR.

use std::ffi::OsStr;
use std::io::IsTerminal;

/// When text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(super) enum Color {
    // On a terminal, where NO_COLOR is not set.
    #[default]
    Auto,
    // Also into a pipe or a file.
    Always,
    // Nowhere.
    Never,
}

impl Color {
    /// What the command line says, before it is parsed: help and errors of the parser are coloured too.
    pub(super) fn ahead(mut words: impl Iterator<Item = std::ffi::OsString>) -> Self {
        let named = |name: &OsStr| match name.to_str() {
            Some("always") => Self::Always,
            Some("never") => Self::Never,
            _ => Self::Auto,
        };
        let mut color = Self::Auto;
        while let Some(word) = words.next().filter(|word| word != "--") {
            if word == "--color" {
                color = words.next().map_or(Self::Auto, |name| named(&name));
            } else if let Some(name) = word.to_str().and_then(|word| word.strip_prefix("--color=")) {
                color = named(OsStr::new(name));
            }
        }
        color
    }

    /// For the parser. Its own automatic choice knows NO_COLOR and terminals.
    pub(super) fn of_clap(self) -> clap::ColorChoice {
        match self {
            Self::Auto => clap::ColorChoice::Auto,
            Self::Always => clap::ColorChoice::Always,
            Self::Never => clap::ColorChoice::Never,
        }
    }

    /// For what goes to `stream`.
    pub(super) fn paint(self, stream: &impl IsTerminal) -> Paint {
        let is_set = |name| std::env::var_os(name).is_some_and(|value: std::ffi::OsString| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Paint(match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => stream.is_terminal() && !is_set("NO_COLOR") && !dumb,
        })
    }
}

/// Colours text, or leaves it alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint(bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Headings.
    pub(super) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// What matters less.
    pub(super) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }
}

#[cfg(test)]
mod tests {
    use super::Color;

    #[test]
    fn the_last_word_on_colour_before_the_provers_own_counts() {
        let ahead = |words: &[&str]| Color::ahead(words.iter().map(Into::into));
        assert_eq!(ahead(&["run", "--color", "always"]), Color::Always);
        assert_eq!(ahead(&["--color=always", "status", "--color=never"]), Color::Never);
        assert_eq!(ahead(&["run", "--", "ls", "--color=always"]), Color::Auto);
        assert_eq!(ahead(&["run", "--color"]), Color::Auto);
    }
}
