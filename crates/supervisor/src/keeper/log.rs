//! `output.log` and the older files beside it.
//!
//! ```text
//! output.log ── full ──► output.log.1 ──► output.log.2 ──► … ──► output.log.KEEP ──► gone
//! ```
//!
//! A rotation is a few renames in one folder, highest number first, so that a keeper that is killed between any two of
//! them leaves every byte in place and the files in order: at most a number is missing, or `output.log` itself, which
//! whoever goes on writing makes anew. Names are made on the stack and resolved from the open folder: nothing is
//! allocated, and no path is too long.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use sexton_model::exit::LAST_WORDS_BYTES;

use crate::config::sections as config;

/// The most that a log may take that is not rotated, or cannot be, bytes. What comes after is dropped and counted: an
/// output must not fill a disk.
pub const LOG_MAX: u64 = 1 << 30;

/// When a log is set aside for a new one, and how many of those are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// At this size, bytes; 0: never because of its size. No file becomes larger. Below [`LAST_WORDS_BYTES`] it counts
    /// as that.
    pub size: u64,
    /// When its first byte is so old, at the next output; 0: never because of its age.
    pub age: Duration,
    /// Older files beside `output.log`, 1 to [`KEEP_MAX`]: one at least, since the last words before a death may stand
    /// in it.
    pub keep: u32,
}

/// The most files that are kept.
pub const KEEP_MAX: u32 = 999;

impl Default for Rotation {
    fn default() -> Self {
        Self { size: 64 << 20, age: Duration::ZERO, keep: 8 }
    }
}

impl Rotation {
    /// From sexton.toml.
    pub fn of(config: &config::Log) -> Self {
        Self { size: config.rotate_size.0, age: config.rotate_age, keep: config.keep_files }
    }

    fn keep(&self) -> u32 {
        self.keep.clamp(1, KEEP_MAX)
    }

    /// `None`: size is no reason.
    fn size(&self) -> Option<u64> {
        (self.size > 0).then_some(self.size.max(LAST_WORDS_BYTES as u64))
    }
}

/// The file that is written, and where it is set aside.
#[derive(Debug)]
pub(super) struct Log {
    folder: OwnedFd,
    file: File,
    length: u64,
    began: Instant,
    rotation: Rotation,
    removed_bytes: u64,
}

const CURRENT: &CStr = c"output.log";
/// The next `output.log`, before it has its name. Always empty.
const NEXT: &CStr = c"output.log.next";

impl Log {
    /// Opens the log in `folder`, or makes it; goes on at its end.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn open(folder: &Path, rotation: Rotation) -> io::Result<Self> {
        let folder = rustix::fs::openat(CWD, folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        // Not for appending: splice(2) refuses that.
        let mut file = make(&folder, CURRENT, OFlags::empty())?;
        let length = file.seek(SeekFrom::End(0))?;
        let age = file.metadata()?.created().ok().and_then(|made| made.elapsed().ok());
        let now = Instant::now();
        let began = now.checked_sub(age.unwrap_or_default()).unwrap_or(now);
        Ok(Self { folder, file, length, began, rotation, removed_bytes: 0 })
    }

    /// From the next output on.
    pub(super) fn set_rotation(&mut self, rotation: Rotation) {
        self.rotation = rotation;
    }

    /// The file to write to, and how much it takes now: 0 where output is to be dropped. Rotates first where that is due.
    pub(super) fn room(&mut self) -> (&File, u64) {
        if self.is_due() {
            // Tried again at the next output; until then the file grows, up to its bound.
            let _ = self.rotate();
        }
        let end = match self.rotation.size() {
            Some(size) if self.length < size => size,
            Some(size) => size.max(LOG_MAX),
            None => LOG_MAX,
        };
        (&self.file, end.saturating_sub(self.length))
    }

    /// So much was written to it.
    pub(super) fn grew(&mut self, bytes: u64) {
        if self.length == 0 {
            self.began = Instant::now();
        }
        self.length += bytes;
    }

    /// What was removed with the oldest files so far, bytes.
    pub(super) fn removed_bytes(&self) -> u64 {
        self.removed_bytes
    }

    fn is_due(&self) -> bool {
        let age = self.rotation.age;
        self.rotation.size().is_some_and(|size| self.length >= size)
            || (age > Duration::ZERO && self.length > 0 && self.began.elapsed() >= age)
    }

    fn rotate(&mut self) -> io::Result<()> {
        // First: where no file can be made, everything stays as it is.
        let next = make(&self.folder, NEXT, OFlags::TRUNC)?;
        let keep = self.rotation.keep();
        // A number that is missing, after a keeper was killed in between, takes what comes from below.
        let free = (1..=keep).find(|number| self.length_of(*number).is_none());
        let removed = if free.is_none() { self.length_of(keep).unwrap_or(0) } else { 0 };
        for number in (1..free.unwrap_or(keep)).rev() {
            self.rename(Name::numbered(number).text(), Name::numbered(number + 1).text())?;
        }
        self.removed_bytes += removed;
        match self.rename(CURRENT, Name::numbered(1).text()) {
            // A rotation that failed after this step is completed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
        self.rename(NEXT, CURRENT)?;
        (self.file, self.length, self.began) = (next, 0, Instant::now());
        Ok(())
    }

    /// `None` where there is no such file.
    fn length_of(&self, number: u32) -> Option<u64> {
        let stat = rustix::fs::statat(&self.folder, Name::numbered(number).text(), AtFlags::SYMLINK_NOFOLLOW);
        stat.ok().map(|stat| stat.st_size as u64)
    }

    fn rename(&self, from: &CStr, to: &CStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.folder, from, &self.folder, to)?)
    }
}

fn make(folder: impl AsFd, name: &CStr, also: OFlags) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | also;
    Ok(rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?.into())
}

impl AsFd for Log {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// `output.log.N` on the stack.
struct Name {
    bytes: [u8; 24],
}

impl Name {
    fn numbered(number: u32) -> Self {
        let mut bytes = [0; 24];
        // 11 bytes and a number of at most ten digits: it fits, with a NUL to spare.
        let _ = write!(&mut bytes[..23], "output.log.{number}");
        Self { bytes }
    }

    fn text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"output.log.1")
    }
}
