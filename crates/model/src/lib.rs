//! The nouns of Sexton: runs, exit records, verdicts, evidence, task readings, events, status pages.
//!
//! Plain data with serde and no I/O. Everything that crosses a border between two programs, or is written to a file
//! that a later version reads, is defined here, so that its JSON names are in one place.
//!
//! Flow of everything observed: reader (`host`) → **model** → `diagnosis` → record, metrics, screen, JSON.

pub mod pipeline;
pub mod task;
