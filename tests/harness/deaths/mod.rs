//! The matrix of real deaths: every way to die, under every condition that bears on what can be known of it.
//!
//! [`table`] says what each cell must come to, [`act`] brings a death about, [`cell`] runs one and compares, [`tally`]
//! counts. [`mass`] is the same question asked a thousand times, and [`latency`] how long an answer takes.

mod act;
mod cell;
mod condition;
mod death;
pub mod latency;
mod many;
pub mod mass;
mod stage;
mod table;
mod tally;

pub use cell::{Cell, Outcome};
pub use condition::{Company, KernelLog};
pub use death::Death;
pub use many::run_all;
pub use table::{Expected, Sight, excluded, expected};
pub use tally::Tally;

use std::time::Duration;

/// For anything that a cell waits for: twenty supervisors may begin and end at once on two cores.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Memory limit of a cgroup in which somebody is to be killed. A supervisor and its keeper need less than half.
pub const LIMIT_BYTES: u64 = 64 << 20;

/// What is taken there.
pub const MEAL_MIB: usize = 200;
