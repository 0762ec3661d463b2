//! `evidence.bin`: counters and other small files as they stood at a death, before the reap.
//!
//! The keeper knows nothing of what they mean: the supervisor names them while the run lives, and they are parsed from
//! this record by the same readers that read them live ([`sexton_host::files`]).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sexton_host::files::{Recorder, Snapshot};

use crate::runs::RunDir;

/// Room for all files of one death, bytes. A cgroup level takes about 2 KiB, the host's files about 8.
const ROOM: usize = 64 << 10;

/// The files to record, with everything that recording them takes allocated beforehand.
#[derive(Debug)]
pub struct Evidence {
    file: File,
    buffer: Vec<u8>,
    paths: Vec<PathBuf>,
}

impl Evidence {
    /// Makes the file in the run's folder.
    ///
    /// # Errors
    /// The file system's.
    pub fn prepare(folder: &Path) -> io::Result<Self> {
        let file = File::create(RunDir::from_path(folder).evidence_file())?;
        // Not zeros, which would be pages to be had only later.
        Ok(Self { file, buffer: vec![0xff; ROOM], paths: Vec::new() })
    }

    /// What to record from now on.
    pub fn watch(&mut self, paths: Vec<PathBuf>) {
        self.paths = paths;
    }

    /// Records them now. A disk that takes nothing leaves the file empty: no evidence, and said to be so.
    pub fn record(&mut self) {
        if self.paths.is_empty() {
            return;
        }
        let mut recorder = Recorder::new(&mut self.buffer);
        self.paths.iter().for_each(|path| recorder.file(path));
        let _ = self.file.write_all_at(recorder.bytes(), 0);
    }
}

/// What was recorded; empty where nothing was.
pub fn read(dir: &RunDir) -> Snapshot {
    let block = std::fs::read(dir.evidence_file()).unwrap_or_default();
    Snapshot::decode(&block).unwrap_or_default()
}
