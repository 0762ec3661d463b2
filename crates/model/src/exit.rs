//! The exit record: what is written, once, when a run ends.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::verdict::{Evidence, Verdict};
use crate::wait::WaitStatus;

/// How much of a prover's output an exit record keeps, in bytes.
pub const LAST_WORDS_BYTES: usize = 64 * 1024;

/// What a run used, from `getrusage` at its reaping and from its cgroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// Largest resident set of any one process of the run. `null` where nobody reaped it.
    pub max_rss_bytes: Option<u64>,
    /// Largest charge of its cgroup, where that was its own.
    pub cgroup_peak_bytes: Option<u64>,
    /// CPU time in user mode, seconds.
    pub user_seconds: Option<f64>,
    /// CPU time in the kernel, seconds.
    pub system_seconds: Option<f64>,
}

/// A job that was on its way when the run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// Id of the job.
    pub id: String,
    /// Circuit it proves.
    pub circuit: String,
    /// Partitions of the job.
    pub partitions_total: u32,
    /// Partitions that were done.
    pub partitions_done: u32,
}

/// `exit.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The run that ended.
    pub run_id: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its PID; `null` when no process could be made.
    pub pid: Option<i32>,
    /// SHA-256 of the executable, lower-case hex; `null` where it could not be read.
    pub exe_sha256: Option<String>,
    /// When the process was made.
    pub started_at: Timestamp,
    /// When its end was seen (for a run that ended while nobody watched: when that was found).
    pub ended_at: Timestamp,
    /// From the one to the other, seconds.
    pub duration_seconds: f64,
    /// How it ended.
    pub wait: WaitStatus,
    /// Why.
    pub verdict: Verdict,
    /// What was looked at.
    pub evidence: Vec<Evidence>,
    /// What it used.
    pub resources: Resources,
    /// Jobs that were on their way.
    pub in_flight: Vec<InFlight>,
    /// Last [`LAST_WORDS_BYTES`] of its output, invalid UTF-8 replaced.
    pub last_words: String,
    /// Whether there was more output before.
    pub last_words_truncated: bool,
    /// Output that is in no file: the disk was full, or the log at its bound. Bytes; 0 in records of versions that did not
    /// tell.
    #[serde(default)]
    pub output_dropped_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_version_that_did_not_tell_of_lost_output_is_read() {
        let old = r#"{"schema_version":1,"run_id":"r","command":["true"],"pid":7,"exe_sha256":null,
            "started_at":"2026-01-01T00:00:00Z","ended_at":"2026-01-01T00:00:01Z","duration_seconds":1.0,
            "wait":{"kind":"exited","code":0,"signal":null,"core":false},
            "verdict":{"cause":"clean_exit","level":null,"confidence":"certain","summary":"it ended by itself"},
            "evidence":[],"resources":{"max_rss_bytes":null,"cgroup_peak_bytes":null,"user_seconds":null,
            "system_seconds":null},"in_flight":[],"last_words":"","last_words_truncated":false}"#;
        assert_eq!(serde_json::from_str::<ExitRecord>(old).unwrap().output_dropped_bytes, 0);
    }
}
