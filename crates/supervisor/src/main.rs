//! `supervisor`, and under the name `sexton-keeper` its keeper.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().next() {
        // Before anything else is set up: the keeper stays small.
        Some(name) if name == sexton_supervisor::keeper::ARGV0 => sexton_supervisor::keeper::main(),
        _ => sexton_supervisor::command::main(),
    }
}
