//! `wait.json`: the wait status of a run, durable before the process is reaped.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sexton_model::SCHEMA_VERSION;
use sexton_model::wait::WaitStatus;
use sexton_process::{Ended, Stage};

use crate::runs::RunDir;

/// Room for a record, bytes. The longest one is below a third of it.
pub const RECORD_BYTES: usize = 1024;

/// Why the program never ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartError {
    /// [`Stage`] as its number.
    pub stage: u8,
    /// The kernel's answer.
    pub errno: i32,
}

impl StartError {
    /// From the step that failed.
    pub fn new(stage: Stage, errno: i32) -> Self {
        Self { stage: stage as u8, errno }
    }
}

/// `wait.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitRecord<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The run.
    pub run_id: Cow<'a, str>,
    /// Its PID.
    pub pid: i32,
    /// When its end was seen: nanoseconds since 1970.
    pub ended_at_unix_ns: u64,
    /// How it ended.
    pub wait: WaitStatus,
    /// CPU time in user mode, µs. `null` where it was not our child.
    pub user_us: Option<u64>,
    /// CPU time in the kernel, µs.
    pub system_us: Option<u64>,
    /// Largest resident set of any one process.
    pub max_rss_bytes: Option<u64>,
    /// Present when the program never ran.
    pub start_error: Option<StartError>,
    /// Output that the log file would not take (a full disk), bytes.
    pub output_dropped_bytes: u64,
    /// Output that was removed with the oldest files of its log, bytes.
    #[serde(default)]
    pub output_removed_bytes: u64,
}

impl<'a> WaitRecord<'a> {
    /// The record of `ended`, seen now.
    pub fn new(run_id: &'a str, pid: i32, ended: Option<Ended>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let usage = ended.map(|ended| ended.usage);
        Self {
            schema_version: SCHEMA_VERSION,
            run_id: Cow::Borrowed(run_id),
            pid,
            ended_at_unix_ns: now.as_nanos() as u64,
            wait: ended.map_or(WaitStatus::UNKNOWN, |ended| ended.status),
            user_us: usage.map(|usage| usage.user.as_micros() as u64),
            system_us: usage.map(|usage| usage.system.as_micros() as u64),
            max_rss_bytes: usage.map(|usage| usage.max_rss_bytes),
            start_error: None,
            output_dropped_bytes: 0,
            output_removed_bytes: 0,
        }
    }
}

/// A `wait.json` that is written beforehand and only filled in at the end, so that neither a full disk nor a lack of
/// memory can lose a status: its block is allocated, its folder is open, and nothing is allocated to write it.
#[derive(Debug)]
pub struct WaitFile {
    file: File,
    folder: File,
    temporary: PathBuf,
    path: PathBuf,
}

impl WaitFile {
    /// Prepares the file in the run's folder.
    ///
    /// # Errors
    /// The file system's.
    pub fn prepare(folder: &Path) -> io::Result<Self> {
        let dir = RunDir::from_path(folder);
        let temporary = dir.prepared_wait_file();
        let mut file = File::create(&temporary)?;
        file.write_all(&[b' '; RECORD_BYTES])?;
        file.sync_all()?;
        Ok(Self { file, folder: File::open(folder)?, temporary, path: dir.wait_file() })
    }

    /// Fills it in and gives it its name, durably.
    ///
    /// # Errors
    /// The file system's. It may be tried again.
    pub fn write(&self, record: &[u8]) -> io::Result<()> {
        self.file.write_all_at(record, 0)?;
        self.file.sync_data()?;
        fs::rename(&self.temporary, &self.path)?;
        self.folder.sync_all()
    }
}

/// `record` as JSON in `buffer`, without allocating.
///
/// # Errors
/// Where it does not fit.
pub fn format<'b>(record: &WaitRecord<'_>, buffer: &'b mut [u8; RECORD_BYTES]) -> io::Result<&'b [u8]> {
    let mut rest = &mut buffer[..];
    serde_json::to_writer(&mut rest, record)?;
    let length = RECORD_BYTES - rest.len();
    Ok(&buffer[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_record_fits_and_is_read_back_with_its_padding() {
        let folder = tempfile::tempdir().unwrap();
        let id = "9".repeat(64);
        let record = WaitRecord {
            schema_version: u32::MAX,
            run_id: Cow::Borrowed(&id),
            pid: i32::MIN,
            ended_at_unix_ns: u64::MAX,
            wait: WaitStatus::killed(64, true),
            user_us: Some(u64::MAX),
            system_us: Some(u64::MAX),
            max_rss_bytes: Some(u64::MAX),
            start_error: Some(StartError { stage: u8::MAX, errno: i32::MIN }),
            output_dropped_bytes: u64::MAX,
            output_removed_bytes: u64::MAX,
        };
        let mut buffer = [0; RECORD_BYTES];
        let bytes = format(&record, &mut buffer).unwrap();
        assert!(bytes.len() < RECORD_BYTES / 2);
        WaitFile::prepare(folder.path()).unwrap().write(bytes).unwrap();
        let read: WaitRecord =
            serde_json::from_slice(&fs::read(folder.path().join("wait.json")).unwrap()).unwrap();
        assert_eq!(read, record);
    }
}
