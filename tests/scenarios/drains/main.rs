//! Drains of real processes: who holds them and their memory, and when it is back (FACTS 2 and 6).
#![allow(clippy::panic, clippy::expect_used, reason = "helpers of tests fail the test")]

mod gate;
mod held;
mod outlived;
mod plain;
mod run;
