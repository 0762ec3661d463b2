//! An archive that may be anybody's, and may mean harm: it is read in bounded memory, and nothing of it is ever written
//! to disk. Of its files only the records of runs are looked at.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;
use sexton_diagnosis::death::Facts;
use sexton_model::SCHEMA_VERSION;
use sexton_model::exit::ExitRecord;
use sexton_model::run::RunRecord;

use super::{FORMAT, MANIFEST, Manifest, TOP};
use crate::runs::is_id;

/// Most that is unpacked of any archive, bytes.
pub const UNPACKED_MAX: u64 = 256 << 20;
/// Most of one record.
const RECORD_MAX: u64 = 4 << 20;
/// Most of all records that are kept.
const KEPT_MAX: u64 = 64 << 20;
const ENTRIES_MAX: usize = 20_000;

/// Why there is nothing to judge.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The file.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Its contents.
    #[error("{} is no bundle of `supervisor diag`: {why}", path.display())]
    NotABundle {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// The records of one run, as far as they are there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BundledRun {
    /// `run.json`.
    pub run: Option<RunRecord>,
    /// `exit.json`.
    pub exit: Option<ExitRecord>,
    /// `facts.json`.
    pub facts: Option<Facts>,
}

/// What is looked at of a bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// Its manifest.
    pub manifest: Manifest,
    /// Its runs by id, oldest first.
    pub runs: BTreeMap<String, BundledRun>,
}

/// Reads a bundle.
///
/// # Errors
/// [`BundleError`].
pub fn open(path: &Path) -> Result<Bundle, BundleError> {
    let unreadable = |source| BundleError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(unreadable(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    read(file).map_err(|why| BundleError::NotABundle { path: path.to_owned(), why })
}

fn read(file: impl Read) -> Result<Bundle, String> {
    let unpacked = Bounded { source: GzDecoder::new(file), left: UNPACKED_MAX };
    let mut archive = tar::Archive::new(unpacked);
    let (mut manifest, mut runs, mut room) = (None, BTreeMap::<String, BundledRun>::new(), KEPT_MAX);
    for (number, entry) in archive.entries().map_err(|error| told(&error))?.enumerate() {
        let mut entry = entry.map_err(|error| told(&error))?;
        let name = name_of(&entry)?;
        if number >= ENTRIES_MAX {
            return Err(format!("it has more than {ENTRIES_MAX} entries"));
        }
        if entry.header().entry_type().is_dir() {
            continue;
        }
        if !entry.header().entry_type().is_file() {
            return Err(format!("\"{}\" in it is no file", name.escape_debug()));
        }
        let words: Vec<&str> = name.split('/').collect();
        match words[..] {
            [TOP, MANIFEST] => {
                manifest = Some(json::<Manifest>(&name, &contents(&name, &mut entry, &mut room)?)?)
            }
            [TOP, "runs", id, file @ ("run.json" | "exit.json" | "facts.json")] if is_id(id) => {
                let bytes = contents(&name, &mut entry, &mut room)?;
                let run = runs.entry(id.to_owned()).or_default();
                match file {
                    "run.json" => run.run = Some(json(&name, &bytes)?),
                    "exit.json" => run.exit = Some(json(&name, &bytes)?),
                    _ => run.facts = Some(json(&name, &bytes)?),
                }
            }
            _ => {}
        }
    }
    match manifest {
        None => Err(format!("there is no {MANIFEST} in it")),
        Some(manifest) if manifest.format != FORMAT => Err(format!("its format is {:?}", manifest.format)),
        Some(manifest) if manifest.schema_version > SCHEMA_VERSION => {
            Err(format!("it was made by supervisor {}, which is newer than this one", manifest.version))
        }
        Some(manifest) => Ok(Bundle { manifest, runs }),
    }
}

/// The path of an entry, with nothing in it that leads out of the archive.
fn name_of(entry: &tar::Entry<'_, impl Read>) -> Result<String, String> {
    let path = entry.path().map_err(|error| told(&error))?;
    let mut words = Vec::new();
    for component in path.components() {
        match (component, component.as_os_str().to_str()) {
            (Component::Normal(_), Some(word)) => words.push(word),
            (Component::CurDir, _) => {}
            _ => {
                return Err(format!(
                    "\"{}\" in it is no path inside of it",
                    path.display().to_string().escape_debug()
                ));
            }
        }
    }
    Ok(words.join("/"))
}

fn contents(name: &str, entry: &mut impl Read, room: &mut u64) -> Result<Vec<u8>, String> {
    let most = RECORD_MAX.min(*room);
    let mut bytes = Vec::new();
    entry.take(most + 1).read_to_end(&mut bytes).map_err(|error| told(&error))?;
    if bytes.len() as u64 > most {
        return Err(format!("{name} is larger than any record of ours"));
    }
    *room -= bytes.len() as u64;
    Ok(bytes)
}

fn json<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("{name} is damaged: {error}"))
}

/// One line, whatever the archive put into the message.
fn told(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it is cut off".to_owned(),
        _ => error.to_string().escape_debug().to_string(),
    }
}

/// Fails instead of giving more than `left` bytes.
struct Bounded<R> {
    source: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        self.left = self
            .left
            .checked_sub(length as u64)
            .ok_or_else(|| io::Error::other(format!("it unpacks to more than {} MiB", UNPACKED_MAX >> 20)))?;
        Ok(length)
    }
}
