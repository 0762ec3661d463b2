//! Where the server listens: a Unix socket that only its owner can open, and loopback TCP if asked.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, umask};

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Somebody serves there.
    #[error("{0}: a prover serves there already: stop it, or choose another --socket")]
    InUse(PathBuf),
    /// Something else has that name.
    #[error("{0}: exists and is not a socket: choose another --socket")]
    NotASocket(PathBuf),
    /// The system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others could connect.
    #[error(
        "--listen {0}: not a loopback address: use 127.0.0.1:PORT or [::1]:PORT, and a tunnel from elsewhere"
    )]
    NotLoopback(SocketAddr),
    /// The TCP address cannot be had.
    #[error("--listen {address}: {source}")]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// A listening Unix socket, mode 0600. Its file is removed when it is dropped.
pub struct Socket {
    path: PathBuf,
    listener: UnixListener,
    /// Held while we serve: two provers that start at once cannot both find the socket stale.
    _lock: File,
}

impl Socket {
    /// Listens at `path`, whose folder is made (mode 0700) if it is missing. A socket left behind by a dead prover is
    /// replaced, after nobody has answered on it. The process's file mode mask is 0077 from then on.
    ///
    /// # Errors
    /// [`SocketError`].
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        let failed = |action| {
            let path = path.to_owned();
            move |source| SocketError::Io { action, path, source }
        };
        umask(Mode::S_IRWXG | Mode::S_IRWXO);
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(failed("create the folder of"))?;
        }
        let mut lock_path = path.as_os_str().to_owned();
        lock_path.push(".lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(failed("create the lock of"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SocketError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
        }
        remove_stale(path)?;
        let listener = UnixListener::bind(path).map_err(failed("listen on"))?;
        // The mask has kept others out from the first moment; this takes the owner's superfluous x.
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed("set the mode of"))?;
        listener.set_nonblocking(true).map_err(failed("listen on"))?;
        Ok(Self { path: path.to_owned(), listener, _lock: lock })
    }

    /// The listener, for the runtime; the file stays until the socket is dropped.
    ///
    /// # Errors
    /// When the runtime cannot watch it.
    pub fn listener(&self) -> io::Result<tokio::net::UnixListener> {
        tokio::net::UnixListener::from_std(self.listener.try_clone()?)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes a socket on which nobody answers.
fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let failed = |action| {
        let path = path.to_owned();
        move |source| SocketError::Io { action, path, source }
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(failed("look at")(source)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(SocketError::NotASocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        // Refused is the kernel's word that no process listens. A full backlog, or anything else, is no such proof.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed("replace"))
        }
        Err(source) if source.kind() != io::ErrorKind::WouldBlock => {
            Err(failed("tell who serves at")(source))
        }
        _ => Err(SocketError::InUse(path.to_owned())),
    }
}

/// Listens on a loopback address.
///
/// # Errors
/// [`SocketError::NotLoopback`] or [`SocketError::Tcp`].
pub fn bind_tcp(address: SocketAddr) -> Result<std::net::TcpListener, SocketError> {
    if !address.ip().is_loopback() {
        return Err(SocketError::NotLoopback(address));
    }
    let listener = std::net::TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|source| SocketError::Tcp { address, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_for_its_owner_only_and_goes_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/prover.sock");
        let socket = Socket::bind(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_live_socket_is_refused_and_a_stale_one_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prover.sock");
        let other = UnixListener::bind(&path).unwrap();
        assert!(matches!(Socket::bind(&path), Err(SocketError::InUse(_))));
        drop(other);
        assert!(path.exists());
        let socket = Socket::bind(&path).unwrap();
        assert!(matches!(Socket::bind(&path), Err(SocketError::InUse(_))));
        assert!(path.exists());
        drop(socket);
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prover.sock");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(Socket::bind(&path), Err(SocketError::NotASocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn others_cannot_connect_over_tcp() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
            assert!(matches!(bind_tcp(address.parse().unwrap()), Err(SocketError::NotLoopback(_))));
        }
        assert!(bind_tcp("127.0.0.1:0".parse().unwrap()).is_ok());
    }
}
