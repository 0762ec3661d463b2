//! What an operator's terminal is shown: text of others (a prover's output, names of threads) must not steer it.

use std::io::{self, Write};
use std::os::fd::AsFd;

use sexton_process::ready::is_writable;

/// A page: every control character but tab and newline is replaced.
pub fn calm(page: &str) -> String {
    replaced(page, &['\t', '\n'])
}

/// A line: as [`calm`], and nothing in it begins another one.
pub fn calm_line(line: &str) -> String {
    replaced(line, &['\t'])
}

fn replaced(text: &str, kept: &[char]) -> String {
    text.chars().map(|c| if c.is_control() && !kept.contains(&c) { '\u{fffd}' } else { c }).collect()
}

/// One line for whoever watches the terminal. One that nobody reads is dropped: it must neither block nor end the
/// supervisor.
pub fn say(text: &str) {
    let mut stderr = io::stderr();
    if is_writable(stderr.as_fd()) {
        // In one piece, and gone where the reader is.
        let _ = stderr.write_all(format!("supervisor: {}\n", calm_line(text)).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_replaced_and_text_is_not() {
        let hostile = "a\u{1b}]0;title\u{7}\u{9b}2J\r\tb\nü";
        assert_eq!(calm(hostile), "a\u{fffd}]0;title\u{fffd}\u{fffd}2J\u{fffd}\tb\nü");
        assert_eq!(calm_line("one\nsupervisor: two"), "one\u{fffd}supervisor: two");
    }
}
