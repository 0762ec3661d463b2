//! Supervisor and keeper with real processes: what they record, what they survive, what they obey.
//!
//! Every place (`Supervised`) is its own supervisor with its own folders, so the tests run side by side.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a step of a test fails the test")]

mod command_line;
mod cuzk;
mod documents;
mod environment;
mod exit_codes;
mod help;
mod memory;
mod output;
mod policy;
mod random_deaths;
mod readiness;
mod starts;
mod stopping;
mod survival;
mod trouble;

use sexton_tests::{DEADLINE, Supervised, wait_until};

/// Waits until the newest run has written `armed`: its signal dispositions are as its script wants them.
#[track_caller]
fn wait_until_armed(place: &Supervised) {
    wait_until(DEADLINE, "the trap", || {
        let log = place.runs().last().and_then(|run| std::fs::read(run.join("output.log")).ok());
        log.is_some_and(|log| log == b"armed\n")
    });
}

/// The words that run a shell script as the prover.
const fn sh(script: &str) -> [&str; 3] {
    ["sh", "-c", script]
}
