//! How results are printed.

use std::io::{self, Write};

use serde::Serialize;
use sexton_config::Fault;
use sexton_model::Timestamp;

use crate::terminal;

/// Prints one JSON document.
pub(super) fn json(value: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")
}

/// Prints one line of JSON as it is.
pub(super) fn json_line(line: &str) -> io::Result<()> {
    io::stdout().lock().write_all(format!("{line}\n").as_bytes())
}

/// Says what went wrong. It may hold a prover's words, as anything here.
pub(super) fn complaint(error: &impl std::fmt::Display) -> io::Result<()> {
    io::stderr().write_all(format!("supervisor: {}\n", terminal::calm(&error.to_string())).as_bytes())
}

/// Prints text, with nothing in it that steers a terminal.
pub(super) fn text(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(terminal::calm(text).as_bytes())
}

/// Prints text that was made harmless before it was coloured.
pub(super) fn painted(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}

/// Says what is wrong with a configuration, a line each, as compilers do: FILE:LINE: and the rest.
pub(super) fn faults(faults: &[Fault]) -> io::Result<()> {
    let lines: String = faults.iter().map(|fault| terminal::calm_line(&fault.to_string()) + "\n").collect();
    io::stderr().write_all(lines.as_bytes())
}

/// A wall-clock time to the second.
pub(super) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The program's name and its arguments, quoted where a shell would need it.
pub(super) fn command(words: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:@%+,^".contains(c))
    };
    let quote =
        |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let words = ["sh", "-c", "echo 'it'; exit 7", ""].map(str::to_owned);
        assert_eq!(super::command(&words), r#"sh -c 'echo '\''it'\''; exit 7' ''"#);
    }
}
