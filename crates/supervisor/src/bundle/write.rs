//! The archive: gzip of tar, of bounded size.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use sexton_model::{SCHEMA_VERSION, Timestamp};

use super::TOP;
use super::part::{Answer, Entry, Finding, Part, page};

/// Why a bundle could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the bundle: {0}")]
pub struct WriteError(#[from] io::Error);

/// An archive under construction.
pub struct Writer<W: Write> {
    archive: tar::Builder<GzEncoder<W>>,
    left: u64,
    at: u64,
}

impl<W: Write> Writer<W> {
    /// Writes to `out`, at most `most_bytes` before compression and without what says that something was left out.
    pub fn new(out: W, most_bytes: u64) -> Self {
        let archive = tar::Builder::new(GzEncoder::new(out, Compression::fast()));
        Self { archive, left: most_bytes, at: Timestamp::now().as_second().unsigned_abs() }
    }

    /// Adds a part: as much of it as there is room for.
    ///
    /// # Errors
    /// The file system's.
    pub fn part(&mut self, part: Part, findings: &mut Vec<Finding>) -> Result<(), WriteError> {
        findings.extend(part.findings);
        for Entry { name, mut bytes } in part.entries {
            let (length, room) = (bytes.len(), usize::try_from(self.left).unwrap_or(usize::MAX));
            if length > room {
                bytes.truncate(room);
                let detail = format!("the first {room} of {length} bytes: the bundle is full");
                findings.push(Finding { what: name.clone(), answer: Answer::Truncated, detail });
            }
            self.left -= bytes.len() as u64;
            self.file(&name, &bytes)?;
        }
        Ok(())
    }

    /// Adds `findings.txt` and `findings.json`, for which there is always room.
    ///
    /// # Errors
    /// The file system's.
    pub fn findings(&mut self, findings: &[Finding]) -> Result<(), WriteError> {
        self.file("findings.txt", page(findings).as_bytes())?;
        let document = serde_json::json!({"schema_version": SCHEMA_VERSION, "findings": findings});
        self.file("findings.json", &serde_json::to_vec_pretty(&document).map_err(io::Error::from)?)
    }

    fn file(&mut self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.at);
        Ok(self.archive.append_data(&mut header, Path::new(TOP).join(name), bytes)?)
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(self) -> Result<W, WriteError> {
        Ok(self.archive.into_inner()?.finish()?)
    }
}
