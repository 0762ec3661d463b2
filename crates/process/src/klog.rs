//! The kernel log by `syslog(2)`: the second door, for where `/dev/kmsg` is missing.

use std::io;

use libc::c_int;

/// `SYSLOG_ACTION_READ_ALL`: the ring buffer, oldest line first; nothing is consumed.
const READ_ALL: c_int = 3;
/// `SYSLOG_ACTION_SIZE_BUFFER`.
const SIZE_BUFFER: c_int = 10;

/// Bounds of what is read. The ring is 128 KiB to a few MiB nearly everywhere.
const LEAST: usize = 64 << 10;
const MOST: usize = 256 << 20;

/// The whole kernel log: lines `<PRIORITY>[SECONDS.MICROSECONDS] TEXT`, raw bytes.
///
/// A line grows by its prefix on the way out, so the buffer is four times the ring: a smaller one would lose the oldest
/// lines.
///
/// # Errors
/// `EPERM` without CAP_SYSLOG where `kernel.dmesg_restrict` is 1, or under a seccomp filter (containers); `ENOSYS`
/// where the kernel has no log.
pub fn read_kernel_log() -> io::Result<Vec<u8>> {
    // SAFETY: with this action the kernel takes neither buffer nor length.
    let ring = checked(unsafe { libc::klogctl(SIZE_BUFFER, std::ptr::null_mut(), 0) })?;
    let mut buffer = vec![0_u8; ring.saturating_mul(4).clamp(LEAST, MOST)];
    let room = c_int::try_from(buffer.len()).unwrap_or(c_int::MAX);
    // SAFETY: the kernel writes at most `room` bytes, and the buffer has as many.
    let written = checked(unsafe { libc::klogctl(READ_ALL, buffer.as_mut_ptr().cast(), room) })?;
    buffer.truncate(written);
    Ok(buffer)
}

fn checked(result: c_int) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_or_refused_with_a_reason() {
        match read_kernel_log() {
            Ok(log) => assert!(log.is_empty() || log.starts_with(b"<"), "{:?}", &log[..log.len().min(80)]),
            Err(error) => assert!(
                matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)),
                "unexpected: {error}"
            ),
        }
    }
}
