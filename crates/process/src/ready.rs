//! Waits until one of a few descriptors has something, without allocating.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// How many descriptors one call can wait for.
pub const MOST: usize = 16;

/// A descriptor to wait for, and what was found.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    fd: Option<BorrowedFd<'a>>,
    /// There is something to read, or to accept, or an error to fetch.
    pub readable: bool,
    /// The other side is gone. There may still be something to read.
    pub hung_up: bool,
}

impl<'a> Slot<'a> {
    /// Waits for `fd` to become readable; `None` is never ready.
    pub fn new(fd: Option<BorrowedFd<'a>>) -> Self {
        Self { fd, readable: false, hung_up: false }
    }
}

/// Whether a short write (4096 bytes, `PIPE_BUF`) to `fd` would not wait for a reader.
pub fn is_writable(fd: BorrowedFd<'_>) -> bool {
    let mut entry = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: points to one live entry.
    unsafe { libc::poll(&raw mut entry, 1, 0) > 0 }
}

/// Waits until a slot is ready, a signal was handled, or `timeout` (rounded up to milliseconds) is over.
///
/// # Errors
/// The kernel's; more than [`MOST`] slots are `EINVAL`.
pub fn wait(slots: &mut [Slot<'_>], timeout: Option<Duration>) -> io::Result<()> {
    let mut fds = [libc::pollfd { fd: -1, events: 0, revents: 0 }; MOST];
    let fds = fds.get_mut(..slots.len()).ok_or(io::Error::from_raw_os_error(libc::EINVAL))?;
    for (entry, slot) in fds.iter_mut().zip(slots.iter()) {
        entry.fd = slot.fd.map_or(-1, |fd| fd.as_raw_fd());
        entry.events = libc::POLLIN;
    }
    let milliseconds = timeout.map_or(-1, |t| t.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32);
    // SAFETY: points to `slots.len()` live entries.
    if unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, milliseconds) } < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
    }
    for (entry, slot) in fds.iter().zip(slots) {
        slot.readable = entry.revents & (libc::POLLIN | libc::POLLERR | libc::POLLNVAL) != 0;
        slot.hung_up = entry.revents & libc::POLLHUP != 0;
    }
    Ok(())
}
