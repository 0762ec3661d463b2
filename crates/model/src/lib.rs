//! The nouns of Sexton: runs, exit records, verdicts, evidence, task readings, events, status pages.
//!
//! Plain data with serde and no I/O. Everything that crosses a border between two programs, or is written to a file
//! that a later version reads, is defined here, so that its JSON names are in one place.
//!
//! Flow of everything observed: reader (`host`) → **model** → `diagnosis` → record, metrics, screen, JSON.
//!
//! | module | noun |
//! |---|---|
//! | [`run`] | one life of a prover: its identity and what was known at its start |
//! | [`wait`] | how a process ended, exactly as `wait(2)` tells it |
//! | [`verdict`] | cause of death, confidence, and the evidence looked at |
//! | [`exit`] | the exit record: all of the above, as written when a run ends |
//! | [`event`] | one line of the journal |
//! | [`status`] | what the supervisor is doing now |
//! | [`cgroup`] | what the memory controller says about a process' cgroup and those above it |
//! | [`drain`] | the drain of a run: how far it is, who holds its memory, how long it will take |
//! | [`headroom`] | what a new process may take, and the limit that binds |
//! | [`gate`] | whether the next run may start |
//! | [`numa`], [`process_limits`] | other bounds of a process' memory |
//! | [`memory`] | what the kernel says about the memory of the whole host |
//! | [`baseline`] | the counters at the start of a run, and what they gained |
//! | [`kernel`] | what the kernel said: log records, facts in them, senders of signals |
//! | [`oomd`] | marks that systemd-oomd leaves |
//! | [`task`] | what `/proc` says about one process and its threads |
//! | [`process_state`] | what state a process is in, concluded from that |
//! | [`reading`] | one thing read: a value, absent, or unreadable with its reason |
//! | [`pipeline`] | what a prover says about its own work |
//! | [`units`] | sizes and durations, parsed and shown |

pub mod baseline;
pub mod cgroup;
pub mod drain;
pub mod event;
pub mod exit;
pub mod gate;
pub mod headroom;
pub mod kernel;
pub mod memory;
pub mod numa;
pub mod oomd;
pub mod pipeline;
pub mod process_limits;
pub mod process_state;
pub mod reading;
pub mod run;
pub mod status;
pub mod task;
pub mod units;
pub mod verdict;
pub mod wait;

/// Version of every JSON document defined in this crate. It rises when a name changes its meaning or goes away;
/// new names do not raise it, and readers ignore names that they do not know.
pub const SCHEMA_VERSION: u32 = 1;

/// A wall-clock instant in RFC 3339 with UTC offset `Z`.
pub type Timestamp = jiff::Timestamp;
