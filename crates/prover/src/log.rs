//! What `prover serve` says while it runs: one line an event, on stderr.
//!
//! `2026-11-30T20:41:55.123456Z job_done id=a circuit=mimc-2^12 prove_us=281000`. Values that may hold blanks are
//! quoted as Rust strings. Private inputs never stand in it.

use std::fmt;
use std::io::Write;

use sexton_model::Timestamp;

/// Writes one event. `fields` is `name=value` pairs separated by blanks, or empty. A stderr that nobody reads any more
/// is no reason to stop proving, so failures are ignored.
pub fn event(name: &str, fields: fmt::Arguments<'_>) {
    let line = line(Timestamp::now(), name, fields);
    // One write, so that lines of several threads do not mix.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn line(at: Timestamp, name: &str, fields: fmt::Arguments<'_>) -> String {
    let line = format!("{at:.6} {name} {fields}").trim_end().replace('\n', " ");
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_with_microseconds() {
        let at = "2026-11-30T20:41:55.1234567Z".parse().unwrap();
        assert_eq!(line(at, "start", format_args!("pid={}", 7)), "2026-11-30T20:41:55.123456Z start pid=7\n");
        assert_eq!(line(at, "exit", format_args!("")), "2026-11-30T20:41:55.123456Z exit\n");
        assert_eq!(line(at, "x", format_args!("a\nb")).matches('\n').count(), 1);
    }
}
