//! What earlier runs teach the next one: how long drains take on this host, and what the prover needs.
//!
//! Both files only improve estimates: one that is missing or damaged is an empty one, and is written anew.

use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sexton_diagnosis::{drain, need};
use sexton_model::SCHEMA_VERSION;
use sexton_model::drain::PastDrain;
use sexton_model::gate::Observation;

use crate::durable;
use crate::place::Place;

/// Larger than either file can become.
const FILE_BYTES_MAX: u64 = 1 << 20;

#[derive(Serialize, Deserialize)]
struct File<T> {
    schema_version: u32,
    entries: Vec<T>,
}

/// Earlier drains, the latest last: `drains.json`.
pub fn drains(place: &Place) -> Vec<PastDrain> {
    read(&place.drains_file())
}

/// Adds a drain that is over.
///
/// # Errors
/// The file system's.
pub fn remember_drain(place: &Place, past: PastDrain) -> io::Result<()> {
    let mut drains = drains(place);
    drain::remember(&mut drains, past);
    write(&place.drains_file(), drains)
}

/// What earlier runs that became ready took at most, the latest last: `need.json`.
pub fn observations(place: &Place) -> Vec<Observation> {
    read(&place.need_file())
}

/// Adds a run that became ready and has ended.
///
/// # Errors
/// The file system's.
pub fn remember_need(place: &Place, seen: Observation) -> io::Result<()> {
    let mut observations = observations(place);
    need::remember(&mut observations, seen);
    write(&place.need_file(), observations)
}

fn read<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let fits = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_BYTES_MAX);
    let bytes = if fits { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    let file = serde_json::from_slice::<File<T>>(&bytes);
    file.ok()
        .filter(|file| file.schema_version == SCHEMA_VERSION)
        .map(|file| file.entries)
        .unwrap_or_default()
}

fn write<T: Serialize>(path: &Path, entries: Vec<T>) -> io::Result<()> {
    durable::write_json(path, &File { schema_version: SCHEMA_VERSION, entries })
}

#[cfg(test)]
mod tests {
    use sexton_model::Timestamp;

    use super::*;

    fn place(folder: &Path) -> Place {
        Place { name: "x".to_owned(), state_dir: folder.to_owned(), runtime_dir: folder.to_owned() }
    }

    fn past(bytes: u64) -> PastDrain {
        PastDrain { at: Timestamp::UNIX_EPOCH, bytes, exiting_seconds: 1.5, releasing_seconds: 0.25 }
    }

    #[test]
    fn drains_are_kept_in_order_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        assert_eq!(drains(&place), []);
        for bytes in 0..40 {
            remember_drain(&place, past(bytes)).unwrap();
        }
        let drains = drains(&place);
        assert_eq!(drains.len(), drain::HISTORY);
        assert_eq!(drains.last(), Some(&past(39)));
    }

    #[test]
    fn a_damaged_file_is_an_empty_one_and_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        for damage in
            ["", "{", "[]", r#"{"schema_version":99,"entries":[]}"#, r#"{"schema_version":1,"entries":[7]}"#]
        {
            std::fs::write(place.drains_file(), damage).unwrap();
            assert_eq!(drains(&place), [], "{damage}");
        }
        remember_drain(&place, past(7)).unwrap();
        assert_eq!(drains(&place), [past(7)]);
    }
}
