//! `/dev/kmsg`: one record a read.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sexton_model::kernel::{Door, KernelRecord, KernelWindow, LogMark};
use sexton_model::reading::{Obstacle, ObstacleKind};

use super::record;

/// A shorter buffer gets EINVAL and loses the record (`CONSOLE_EXT_LOG_MAX`, since Linux 6.4 `PRINTK_MESSAGE_MAX`, is
/// 8 KiB at most).
const BUFFER_BYTES: usize = 16 << 10;

/// Most reads of one call, so that a log that grows faster than it is read does not hold the reader for ever. A ring of
/// 16 MiB has about 200,000 records.
const MOST_READS: usize = 1 << 20;

/// An open `/dev/kmsg` (or what stands there), with a position of its own. Poll it for news: it is readable when there
/// are some.
#[derive(Debug)]
pub struct Kmsg<S = File> {
    source: S,
    path: PathBuf,
    next: Option<u64>,
}

impl Kmsg {
    /// Opens it at the oldest record of the ring.
    ///
    /// # Errors
    /// [`ObstacleKind::Denied`] without CAP_SYSLOG where `kernel.dmesg_restrict` is 1; [`ObstacleKind::Failed`] where it
    /// does not exist (containers).
    pub fn open(path: &Path) -> Result<Self, Obstacle> {
        let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        match opened {
            Ok(file) => Ok(Self::of(file, path)),
            Err(error) => Err(obstacle(path, &error)),
        }
    }
}

impl<S: AsFd> AsFd for Kmsg<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

/// What one read gave.
enum Step {
    Record(KernelRecord),
    /// Nothing yet: interrupted.
    Again,
    /// A record is missing here, or many. The numbers tell how many as soon as the next one is read.
    Missing,
    End,
}

/// A record, and how many are missing just before it.
struct Found {
    record: KernelRecord,
    missing: u64,
}

impl<S: Read> Kmsg<S> {
    /// Reads from `source`, which gives one record a read and `EAGAIN` at the end. `path` is for messages.
    pub fn of(source: S, path: &Path) -> Self {
        Self { source, path: path.to_owned(), next: None }
    }

    /// All records from here to the end of the log.
    ///
    /// # Errors
    /// An [`Obstacle`] if this is no kernel log: a container's stand-in (`/dev/null`, a console, an empty file), or a
    /// device that fails.
    pub fn read(&mut self) -> Result<KernelWindow, Obstacle> {
        let mut window = KernelWindow::empty(Door::Kmsg);
        let whole = self.read_each(|found| found.put_in(&mut window))?;
        window.gaps += u64::from(!whole);
        Ok(window)
    }

    /// The records after `mark`, a place in the same log. Call it on one that was just opened.
    ///
    /// # Errors
    /// As [`Self::read`]; and [`ObstacleKind::Malformed`] if the log ends before the mark: it is from another boot.
    pub fn read_since(&mut self, mark: &LogMark) -> Result<KernelWindow, Obstacle> {
        let Some(since) = mark.next_seq else { return self.read_since_line(mark) };
        let mut window = KernelWindow::empty(Door::Kmsg);
        let whole = self.read_each(|mut found| {
            let Some(seq) = found.record.seq.filter(|seq| *seq >= since) else { return };
            if window.to_seq.is_none() {
                // What is missing before the mark does not matter, what is missing behind it does.
                found.missing = seq - since;
            }
            found.put_in(&mut window);
        })?;
        window.gaps += u64::from(!whole);
        match self.next {
            Some(next) if next < since => Err(Obstacle::new(
                ObstacleKind::Malformed,
                format!(
                    "{}: it ends at record {next}, before record {since}: another boot's",
                    self.path.display()
                ),
            )),
            _ => Ok(window),
        }
    }

    /// The records after a mark without number, taken through `syslog(2)`.
    fn read_since_line(&mut self, mark: &LogMark) -> Result<KernelWindow, Obstacle> {
        let (mut records, mut missing) = (Vec::new(), Vec::new());
        let whole = self.read_each(|found| {
            records.push(found.record);
            missing.push(found.missing);
        })?;
        let position = super::position_after(&records, mark);
        let mut window = KernelWindow::empty(Door::Kmsg);
        for (record, missing) in records.into_iter().zip(missing).skip(position.index) {
            Found { record, missing }.put_in(&mut window);
        }
        window.gaps += u64::from(!whole) + u64::from(!position.is_certain);
        Ok(window)
    }

    /// The end of the log, as a mark.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn mark(&mut self) -> Result<LogMark, Obstacle> {
        let mut last = None;
        self.read_each(|found| last = Some(found.record))?;
        Ok(last.map_or_else(LogMark::default, |record| super::mark_after(&record)))
    }

    /// Calls `each` for every record from here to the end. Says whether the end was reached with nothing missing there.
    fn read_each(&mut self, mut each: impl FnMut(Found)) -> Result<bool, Obstacle> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut missing_here = false;
        let mut ended = false;
        for _ in 0..MOST_READS {
            match self.step(&mut buffer)? {
                Step::Record(record) => {
                    let seq = record.seq.unwrap_or_default();
                    let missing = self.next.map_or(0, |next| seq.saturating_sub(next));
                    self.next = Some(seq.saturating_add(1));
                    missing_here = false;
                    each(Found { record, missing });
                }
                Step::Again => {}
                Step::Missing => missing_here = true,
                Step::End => {
                    ended = true;
                    break;
                }
            }
        }
        // The ring of a running kernel always holds something: `dmesg --clear` hides it from syslog(2) only.
        if self.next.is_none() {
            let what = if missing_here { "no record in what it says" } else { "it says nothing" };
            let detail = format!("{}: {what}: not a kernel log", self.path.display());
            return Err(Obstacle::new(ObstacleKind::Malformed, detail));
        }
        Ok(ended && !missing_here)
    }

    fn step(&mut self, buffer: &mut [u8]) -> Result<Step, Obstacle> {
        match self.source.read(buffer) {
            // The device has no end of file; /dev/null and files have.
            Ok(0) => Ok(Step::End),
            Ok(length) => {
                let record = record::parse(buffer.get(..length).unwrap_or_default());
                Ok(record.map_or(Step::Missing, Step::Record))
            }
            Err(error) => match (error.kind(), error.raw_os_error()) {
                (io::ErrorKind::WouldBlock, _) => Ok(Step::End),
                (io::ErrorKind::Interrupted, _) => Ok(Step::Again),
                (_, Some(libc::EPIPE | libc::EINVAL)) => Ok(Step::Missing),
                _ => Err(obstacle(&self.path, &error)),
            },
        }
    }
}

impl Found {
    fn put_in(self, window: &mut KernelWindow) {
        window.gaps += u64::from(self.missing > 0);
        window.lost = window.lost.saturating_add(self.missing);
        window.from_seq = window.from_seq.or(self.record.seq);
        window.to_seq = self.record.seq;
        if self.record.is_from_kernel() {
            window.records.push(self.record);
        } else {
            window.refused += 1;
        }
    }
}

/// An error of this path, told apart and explained.
fn obstacle(path: &Path, error: &io::Error) -> Obstacle {
    let (kind, advice) = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            (ObstacleKind::Denied, ": run as root or with CAP_SYSLOG, or set kernel.dmesg_restrict=0")
        }
        Some(libc::ENOENT) => (ObstacleKind::Failed, ": containers have none unless it is given to them"),
        _ => (ObstacleKind::Failed, ""),
    };
    Obstacle::new(kind, format!("{}: {error}{advice}", path.display()))
}
