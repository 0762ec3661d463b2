//! What the binary does, seen from outside: real processes, real sockets, real proofs of small circuits.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod asking;
mod cancelling;
mod command_line;
mod draining;
mod harness;
mod help;
mod outputs;
mod serving;
mod starting;
