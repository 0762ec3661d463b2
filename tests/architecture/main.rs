//! The architecture, held against what Cargo and the sources say.
#![allow(clippy::unwrap_used, reason = "tests")]

mod dependencies;
mod memory_safety;
