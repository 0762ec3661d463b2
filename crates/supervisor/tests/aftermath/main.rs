//! Before a death and after it, with the real program: doctor, events, metrics, bundles and what is judged of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's helper fails the test")]

mod bundles;
mod doctor;
mod events;
mod hostile_bundles;
mod metrics;
mod runbook;
mod stage;
