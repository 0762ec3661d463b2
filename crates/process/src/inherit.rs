//! Descriptors that this process was started with.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Takes over descriptor `number` (3–63), which whoever started this process left open for it, and marks it
/// close-on-exec.
///
/// # Errors
/// `EBADF` where it is not open; `EBUSY` where it was taken already or was not inherited: everything that this
/// process opens itself is close-on-exec, what came through `exec` is not.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    let bit = 1u64.checked_shl(number as u32).unwrap_or(0);
    if number < 3 || bit == 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: only asks for the flags; the kernel answers EBADF where the number is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = FdFlag::from_bits_retain(fcntl(borrowed, FcntlArg::F_GETFD)?);
    if flags.contains(FdFlag::FD_CLOEXEC) || TAKEN.fetch_or(bit, Ordering::SeqCst) & bit != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    // SAFETY: it is open, was not opened by this process, and is taken at most once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
