//! `prover`: makes keys and proofs, verifies proofs, serves proofs over HTTP.

use std::process::ExitCode;

use clap::Parser;
use sexton_prover::command::Cli;

fn main() -> ExitCode {
    sexton_prover::command::run(Cli::parse())
}
