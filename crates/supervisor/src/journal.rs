//! `journal.ndjson`: what happened, a line an event, appended and never rewritten.
//!
//! Lines are not fsynced one by one: records are durable before they matter (`run.json` before the program runs,
//! `wait.json` before the reap), and a journal that costs a disk flush an event would delay every restart by it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::{Map, Value};
use sexton_model::event::{Event, EventKind};
use sexton_model::{SCHEMA_VERSION, Timestamp};

/// The open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    next_seq: u64,
}

impl Journal {
    /// Opens or makes it. A last line without its end (a supervisor that was killed while it wrote) is closed first.
    ///
    /// # Errors
    /// The file system's.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path)?;
        let last = events(path)?.last().map(|event| event.seq);
        if !ends_with_newline(path)? {
            file.write_all(b"\n")?;
        }
        Ok(Self { file, next_seq: last.map_or(0, |seq| seq + 1) })
    }

    /// Appends one event, in one write.
    ///
    /// # Errors
    /// The file system's. The event's number is used up all the same.
    pub fn append(&mut self, kind: EventKind, run_id: Option<&str>, details: Value) -> io::Result<()> {
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
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        self.file.write_all(&line)
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
/// Where the file is there and cannot be read.
pub fn read(path: &Path, from: u64, most: usize) -> io::Result<Vec<Event>> {
    Ok(events(path)?.filter(|event| event.seq >= from).take(most).collect())
}

/// All events one by one, oldest first: a journal may be larger than what we want in memory. Lines that are not events
/// are passed over; what cannot be read any more ends it.
///
/// # Errors
/// Where the file is there and cannot be opened.
pub fn events(path: &Path) -> io::Result<impl Iterator<Item = Event>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        other => Some(other?),
    };
    let lines = file.into_iter().flat_map(|file| BufReader::new(file).split(b'\n').map_while(Result::ok));
    Ok(lines.filter_map(|line| serde_json::from_slice(&line).ok()))
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
        journal.append(EventKind::SupervisorStarted, None, json!({})).unwrap();
        journal.append(EventKind::RunEnded, Some("r1"), json!({"cause": "clean_exit"})).unwrap();
        let torn = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&torn[..], b"{\"schema_version\":1,\"seq\":2,\"at"].concat()).unwrap();

        let mut journal = Journal::open(&path).unwrap();
        journal.append(EventKind::SupervisorStarted, None, json!({})).unwrap();
        let seqs: Vec<u64> = read(&path, 0, 10).unwrap().iter().map(|event| event.seq).collect();
        assert_eq!(seqs, [0, 1, 2]);
        let page = read(&path, 1, 1).unwrap();
        let [ended] = &page[..] else { panic!("{page:?}") };
        assert_eq!(
            (ended.run_id.as_deref(), ended.details["cause"].as_str()),
            (Some("r1"), Some("clean_exit"))
        );
    }
}
