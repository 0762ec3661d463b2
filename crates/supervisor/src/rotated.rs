//! Reads a log across the files that rotation makes of it: `NAME`, the newest, then `NAME.1`, `NAME.2` and so on. The
//! keeper writes a prover's output so ([`crate::keeper::log`]), the supervisor its journal ([`crate::journal`]).
//!
//! The files are renamed while they are read, and only ever to higher numbers, the highest first. So they
//! are looked up in ascending order: a file that is not found yet is always at a number that is still to come, and of two
//! files that are found one after the other no third was in between. What is read afterwards are the open files, whatever
//! they are called by then.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::keeper::log::KEEP_MAX;

/// Rotations that a look at all names can take place among.
const MARGIN: u32 = 32;

/// One file of a log.
#[derive(Debug)]
pub struct Part {
    /// The file, to be read from its beginning.
    pub file: File,
    inode: u64,
}

impl Part {
    /// `None` where there is no file of this number; 0 is the newest.
    fn open(log: &Path, number: u32) -> io::Result<Option<Self>> {
        let opened = if number == 0 { File::open(log) } else { File::open(numbered(log, number)) };
        match opened {
            Ok(file) => {
                let inode = file.metadata()?.ino();
                Ok(Some(Self { file, inode }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_removed(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.nlink() == 0)
    }
}

/// What the file number `number` of the log is called.
pub fn numbered(log: &Path, number: u32) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// The files of the log whose newest is called `log`, oldest first; none where there are none.
///
/// # Errors
/// The file system's.
pub fn parts(log: &Path) -> io::Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    let most = highest(log)?.saturating_add(MARGIN).min(KEEP_MAX);
    for number in 0..=most {
        if let Some(part) = Part::open(log, number)?
            // Found once more, a rotation later.
            && parts.last().is_none_or(|newer| newer.inode != part.inode)
        {
            parts.push(part);
        }
    }
    parts.reverse();
    Ok(parts)
}

/// The highest number of a file beside `log`.
fn highest(log: &Path) -> io::Result<u32> {
    let folder = log.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = log.file_name().unwrap_or_default().as_bytes();
    let number = |file: &[u8]| {
        let digits = file.strip_prefix(name)?.strip_prefix(b".")?;
        str::from_utf8(digits).ok()?.parse::<u32>().ok()
    };
    let mut highest = 0;
    for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        highest = highest.max(number(entry?.file_name().as_bytes()).unwrap_or(0));
    }
    Ok(highest)
}

/// The last `most` bytes of the log, and how many there are in all.
///
/// # Errors
/// The file system's; `ENOENT` where there is no log.
pub fn tail(log: &Path, most: u64) -> io::Result<(Vec<u8>, u64)> {
    let mut parts = parts(log)?;
    if parts.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let lengths: Vec<u64> =
        parts.iter().map(|part| Ok(part.file.metadata()?.len())).collect::<io::Result<_>>()?;
    let total: u64 = lengths.iter().sum();
    let mut skip = total.saturating_sub(most);
    let mut bytes = Vec::with_capacity((total - skip) as usize);
    for (part, length) in parts.iter_mut().zip(lengths) {
        if skip < length {
            part.file.seek(SeekFrom::Start(skip))?;
            (&mut part.file).take(length - skip).read_to_end(&mut bytes)?;
        }
        skip = skip.saturating_sub(length);
    }
    Ok((bytes, total))
}

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Its first byte that is there.
    Beginning,
    /// So many bytes into the file with this inode; the log's beginning where that file is gone.
    In {
        /// `st_ino`
        inode: u64,
        /// Bytes.
        offset: u64,
    },
}

impl Place {
    /// The present end of `log`.
    pub fn end(log: &Path) -> Self {
        match fs::metadata(log) {
            Ok(meta) => Self::In { inode: meta.ino(), offset: meta.len() },
            Err(_) => Self::Beginning,
        }
    }
}

/// Reads a log that grows, from one file to the next.
#[derive(Debug)]
pub struct Follower {
    log: PathBuf,
    part: Part,
    missed: bool,
}

impl Follower {
    /// Begins at `from`.
    ///
    /// # Errors
    /// The file system's; `ENOENT` where there is no log.
    pub fn open(log: &Path, from: Place) -> io::Result<Self> {
        let mut parts = parts(log)?;
        if parts.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let found = match from {
            Place::Beginning => Some((0, 0)),
            Place::In { inode, offset } => {
                parts.iter().position(|part| part.inode == inode).map(|index| (index, offset))
            }
        };
        let (index, offset) = found.unwrap_or_default();
        let mut part = parts.swap_remove(index);
        part.file.seek(SeekFrom::Start(offset))?;
        Ok(Self { log: log.to_owned(), part, missed: found.is_none() })
    }

    /// Whether files were removed before they were read, since this was last asked.
    pub fn has_missed(&mut self) -> bool {
        std::mem::take(&mut self.missed)
    }

    /// Between two renames of a rotation there is no file of that name: soon there is.
    fn is_last(&self) -> bool {
        match fs::metadata(&self.log) {
            Ok(meta) => meta.ino() == self.part.inode,
            Err(_) => true,
        }
    }

    /// To the file after this one; where this one was removed, to the oldest that is there.
    fn go_on(&mut self) -> io::Result<()> {
        let mut newer = None;
        for number in 0..=KEEP_MAX {
            if self.part.is_removed()? {
                return self.go_to_oldest();
            }
            match Part::open(&self.log, number)? {
                Some(part) if part.inode == self.part.inode => break,
                Some(part) => newer = Some(part),
                None => {}
            }
        }
        // None: a rotation is between two steps. Asked again.
        if let Some(newer) = newer {
            self.part = newer;
        }
        Ok(())
    }

    fn go_to_oldest(&mut self) -> io::Result<()> {
        if let Some(oldest) = parts(&self.log)?.into_iter().next() {
            (self.part, self.missed) = (oldest, true);
        }
        Ok(())
    }
}

impl Read for Follower {
    /// The next bytes; 0 where there are no more now.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // Asked before the reading: nothing is written any more to a file that has another after it.
            let is_last = self.is_last();
            let length = self.part.file.read(buffer)?;
            if length > 0 || is_last {
                return Ok(length);
            }
            self.go_on()?;
        }
    }
}

#[cfg(test)]
mod tests;
