//! Lets a program of a test go on when the test says so.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A FIFO on which `read x < PATH` in a shell waits for [`Self::open`].
#[derive(Debug)]
pub struct Gate {
    path: PathBuf,
    file: File,
}

impl Gate {
    /// A closed gate in `folder`.
    pub fn new(folder: &Path, name: &str) -> Self {
        let path = folder.join(name);
        sexton_process::fifo::make(&path).expect("a FIFO can be made in a temporary folder");
        // Both ends, so that neither side's open waits for the other.
        let file = File::options().read(true).write(true).open(&path).expect("our own FIFO");
        Self { path, file }
    }

    /// Lets one reader pass.
    pub fn open(&self) {
        (&self.file).write_all(b"\n").expect("a FIFO that we read too has room for a byte");
    }

    /// For scripts: `read x < {gate}`.
    pub fn path(&self) -> std::path::Display<'_> {
        self.path.display()
    }
}
