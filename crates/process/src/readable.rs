//! Waits for a descriptor inside the tokio runtime.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

/// Watches any descriptor that `poll` works on: a pidfd, a FIFO.
///
/// It holds a duplicate of its own, so the watched object stays free to be used, and to be dropped.
#[derive(Debug)]
pub struct Readable(AsyncFd<OwnedFd>);

impl Readable {
    /// Watches what `fd` refers to. To be called inside a runtime.
    ///
    /// # Errors
    /// `EMFILE`, or the registration's.
    pub fn new(fd: impl AsFd) -> io::Result<Self> {
        let duplicate = fd.as_fd().try_clone_to_owned()?;
        // SAFETY: the descriptor is open, owned by the value that is registered, and never replaced or lent out.
        let registered = unsafe { AsyncFd::register_with_interest(duplicate, Interest::READABLE) };
        Ok(Self(registered.map_err(|error| error.into_parts().1)?))
    }

    /// Waits until there is something to read. It counts as readable until the guard clears that, which whoever has
    /// read everything does.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn wait(&self) -> io::Result<AsyncFdReadyGuard<'_, OwnedFd>> {
        self.0.readable().await
    }
}
