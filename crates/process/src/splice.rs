//! Moves a FIFO's bytes into a file inside the kernel.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::fcntl::{SpliceFFlags, splice};

/// What came of one move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// So many bytes are in the file now.
    Bytes(usize),
    /// The FIFO is empty; writers may come.
    Empty,
    /// The FIFO is empty and no process has it open for writing.
    NoWriter,
}

/// Moves what `fifo` holds now, at most `limit` bytes, to the end position of `file`. Neither end blocks for the FIFO.
///
/// Bytes leave the FIFO only when they are in the file, so that a copier killed at any point loses none; a loop of
/// `read` and `write` would lose what it had read. `file` must not be open for appending (`EINVAL`): seek to its end.
///
/// # Errors
/// That of the file: `ENOSPC`, `EIO`, … The bytes are still in the FIFO then.
pub fn fifo_to_file(fifo: &File, file: &File, limit: usize) -> io::Result<Moved> {
    loop {
        match splice(fifo.as_fd(), None, file.as_fd(), None, limit, SpliceFFlags::SPLICE_F_NONBLOCK) {
            Ok(0) => return Ok(Moved::NoWriter),
            Ok(bytes) => return Ok(Moved::Bytes(bytes)),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Ok(Moved::Empty),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Throws away what `fifo` holds now, at most `limit` bytes: for when the file takes no more and the writer must not
/// block.
///
/// # Errors
/// The kernel's, in practice never.
pub fn discard(fifo: &File, limit: usize) -> io::Result<Moved> {
    let null = File::options().write(true).open("/dev/null")?;
    fifo_to_file(fifo, &null, limit)
}
