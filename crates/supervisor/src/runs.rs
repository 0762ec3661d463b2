//! The state folder's `runs/`: a folder per run, from its record before the start to its exit record.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use sexton_control::supervisor::RunEntry;
use sexton_model::Timestamp;
use sexton_model::exit::{ExitRecord, LAST_WORDS_BYTES};
use sexton_model::run::RunRecord;

use crate::keeper::wait_file::WaitRecord;
use crate::rotated;

/// A file of a run that cannot be read as what it should be.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Not readable.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not writable.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Readable, and not what it should be.
    #[error("{} is damaged: {source}", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// Where.
        source: serde_json::Error,
    },
    /// No such run.
    #[error("there is no run \"{0}\": `supervisor runs` lists them")]
    NoSuchRun(String),
    /// Several runs begin so.
    #[error("\"{0}\" is the beginning of more than one run: give more of it")]
    Ambiguous(String),
}

/// The folder of one run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunDir(PathBuf);

impl RunDir {
    /// The folder of `run_id` below `runs`.
    pub fn new(runs: &Path, run_id: &str) -> Self {
        Self(runs.join(run_id))
    }

    /// The run whose folder is `path`.
    pub fn from_path(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The run's id: the folder's name.
    pub fn run_id(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What was known at the start.
    pub fn run_file(&self) -> PathBuf {
        self.0.join("run.json")
    }

    /// The wait status, as the reaper wrote it.
    pub fn wait_file(&self) -> PathBuf {
        self.0.join("wait.json")
    }

    /// The wait status while it is prepared only: see [`crate::keeper::wait_file::WaitFile`].
    pub fn prepared_wait_file(&self) -> PathBuf {
        self.0.join("wait.json.tmp")
    }

    /// The exit record.
    pub fn exit_file(&self) -> PathBuf {
        self.0.join("exit.json")
    }

    /// Counters as they stood at the death ([`crate::keeper::evidence`]).
    pub fn evidence_file(&self) -> PathBuf {
        self.0.join("evidence.bin")
    }

    /// What was tracked while it lived ([`crate::daemon::tracking`]).
    pub fn tracking_file(&self) -> PathBuf {
        self.0.join("tracking.json")
    }

    /// Everything that the judgement rested on, for a later one.
    pub fn facts_file(&self) -> PathBuf {
        self.0.join("facts.json")
    }

    /// What the prover wrote last, byte for byte; [`rotated`] reads what came before it too.
    pub fn output_file(&self) -> PathBuf {
        self.0.join("output.log")
    }

    /// Where it writes.
    pub fn fifo(&self) -> PathBuf {
        self.0.join("output.fifo")
    }

    /// What was known at the start; `None` where that was never recorded.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn record(&self) -> Result<Option<RunRecord>, RunError> {
        read_json(self.run_file())
    }

    /// The wait status; `None` where nobody has written it.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn wait_record(&self) -> Result<Option<WaitRecord<'static>>, RunError> {
        read_json(self.wait_file())
    }

    /// The exit record; `None` where the run lives, or nobody has judged it yet.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn exit_record(&self) -> Result<Option<ExitRecord>, RunError> {
        read_json(self.exit_file())
    }

    /// The last [`LAST_WORDS_BYTES`] of the output, and whether there was more.
    ///
    /// # Errors
    /// Where the log cannot be read.
    pub fn last_words(&self) -> io::Result<(String, bool)> {
        let (bytes, total) = rotated::tail(&self.output_file(), LAST_WORDS_BYTES as u64)?;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), total > LAST_WORDS_BYTES as u64))
    }
}

/// All runs below `runs`, oldest first. A folder that is not there holds none; what has no run's name there is none.
///
/// # Errors
/// Where the folder cannot be listed.
pub fn list(runs: &Path) -> Result<Vec<RunDir>, RunError> {
    let failed = |source| RunError::Read { path: runs.to_owned(), source };
    let entries = match fs::read_dir(runs) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let dir = RunDir(entry.map_err(failed)?.path());
        if is_id(&dir.run_id()) {
            found.push(dir);
        }
    }
    // The ids begin with the time.
    found.sort();
    Ok(found)
}

/// The run whose id is `wanted` or is the only one to begin so.
///
/// # Errors
/// [`RunError::NoSuchRun`], [`RunError::Ambiguous`].
pub fn find(runs: &Path, wanted: &str) -> Result<RunDir, RunError> {
    let mut candidates = list(runs)?.into_iter().filter(|dir| dir.run_id().starts_with(wanted));
    match (candidates.next(), candidates.next()) {
        (None, _) => Err(RunError::NoSuchRun(wanted.to_owned())),
        (Some(dir), None) => Ok(dir),
        (Some(first), Some(_)) if first.run_id() == wanted => Ok(first),
        _ => Err(RunError::Ambiguous(wanted.to_owned())),
    }
}

