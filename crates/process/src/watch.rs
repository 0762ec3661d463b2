//! Tells when a file, or one in a folder, has grown, without polling.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

/// Readable (`poll`) once a file was written to, or moved into the folder, since the last [`Self::clear`].
#[derive(Debug)]
pub struct Watch(Inotify);

impl Watch {
    /// Watches `path`, a file or a folder of files, for writes.
    ///
    /// # Errors
    /// `ENOENT`, or `EMFILE`/`ENOSPC` at the user's limit of inotify instances or watches.
    pub fn writes(path: &Path) -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        inotify.add_watch(path, AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_MOVED_TO)?;
        Ok(Self(inotify))
    }

    /// Forgets the writes so far.
    ///
    /// # Errors
    /// The kernel's, in practice never.
    pub fn clear(&self) -> io::Result<()> {
        loop {
            match self.0.read_events() {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Watch {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}
