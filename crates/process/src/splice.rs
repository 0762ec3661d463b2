//! Moves a FIFO's bytes into a file inside the kernel.

use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::fcntl::{SpliceFFlags, splice};

/// Moves what `fifo` holds now, at most `limit` bytes, to the end position of `file`; 0 when it is empty. Neither end
/// blocks for the FIFO.
///
/// Bytes leave the FIFO only when they are in the file, so that a copier killed at any point loses none; a loop of
/// `read` and `write` would lose what it had read. `file` must not be open for appending (`EINVAL`): seek to its end.
///
/// # Errors
/// That of the file: `ENOSPC`, `EIO`, … The bytes are still in the FIFO then.
pub fn fifo_to_file(fifo: impl AsFd, file: impl AsFd, limit: usize) -> io::Result<usize> {
    loop {
        match splice(fifo.as_fd(), None, file.as_fd(), None, limit, SpliceFFlags::SPLICE_F_NONBLOCK) {
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Ok(0),
            other => return Ok(other?),
        }
    }
}
