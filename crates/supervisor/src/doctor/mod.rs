//! `supervisor doctor`: before any death, what could be known of one here, and what could not.
//!
//! | module | part |
//! |---|---|
//! | [`sight`] | reads what is to be seen, in bounded time |
//! | [`evidence`] | the sources that a verdict rests on |
//! | [`memory`] | what want of memory leads to on this host |
//! | [`abilities`] | what kernel, disk and clock offer the supervisor |
//!
//! The checks are pure: from a [`Sight`] to lines. Their ids are a contract (`--json`, alerts), their words are not.

pub mod abilities;
pub mod evidence;
pub mod memory;
pub mod sight;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use sexton_model::reading::Reading;
use sexton_model::{SCHEMA_VERSION, Timestamp};

pub use sight::Sight;

/// How bad a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// A verdict would be less sure, or something is slower or missing.
    Warn,
    /// Deaths would go unexplained, runs unrecorded, or the host itself is at risk.
    Fail,
}

impl Level {
    /// Exit code of `supervisor doctor`.
    pub fn exit_code(self) -> u8 {
        self as u8
    }
}

impl std::fmt::Display for Level {
    /// The JSON name.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its stable name.
    pub id: &'static str,
    /// How bad.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What to do about it; `null` where all is well.
    pub fix: Option<String>,
}

impl Check {
    fn ok(id: &'static str, found: impl Into<String>) -> Self {
        Self { id, level: Level::Ok, found: found.into(), fix: None }
    }

    fn warn(id: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id, level: Level::Warn, found: found.into(), fix: Some(fix.into()) }
    }

    fn fail(id: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id, level: Level::Fail, found: found.into(), fix: Some(fix.into()) }
    }
}

/// The JSON document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// When.
    pub at: Timestamp,
    /// Name of the supervised prover.
    pub name: String,
    /// Whose cgroup was looked at.
    pub subject: String,
    /// The worst of the lines.
    pub level: Level,
    /// The lines.
    pub checks: Vec<Check>,
}

impl Report {
    /// Judges what is to be seen.
    pub fn of(name: &str, sight: &Sight) -> Self {
        let checks = examine(sight);
        Self {
            schema_version: SCHEMA_VERSION,
            at: Timestamp::now(),
            name: name.to_owned(),
            subject: sight.subject.to_string(),
            level: checks.iter().map(|check| check.level).max().unwrap_or(Level::Ok),
            checks,
        }
    }

    /// The report as a page.
    pub fn page(&self) -> String {
        use std::fmt::Write;
        let mut page = String::new();
        for Check { id, level, found, fix } in &self.checks {
            // Writing to a string does not fail.
            let _ = writeln!(page, "{:<5} {id:<25} {found}", level.to_string());
            if let Some(fix) = fix {
                let _ = writeln!(page, "{:<31} fix: {fix}", "");
            }
        }
        let count = |level| self.checks.iter().filter(|check| check.level == level).count();
        let (ok, warn, fail) = (count(Level::Ok), count(Level::Warn), count(Level::Fail));
        let _ = writeln!(page, "\n{ok} ok, {warn} warnings, {fail} failures; looked at: {}", self.subject);
        page
    }
}

/// All checks, in the order in which they are shown.
pub fn examine(sight: &Sight) -> Vec<Check> {
    [evidence::checks(sight), memory::checks(sight), abilities::checks(sight)].concat()
}

/// How a reading without a value is told.
fn missing<T>(reading: &Reading<T>) -> String {
    match reading {
        Reading::Value(_) => "readable".to_owned(),
        Reading::Absent => "not offered by this kernel".to_owned(),
        Reading::Unreadable(obstacle) => obstacle.detail.clone(),
    }
}
