//! What the scenarios share: finding our binaries, fixtures, cgroups of our own, waiting for conditions.
//!
//! Rules that keep the tests honest and the machine clean:
//! * wait for a condition with a deadline ([`wait_until`]), never for time;
//! * everything that a test makes is held by a guard that ends it, also when the test panics;
//! * a test that needs what this machine lacks prints `skipped: NAME: why` and passes ([`Skip`]).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test's helper fails the test, with a message that says what was missing"
)]

mod binaries;
mod cgroup;
pub mod deaths;
mod fixture;
mod folders;
mod gate;
mod observe;
mod own_processes;
mod running;
mod skip;
mod supervised;
mod wait;

pub use binaries::{binary, workspace_root};
pub use cgroup::V1Cgroup;
pub use fixture::{DEADLINE, Fixture, fixture_path};
pub use folders::SupervisorFolders;
pub use gate::Gate;
pub use observe::{observe, read_process};
pub use own_processes::OwnProcesses;
pub use running::{Ended, Running};
pub use skip::{OrSkip, Skip};
pub use supervised::Supervised;
pub use wait::{wait_for, wait_until};
