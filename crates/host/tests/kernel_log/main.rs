//! The kernel log: logs of real deaths and of hostile programs, the device with all its answers, and the real thing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod device;
mod logs;
mod properties;
mod real;

use std::io::Write;

use sexton_model::kernel::KernelFact;

/// Prints `skipped: NAME: why` for a test that cannot run here. Not with `eprintln!`: the test runner swallows the output
/// of tests that pass.
fn skipped(why: impl std::fmt::Display) {
    let thread = std::thread::current();
    let _ = writeln!(std::io::stderr(), "skipped: {}: {why}", thread.name().unwrap_or("?"));
}

/// The kind of a fact, as its JSON has it.
fn kind(fact: &KernelFact) -> String {
    serde_json::to_value(fact).unwrap()["kind"].as_str().unwrap().to_owned()
}
