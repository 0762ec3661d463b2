//! Drains: recorded ones replayed, and every rule by samples made for it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod estimates;
mod phases;
mod replay;
mod silences;
mod stage;
