//! A run's output on its way from the FIFO to `output.log`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use sexton_process::fifo;
use sexton_process::splice::{self, Moved};

use super::log::{Log, Rotation};
use crate::runs::RunDir;

/// The reading end of a run's FIFO, and where it goes.
#[derive(Debug)]
pub struct Output {
    fifo: File,
    log: Log,
    dropped_bytes: u64,
}

impl Output {
    /// Opens both; goes on at the end of a log that another reader began.
    ///
    /// # Errors
    /// The file system's.
    pub fn open(run_dir: &Path, rotation: Rotation) -> io::Result<Self> {
        let fifo = fifo::open_for_reader(&RunDir::from_path(run_dir).fifo())?;
        Ok(Self { fifo, log: Log::open(run_dir, rotation)?, dropped_bytes: 0 })
    }

    /// Rotates otherwise from now on.
    pub fn set_rotation(&mut self, rotation: Rotation) {
        self.log.set_rotation(rotation);
    }

    /// Moves what is there, at most a FIFO's worth. What the log will not take is dropped and counted: a full disk
    /// must not stop a prover.
    pub fn copy(&mut self) -> Moved {
        let (file, room) = self.log.room();
        let moved = match room.min(fifo::SIZE as u64) as usize {
            0 => Err(io::ErrorKind::StorageFull.into()),
            room => splice::fifo_to_file(&self.fifo, file, room),
        };
        match moved {
            Ok(moved) => {
                if let Moved::Bytes(bytes) = moved {
                    self.log.grew(bytes as u64);
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

    /// Output that was removed with the oldest files of the log so far.
    pub fn removed_bytes(&self) -> u64 {
        self.log.removed_bytes()
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fifo.as_fd()
    }
}
