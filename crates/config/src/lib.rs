//! `sexton.toml`, for every program of Sexton.
//!
//! A program declares what it reads with [`section!`] and [`document!`]: a key is written once, with its type, default,
//! documentation and environment variable. From that come the plain struct that the program uses, the reading with all
//! faults of a file at once, the page that shows each value and where it was set, the documented example, and what a
//! changed file changes.
//!
//! ```text
//! flags ─┐
//! environment ─┤
//! file ─┼─ Layer ─ load ─ Loaded { config, effective } ─ show
//! preset ─┘                └ or every Fault, one line each
//! ```
//!
//! | module | part |
//! |---|---|
//! | [`find`] | which file, and reading it |
//! | [`node`] | TOML with line numbers |
//! | [`setting`] | types of keys |
//! | [`declare`] | declarations of keys |
//! | [`layer`] | reading through layers |
//! | [`fault`] | what can be wrong |
//! | [`show`] | printing values, and the documented example |
//! | [`changes`] | what differs between two configurations |

pub mod changes;
pub mod declare;
pub mod fault;
pub mod find;
pub mod layer;
pub mod node;
mod nouns;
pub mod setting;
pub mod show;
mod unknown;

pub use declare::{Applies, Document, Key, Section, SectionInfo, Written};
pub use fault::{Fault, Origin, Problem};
pub use layer::{Contradiction, Effective, Layer, Loaded, Reader};
pub use node::{Node, Raw};
pub use setting::{Choice, Setting};
// The macros name its types.
pub use toml;

/// Every section of the file, of all programs. Each program passes over those of the others.
pub const SECTIONS: &[&str] = &[
    "prover",
    "restart",
    "ready",
    "watchdog",
    "stop",
    "memory",
    "cgroup",
    "log",
    "hook",
    "control",
    "engine",
    "memprobe",
    "deploy",
    "dashboard",
];
