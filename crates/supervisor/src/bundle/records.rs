//! The runs and the journal.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;
use sexton_model::exit::LAST_WORDS_BYTES;
use sexton_model::kernel::LogMark;
use sexton_model::reading::{ObstacleKind, Reading};

use super::part::{Answer, Part};
use super::secrets;
use crate::daemon::tracking::Tracked;
use crate::rotated;
use crate::runs::{self, RunDir};

/// Most of one record. They have some ten KiB.
const RECORD_BYTES: u64 = 4 << 20;
/// How much of the journal.
const JOURNAL_BYTES: u64 = 1 << 20;

/// The newest `most` runs with all their records and the end of their output.
pub fn runs(runs_dir: &Path, most: usize) -> Part {
    let mut part = Part::default();
    let all = match runs::list(runs_dir) {
        Ok(all) => all,
        Err(error) => return Part::finding("runs", Answer::Unreadable, error.to_string()),
    };
    match all.len() {
        0 => part.add("runs", Answer::Absent, format!("none in {}", runs_dir.display())),
        there => part.add("runs", Answer::Found, format!("the newest {} of {there}", most.min(there))),
    }
    for dir in all.iter().rev().take(most) {
        run(&mut part, dir);
    }
    part
}

fn run(part: &mut Part, dir: &RunDir) {
    let (id, name) = (dir.run_id(), |file: &str| format!("runs/{}/{file}", dir.run_id()));
    for path in [dir.run_file(), dir.exit_file(), dir.wait_file(), dir.facts_file(), dir.tracking_file()] {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let read = whole(&path).map(|bytes| without_secrets(part, &name(&file), bytes));
        part.read(format!("{id} {file}"), name(&file), read);
    }
    part.read(format!("{id} evidence.bin"), name("evidence.bin"), whole(&dir.evidence_file()));
    let output = rotated::tail(&dir.output_file(), LAST_WORDS_BYTES as u64);
    tail(part, &format!("{id} output"), &name("output.tail"), output);
}

/// The record with the secrets of its command line masked; what holds none stays as it is, byte for byte.
fn without_secrets(part: &mut Part, name: &str, bytes: Vec<u8>) -> Vec<u8> {
    let Ok(mut record) = serde_json::from_slice::<Value>(&bytes) else { return bytes };
    if !secrets::mask_command(&mut record) {
        return bytes;
    }
    part.add(name, Answer::Truncated, "secrets on the command line are masked");
    serde_json::to_vec_pretty(&record).unwrap_or_default()
}

/// The end of the journal, from the beginning of a line on.
pub fn journal(path: &Path) -> Part {
    let mut part = Part::default();
    tail(&mut part, "journal", "journal.ndjson", rotated::tail(path, JOURNAL_BYTES));
    for entry in &mut part.entries {
        let is_cut = part.findings.iter().any(|finding| finding.answer == Answer::Truncated);
        if let Some(end) = entry.bytes.iter().position(|byte| *byte == b'\n').filter(|_| is_cut) {
            entry.bytes.drain(..=end);
        }
    }
    part
}

/// Where the kernel log begins to matter: at the start of the oldest of the newest `most` runs of this boot.
pub fn earliest_mark(runs_dir: &Path, most: usize) -> LogMark {
    let us = sexton_process::identity(std::process::id() as i32);
    let boot_id = us.ok().map(|us| us.boot_id);
    let mark = |dir: &RunDir| {
        let record = dir.record().ok()??;
        (record.identity.map(|identity| identity.boot_id) == boot_id).then_some(())?;
        let tracked = runs::read_json::<Tracked>(dir.tracking_file()).ok()??;
        tracked.log_mark.into_value()
    };
    let all = runs::list(runs_dir).unwrap_or_default();
    let newest = &all[all.len().saturating_sub(most)..];
    newest.iter().find_map(mark).unwrap_or_default()
}

fn whole(path: &Path) -> Reading<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(RECORD_BYTES + 1).read_to_end(&mut bytes)) {
        Ok(_) if bytes.len() as u64 > RECORD_BYTES => Reading::unreadable(
            ObstacleKind::Malformed,
            format!("larger than {RECORD_BYTES} bytes: no record of ours"),
        ),
        Ok(_) => Reading::Value(bytes),
        Err(error) => unreadable(&error),
    }
}

fn unreadable<T>(error: &io::Error) -> Reading<T> {
    match error.kind() {
        io::ErrorKind::NotFound => Reading::Absent,
        io::ErrorKind::PermissionDenied => Reading::unreadable(ObstacleKind::Denied, error.to_string()),
        _ => Reading::unreadable(ObstacleKind::Failed, error.to_string()),
    }
}

fn tail(part: &mut Part, what: &str, name: &str, end: io::Result<(Vec<u8>, u64)>) {
    match end {
        Ok((bytes, length)) if length > bytes.len() as u64 => {
            part.add(what, Answer::Truncated, format!("the last {} of {length} bytes", bytes.len()));
            part.file(name, bytes);
        }
        Ok((bytes, _)) => part.read(what, name, Reading::Value(bytes)),
        Err(error) => part.read(what, name, unreadable(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_is_cut_at_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.ndjson");
        let line = "x".repeat(99) + "\n";
        std::fs::write(&path, line.repeat(20_000)).unwrap();
        let part = journal(&path);
        let bytes = &part.entries[0].bytes;
        assert!(bytes.len() as u64 <= JOURNAL_BYTES && bytes.len().is_multiple_of(100), "{}", bytes.len());
        assert_eq!(part.findings[0].answer, Answer::Truncated);
    }

    #[test]
    fn what_is_missing_is_said_beside_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let dir = RunDir::new(folder.path(), "20260101T000000.000Z-0001");
        std::fs::create_dir(dir.path()).unwrap();
        std::fs::write(dir.run_file(), r#"{"command":["p","--token=x"]}"#).unwrap();
        std::fs::create_dir(dir.exit_file()).unwrap();
        let part = runs(folder.path(), 10);
        let answer = |file: &str| {
            let what = format!("{} {file}", dir.run_id());
            part.findings.iter().find(|finding| finding.what == what).unwrap().answer
        };
        assert_eq!(answer("run.json"), Answer::Found);
        assert_eq!(answer("exit.json"), Answer::Unreadable, "a folder in its place");
        assert_eq!(answer("facts.json"), Answer::Absent);
        assert_eq!(answer("output"), Answer::Absent);
        let run = String::from_utf8(part.entries[0].bytes.clone()).unwrap();
        assert!(run.contains("--token=[masked]"), "{run}");
    }

    #[test]
    fn no_runs_are_absent() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(runs(&folder.path().join("runs"), 10).findings[0].answer, Answer::Absent);
        assert_eq!(journal(&folder.path().join("none")).findings[0].answer, Answer::Absent);
        assert_eq!(earliest_mark(folder.path(), 10), LogMark::default());
    }
}
