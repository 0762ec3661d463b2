//! A handle on one process.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use sexton_model::wait::WaitStatus;

/// What a process used, itself and the children it waited for (`getrusage(2)`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Largest resident set of any one of them, bytes.
    pub max_rss_bytes: u64,
}

/// A process that has ended and is not reaped yet, or has just been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub status: WaitStatus,
    /// What it used.
    pub usage: Usage,
}

/// `pidfd_open(2)`, Linux ≥ 5.3: refers to this process and never to another that gets its PID later.
/// Readable (`poll`) once every thread of the process has ended.
#[derive(Debug)]
pub struct Pidfd(OwnedFd);

impl Pidfd {
    /// A handle on the process that has `pid` now. For a process that is not an unreaped child of the caller, verify
    /// its [identity](crate::identity()) *after* this call.
    ///
    /// # Errors
    /// `ESRCH` where there is none. `EINVAL` can mean that it is dying just now (or that `pid` is a thread).
    pub fn open(pid: i32) -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just returned this descriptor to us, close-on-exec; nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
    }

    /// Sends `signal`; 0 only asks whether that would be allowed.
    ///
    /// # Errors
    /// `ESRCH` once it is reaped. A zombie takes signals without an error, so success does not mean that it lives.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let no_info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: a null siginfo is allowed, the kernel then fills in what kill(2) would.
        let rc =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal, no_info, 0) };
        if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// How it ended, leaving it unreaped: `None` while any of its threads lives.
    ///
    /// # Errors
    /// `ECHILD` where it is not a child of the caller or was reaped already.
    pub fn peek(&self) -> io::Result<Option<Ended>> {
        wait(libc::P_PIDFD, self.0.as_raw_fd() as libc::id_t, libc::WNOHANG | libc::WNOWAIT)
            .map(|ended| ended.map(|(_, ended)| ended))
    }

    /// Reaps it: `None` while any of its threads lives.
    ///
    /// # Errors
    /// As [`Self::peek`].
    pub fn reap(&self) -> io::Result<Option<Ended>> {
        wait(libc::P_PIDFD, self.0.as_raw_fd() as libc::id_t, libc::WNOHANG)
            .map(|ended| ended.map(|(_, ended)| ended))
    }

    /// Waits for its end and reaps it.
    ///
    /// # Errors
    /// As [`Self::peek`].
    pub fn wait(&self) -> io::Result<Ended> {
        match wait(libc::P_PIDFD, self.0.as_raw_fd() as libc::id_t, 0)? {
            Some((_, ended)) => Ok(ended),
            None => Err(io::Error::other("waitid without WNOHANG returned without a child")),
        }
    }

    /// Whether all its threads have ended, child or not.
    ///
    /// # Errors
    /// The kernel's.
    pub fn has_ended(&self) -> io::Result<bool> {
        let mut fds = [nix::poll::PollFd::new(self.as_fd(), nix::poll::PollFlags::POLLIN)];
        Ok(nix::poll::poll(&mut fds, nix::poll::PollTimeout::ZERO)? > 0)
    }

    /// How a process that is *not* our child ended, from `PIDFD_GET_INFO` (Linux ≥ 6.15). `None` where the kernel
    /// does not say: too old, or the process is not reaped yet.
    ///
    /// The returned mask decides. For a zombie the kernel answers with exit code 0 and without the mask's bit, and
    /// that 0 means nothing.
    pub fn exit_status_of_stranger(&self) -> Option<WaitStatus> {
        /// `struct pidfd_info` of `include/uapi/linux/pidfd.h`, version 0.
        #[repr(C)]
        #[derive(Default)]
        struct PidfdInfo {
            mask: u64,
            cgroup_id: u64,
            ids: [u32; 11],
            exit_code: i32,
        }
        const PIDFD_INFO_EXIT: u64 = 1 << 3;
        const _: () = assert!(size_of::<PidfdInfo>() == 64);
        /// `_IOWR(0xFF, 11, struct pidfd_info)`.
        const PIDFD_GET_INFO: u64 = 3 << 30 | 64 << 16 | 0xff << 8 | 11;

        let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..Default::default() };
        // SAFETY: the request number carries the size of the structure, and the kernel writes no more than that.
        let rc = unsafe { libc::ioctl(self.0.as_raw_fd(), PIDFD_GET_INFO as _, &raw mut info) };
        (rc == 0 && info.mask & PIDFD_INFO_EXIT != 0).then(|| WaitStatus::from_raw(info.exit_code))
    }

    /// Takes over a descriptor that was received from another process.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Pidfd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// `waitid(2)` for ended children, with the fifth argument that only the system call has: the usage, which the kernel
/// fills in for `WNOWAIT` too.
pub(crate) fn wait(
    id_type: libc::idtype_t,
    id: libc::id_t,
    options: libc::c_int,
) -> io::Result<Option<(i32, Ended)>> {
    loop {
        // SAFETY: all-zero bytes are a valid value of both plain C structures.
        let (mut info, mut usage): (libc::siginfo_t, libc::rusage) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: both pointers are to live, writable structures of the types that the call expects.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_waitid,
                id_type,
                id,
                &raw mut info,
                options | libc::WEXITED,
                &raw mut usage,
            )
        };
        if rc < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        // SAFETY: waitid fills in the child's fields of the union; with WNOHANG and no child they stay zero.
        let (pid, value) = unsafe { (info.si_pid(), info.si_status()) };
        if pid == 0 {
            return Ok(None);
        }
        let status = match info.si_code {
            libc::CLD_EXITED => WaitStatus::exited(value),
            libc::CLD_KILLED => WaitStatus::killed(value, false),
            libc::CLD_DUMPED => WaitStatus::killed(value, true),
            _ => WaitStatus::UNKNOWN,
        };
        let time =
            |t: libc::timeval| Duration::new(t.tv_sec.max(0) as u64, (t.tv_usec.max(0) as u32) * 1_000);
        let usage = Usage {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            max_rss_bytes: usage.ru_maxrss.max(0) as u64 * 1024,
        };
        return Ok(Some((pid, Ended { status, usage })));
    }
}
