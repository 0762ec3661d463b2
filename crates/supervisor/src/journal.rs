//! `journal.ndjson`: what happened, a line an event, appended and never rewritten. At its bound the file is set aside as
//! `journal.ndjson.1`, in place of the one before it; numbers go on.
//!
//! Lines are not fsynced one by one: records are durable before they matter (`run.json` before the program runs,
//! `wait.json` before the reap), and a journal that costs a disk flush an event would delay every restart by it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sexton_model::event::{Event, EventKind};
use sexton_model::{SCHEMA_VERSION, Timestamp};

use crate::rotated;

/// Size at which it is set aside, bytes: some fifty thousand events. On disk are at most two files of it.
pub const SIZE_MAX: u64 = 16 << 20;

/// Where the last event of a file is looked for first, bytes from its end. Events have some hundred.
const LAST_LINES: u64 = 64 << 10;

/// The open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
    size_max: u64,
    next_seq: u64,
    /// A write failed in the middle of a line.
    torn: bool,
}

impl Journal {
    /// Opens or makes it. A last line without its end (a supervisor that was killed while it wrote) is closed first.
    ///
    /// # Errors
    /// The file system's.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, SIZE_MAX)
    }

    /// As [`Self::open`], with another bound than [`SIZE_MAX`].
    ///
    /// # Errors
    /// As there.
    pub fn open_with(path: &Path, size_max: u64) -> io::Result<Self> {
        let next_seq = last_seq(path)?.map_or(0, |seq| seq + 1);
        let file = append_to(path)?;
        let length = file.metadata()?.len();
        let torn = !ends_with_newline(path)?;
        Ok(Self { path: path.to_owned(), file, length, size_max, next_seq, torn })
    }

    /// Appends one event, in one write. It has happened, and has its number, also where it could not be written.
    pub fn append(
        &mut self,
        kind: EventKind,
        run_id: Option<&str>,
        details: Value,
    ) -> (Event, io::Result<()>) {
        let details = match details {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        let event = Event {
            schema_version: SCHEMA_VERSION,
            seq: self.next_seq,
            at: Timestamp::now(),
            kind,
            run_id: run_id.map(str::to_owned),
            details,
        };
        self.next_seq += 1;
        let written = self.write(&event);
        (event, written)
    }

    fn write(&mut self, event: &Event) -> io::Result<()> {
        let mut line = if self.torn { vec![b'\n'] } else { Vec::new() };
        serde_json::to_writer(&mut line, event)?;
        line.push(b'\n');
        if self.length > 0 && self.length + line.len() as u64 > self.size_max {
            // Where that fails the file grows on, and it is tried again at the next event.
            let _ = self.set_aside();
        }
        self.torn = true;
        self.file.write_all(&line)?;
        self.torn = false;
        self.length += line.len() as u64;
        Ok(())
    }

    /// A supervisor that is killed in between leaves no `journal.ndjson`; the next one makes it.
    fn set_aside(&mut self) -> io::Result<()> {
        fs::rename(&self.path, rotated::numbered(&self.path, 1))?;
        (self.file, self.length) = (append_to(&self.path)?, 0);
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path)
}

/// The number of the last event in the newest file that has one.
fn last_seq(path: &Path) -> io::Result<Option<u64>> {
    let (bytes, total) = match rotated::tail(path, LAST_LINES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let event = |line: &[u8]| serde_json::from_slice::<Event>(line).ok();
    let last = bytes.rsplit(|byte| *byte == b'\n').find_map(event);
    match last {
        Some(event) => Ok(Some(event.seq)),
        None if total > LAST_LINES => Ok(events(path)?.last().map(|event| event.seq)),
        None => Ok(None),
    }
}

fn ends_with_newline(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last == *b"\n")
}

/// The first `most` events from number `from` on, oldest first. Lines that are not events are passed over.
///
/// # Errors
/// Where a file is there and cannot be read.
pub fn read(path: &Path, from: u64, most: usize) -> io::Result<Vec<Event>> {
    Ok(events(path)?.filter(|event| event.seq >= from).take(most).collect())
}

/// All events one by one, oldest first: a journal may be larger than what we want in memory. Lines that are not events
/// are passed over; what cannot be read any more ends it.
///
/// # Errors
/// Where a file is there and cannot be opened.
pub fn events(path: &Path) -> io::Result<impl Iterator<Item = Event>> {
    let parts = match rotated::parts(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    let lines = |part: rotated::Part| BufReader::new(part.file).split(b'\n').map_while(Result::ok);
    Ok(parts.into_iter().flat_map(lines).filter_map(|line| serde_json::from_slice(&line).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_go_on_after_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.ndjson");
        let mut journal = Journal::open(&path).unwrap();
        journal.append(EventKind::SupervisorStarted, None, json!({})).1.unwrap();
        journal.append(EventKind::RunEnded, Some("r1"), json!({"cause": "clean_exit"})).1.unwrap();
        let torn = fs::read(&path).unwrap();
        fs::write(&path, [&torn[..], b"{\"schema_version\":1,\"seq\":2,\"at"].concat()).unwrap();

        let mut journal = Journal::open(&path).unwrap();
        journal.append(EventKind::SupervisorStarted, None, json!({})).1.unwrap();
        let seqs: Vec<u64> = read(&path, 0, 10).unwrap().iter().map(|event| event.seq).collect();
        assert_eq!(seqs, [0, 1, 2]);
        let page = read(&path, 1, 1).unwrap();
        let [ended] = &page[..] else { panic!("{page:?}") };
        assert_eq!(
            (ended.run_id.as_deref(), ended.details["cause"].as_str()),
            (Some("r1"), Some("clean_exit"))
        );
    }

    #[test]
    fn at_its_bound_it_is_set_aside_once_and_numbers_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.ndjson");
        let mut journal = Journal::open_with(&path, 1_000).unwrap();
        let seqs = || read(&path, 0, usize::MAX).unwrap().iter().map(|event| event.seq).collect::<Vec<_>>();
        for _ in 0..50 {
            journal.append(EventKind::Commanded, None, json!({"command": "stop"})).1.unwrap();
        }
        let there = seqs();
        assert_eq!(there.last(), Some(&49));
        assert!(there.windows(2).all(|pair| pair[1] == pair[0] + 1), "{there:?}");
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(names.len(), 2);
        assert!(names.iter().all(|entry| entry.metadata().unwrap().len() <= 1_000));
        assert!(there.len() > 5, "the one before is still read");

        // Killed between the two steps of that, and a supervisor that comes after.
        drop(journal);
        fs::rename(&path, rotated::numbered(&path, 1)).unwrap();
        let mut journal = Journal::open_with(&path, 1_000).unwrap();
        journal.append(EventKind::Commanded, None, json!({})).1.unwrap();
        assert_eq!(seqs().last(), Some(&50));
    }

    #[test]
    fn an_event_longer_than_where_the_last_one_is_looked_for_is_found_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.ndjson");
        let mut journal = Journal::open(&path).unwrap();
        let long = "x".repeat(2 * LAST_LINES as usize);
        journal.append(EventKind::Commanded, None, json!({"command": long})).1.unwrap();
        let mut journal = Journal::open(&path).unwrap();
        journal.append(EventKind::Commanded, None, json!({})).1.unwrap();
        assert_eq!(read(&path, 0, 10).unwrap().last().unwrap().seq, 1);
    }
}
