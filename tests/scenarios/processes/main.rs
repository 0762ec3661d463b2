//! States of real processes (SCENARIOS, "Processes"): what `host` reads and `diagnosis` concludes while they live, die,
//! are held, and are over.
#![allow(clippy::panic, clippy::expect_used, reason = "helpers of tests fail the test")]

mod dying;
mod family;
mod held;
mod over;
