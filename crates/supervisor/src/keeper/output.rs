//! A run's output on its way from the FIFO to `output.log`.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use sexton_process::fifo;
use sexton_process::splice::{self, Moved};

use crate::runs::RunDir;

/// The most that one run's log may take, bytes. What comes after is dropped and counted: an output must not fill a disk.
pub const LOG_MAX: u64 = 1 << 30;

/// The reading end of a run's FIFO, and where it goes.
#[derive(Debug)]
pub struct Output {
    fifo: File,
    log: File,
    length: u64,
    dropped_bytes: u64,
}

impl Output {
    /// Opens both; goes on at the end of a log that another reader began.
    ///
    /// # Errors
    /// The file system's.
    pub fn open(run_dir: &Path) -> io::Result<Self> {
        let dir = RunDir::from_path(run_dir);
        let fifo = fifo::open_for_reader(&dir.fifo())?;
        // Not for appending: splice(2) refuses that.
        let mut log = File::options().write(true).create(true).truncate(false).open(dir.output_file())?;
        let length = log.seek(SeekFrom::End(0))?;
        Ok(Self { fifo, log, length, dropped_bytes: 0 })
    }

    /// Moves what is there, at most a FIFO's worth. What the log will not take is dropped and counted: a full disk
    /// must not stop a prover.
    pub fn copy(&mut self) -> Moved {
        let room = LOG_MAX.saturating_sub(self.length).min(fifo::SIZE as u64) as usize;
        let moved = match room {
            0 => Err(io::ErrorKind::StorageFull.into()),
            room => splice::fifo_to_file(&self.fifo, &self.log, room),
        };
        match moved {
            Ok(moved) => {
                if let Moved::Bytes(bytes) = moved {
                    self.length += bytes as u64;
                }
                moved
            }
            Err(_) => {
                let dropped = splice::discard(&self.fifo, fifo::SIZE as usize).unwrap_or(Moved::Empty);
                if let Moved::Bytes(bytes) = dropped {
                    self.dropped_bytes += bytes as u64;
                }
                dropped
            }
        }
    }

    /// Moves what a process that has just ended left behind. No more than a FIFO holds: a grandchild that goes on
    /// writing has its turn later.
    pub fn drain(&mut self) {
        let mut left = fifo::SIZE as usize;
        while let Moved::Bytes(bytes) = self.copy() {
            left = left.saturating_sub(bytes);
            if left == 0 {
                break;
            }
        }
    }

    /// Output that the log would not take so far.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fifo.as_fd()
    }
}
