//! The FIFO that carries a prover's output.
//!
//! The prover holds it open for reading *and* writing, so that it outlives the death of its reader without a SIGPIPE.
//! What is in it is freed when nobody has it open any more: whoever may have to read it later keeps a reader.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};

/// What is asked for as the FIFO's size, bytes: the limit for unprivileged users (`/proc/sys/fs/pipe-max-size`).
pub const SIZE: i32 = 1 << 20;

/// Makes a FIFO that only this user may open.
///
/// # Errors
/// `EEXIST`, or the file system's.
pub fn make(path: &Path) -> io::Result<()> {
    Ok(nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o600))?)
}

/// Opens the end for a prover: reading and writing, blocking. Enlarges the FIFO where that is allowed.
///
/// # Errors
/// The file system's.
pub fn open_for_prover(path: &Path) -> io::Result<OwnedFd> {
    let file = File::options().read(true).write(true).open(path)?;
    // Over the user's quota of pipe pages it stays at 64 KiB, which only means more wake-ups.
    let _ = fcntl(file.as_fd(), FcntlArg::F_SETPIPE_SZ(SIZE));
    Ok(file.into())
}

/// Keeps the FIFO in being: what is in it stays, and no reader is told that its last writer has gone.
///
/// That news would be no event but a state that lasts (`POLLHUP`), for as long as a prover runs that has closed its
/// output.
///
/// # Errors
/// The file system's.
pub fn hold(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Opens the end for a reader, which never waits for a writer.
///
/// # Errors
/// The file system's.
pub fn open_for_reader(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}