/// Runs as the control socket and `supervisor runs` show them.
#[derive(Debug, Default)]
pub struct Newest {
    /// Newest first.
    pub entries: Vec<RunEntry>,
    /// What is there and cannot be read.
    pub unreadable: Vec<RunError>,
}

/// How much of each run is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// All of it.
    Whole,
    /// What fits into a list: no last words, no evidence.
    Listed,
}

/// The newest `most` runs, whole. A folder without a record is a start that was cut off before anything ran: it is no run.
///
/// # Errors
/// Where the folder cannot be listed.
pub fn newest(runs: &Path, most: usize) -> Result<Newest, RunError> {
    newest_in(runs, most, Detail::Whole)
}

/// As [`newest`], in the `detail` that is wanted; no more than that is held of all but one at a time.
///
/// # Errors
/// As [`newest`].
pub fn newest_in(runs: &Path, most: usize, detail: Detail) -> Result<Newest, RunError> {
    let mut newest = Newest::default();
    for dir in list(runs)?.into_iter().rev() {
        if newest.entries.len() == most {
            break;
        }
        match entry(&dir) {
            Ok(entry) => newest.entries.extend(entry.map(|entry| cut(entry, detail))),
            Err(error) => newest.unreadable.push(error),
        }
    }
    Ok(newest)
}

fn cut(mut entry: RunEntry, detail: Detail) -> RunEntry {
    if let Some(exit) = entry.exit.as_mut().filter(|_| detail == Detail::Listed) {
        exit.last_words = String::new();
        exit.evidence = Vec::new();
    }
    entry
}

/// One run with its ending.
///
/// # Errors
/// [`RunError`].
pub fn entry(dir: &RunDir) -> Result<Option<RunEntry>, RunError> {
    Ok(match dir.record()? {
        Some(run) => Some(RunEntry { run, exit: dir.exit_record()? }),
        None => None,
    })
}

/// A new id: the time to the millisecond, then what makes it unique among the runs of one supervisor's life.
pub fn new_id(now: Timestamp, serial: u32) -> String {
    format!("{}-{serial:04}", now.strftime("%Y%m%dT%H%M%S.%3fZ"))
}

/// Whether `name` is what [`new_id`] makes.
pub(crate) fn is_id(name: &str) -> bool {
    const FORM: &[u8] = b"00000000T000000.000Z-0000";
    let digit_or =
        |(byte, form): (u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
    let (head, tail) = name.as_bytes().split_at(FORM.len().min(name.len()));
    head.len() == FORM.len()
        && head.iter().copied().zip(FORM).all(digit_or)
        && tail.iter().all(u8::is_ascii_digit)
}

pub(crate) fn read_json<T: DeserializeOwned>(path: PathBuf) -> Result<Option<T>, RunError> {
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(RunError::Read { path, source }),
        Ok(bytes) => bytes,
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|source| RunError::Decode { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_the_end_of_the_output_and_may_cut_a_character() {
        let folder = tempfile::tempdir().unwrap();
        let dir = RunDir::new(folder.path(), "r");
        fs::create_dir(dir.path()).unwrap();
        fs::write(dir.output_file(), "no newline").unwrap();
        assert_eq!(dir.last_words().unwrap(), ("no newline".to_owned(), false));
        fs::write(dir.output_file(), "é".repeat(LAST_WORDS_BYTES / 2) + "x").unwrap();
        let (words, truncated) = dir.last_words().unwrap();
        assert!(truncated && words.starts_with('\u{fffd}') && words.ends_with("éx"));
    }

    #[test]
    fn a_run_is_found_by_the_beginning_of_its_id() {
        let folder = tempfile::tempdir().unwrap();
        for id in ["20260101T000000.000Z-0001", "20260101T000000.000Z-0002", "20260101T000000.000Z-00021"] {
            fs::create_dir(folder.path().join(id)).unwrap();
        }
        let found = |wanted| find(folder.path(), wanted).map(|dir| dir.run_id());
        assert_eq!(found("20260101T000000.000Z-0001").unwrap(), "20260101T000000.000Z-0001");
        assert_eq!(found("20260101T000000.000Z-0002").unwrap(), "20260101T000000.000Z-0002");
        assert!(matches!(found("2026"), Err(RunError::Ambiguous(_))));
        assert!(matches!(found("2027"), Err(RunError::NoSuchRun(_))));
    }

    #[test]
    fn only_what_has_a_runs_name_is_a_run() {
        assert!(is_id(&new_id(Timestamp::now(), 1)) && is_id(&new_id(Timestamp::now(), 123_456)));
        for other in [
            "",
            "lost+found",
            "20260101T000000.000Z-",
            "20260101T000000.000Z-0001.bak",
            "Ü0260101T000000.000Z-0001",
        ] {
            assert!(!is_id(other), "{other}");
        }
    }
}
