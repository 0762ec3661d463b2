//! The receiving end of `sd_notify(3)`: a datagram socket that knows who sent what.
//!
//! Whoever may write to the socket may send anything: more than fits, and descriptors by the hundred. Descriptors are
//! received (there is no way not to) and are closed with the [`Datagram`] that holds them.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use nix::sys::socket::{setsockopt, sockopt};

/// The longest message, bytes. systemd takes as much (`PIPE_BUF`).
pub const MESSAGE_MAX: usize = 4096;

/// The most descriptors that the kernel passes with one message (`SCM_MAX_FD`).
const DESCRIPTORS_MAX: usize = 253;

/// Room for credentials and as many descriptors.
const CONTROL_BYTES: usize = 64 + DESCRIPTORS_MAX.next_multiple_of(2) * size_of::<RawFd>();

/// Aligned as control messages are.
#[repr(align(8))]
struct Control([u8; CONTROL_BYTES]);

/// How many parents are followed from a sender upwards; a deeper tree than this is no prover's.
const DEPTH_MAX: usize = 256;

/// What one process sent.
#[derive(Debug)]
pub struct Datagram {
    /// PID of the sender in our PID namespace, as the kernel vouches for it; `None` for a process of another one.
    pub sender: Option<i32>,
    /// The message, at most [`MESSAGE_MAX`] bytes.
    pub bytes: Vec<u8>,
    /// There was more than that.
    pub truncated: bool,
    /// What came with it. Closed when dropped.
    pub descriptors: Vec<OwnedFd>,
}

/// A bound notification socket.
#[derive(Debug)]
pub struct NotifySocket(UnixDatagram);

impl NotifySocket {
    /// Binds to `path`, in the place of a socket that an earlier supervisor left there. For this user alone.
    ///
    /// # Errors
    /// The kernel's; a path with something else than a socket in it is left as it is.
    pub fn bind(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt};
        if fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) {
            fs::remove_file(path)?;
        }
        let socket = UnixDatagram::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        socket.set_nonblocking(true)?;
        setsockopt(&socket, sockopt::PassCred, &true)?;
        Ok(Self(socket))
    }

    /// The next datagram, `None` where none waits.
    ///
    /// # Errors
    /// The kernel's.
    pub fn receive(&self) -> io::Result<Option<Datagram>> {
        // One byte more than fits, so that a message of exactly the most is whole.
        let mut bytes = vec![0u8; MESSAGE_MAX + 1];
        let mut control = Control([0; CONTROL_BYTES]);
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: all-zero bytes are a valid value of this plain C structure.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_BYTES as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: the header points to live, writable buffers of the lengths that it tells.
        let length = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, flags) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        }
        let length = length as usize;
        // SAFETY: the header is as the kernel has just filled it in.
        let (sender, descriptors) = unsafe { take_control(&header) };
        bytes.truncate(length.min(MESSAGE_MAX));
        let truncated = length > MESSAGE_MAX || header.msg_flags & libc::MSG_TRUNC != 0;
        Ok(Some(Datagram { sender, bytes, truncated, descriptors }))
    }
}

/// Sender and descriptors of a received message. Not by `nix`: that answers with an error where some descriptors found no
/// room in our table (`MSG_CTRUNC`), and those that did stay open for ever.
///
/// # Safety
/// `header` was filled in by a successful `recvmsg`, and this is called once for it: the descriptors are new and ours.
unsafe fn take_control(header: &libc::msghdr) -> (Option<i32>, Vec<OwnedFd>) {
    let (mut sender, mut descriptors) = (None, Vec::new());
    // SAFETY: the macros walk the control buffer within the length that the kernel has set.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: as above; a message that is there is whole.
        let (level, kind, data) =
            unsafe { ((*message).cmsg_level, (*message).cmsg_type, libc::CMSG_DATA(message)) };
        // SAFETY: as above; `CMSG_LEN(0)` is the length of the header alone.
        let bytes = unsafe { (*message).cmsg_len as usize - libc::CMSG_LEN(0) as usize };
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if bytes >= size_of::<libc::ucred>() => {
                // SAFETY: so many bytes are there; read without regard to alignment.
                let credentials = unsafe { data.cast::<libc::ucred>().read_unaligned() };
                sender = Some(credentials.pid).filter(|pid| *pid > 0);
            }
            (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                for index in 0..bytes / size_of::<RawFd>() {
                    // SAFETY: within `bytes`; the kernel has just installed this descriptor for us.
                    descriptors.push(unsafe {
                        OwnedFd::from_raw_fd(data.cast::<RawFd>().add(index).read_unaligned())
                    });
                }
            }
            _ => {}
        }
        // SAFETY: as for the first one.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    (sender, descriptors)
}

impl AsFd for NotifySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether `pid` is one of `roots` or below one of them now. A process that is gone, or whose parents cannot be read, is
/// not.
pub fn is_at_or_below(pid: i32, roots: &[i32]) -> bool {
    let mut at = pid;
    for _ in 0..DEPTH_MAX {
        if roots.contains(&at) {
            return true;
        }
        match parent(at) {
            Some(parent) if parent > 0 => at = parent,
            _ => return false,
        }
    }
    false
}

/// Field 4 of `/proc/PID/stat` (proc_pid_stat(5)).
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name (field 2) is in parentheses and may hold any byte, a ")" too: count from the last one.
    String::from_utf8_lossy(&stat).rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
    use std::io::IoSlice;

    fn open_descriptors() -> usize {
        fs::read_dir("/proc/self/fd").unwrap().count()
    }

    fn send(path: &Path, bytes: &[u8], descriptors: &[RawFd]) {
        let socket = UnixDatagram::unbound().unwrap();
        let address = UnixAddr::new(path).unwrap();
        let rights = [ControlMessage::ScmRights(descriptors)];
        let control = if descriptors.is_empty() { &rights[..0] } else { &rights[..] };
        sendmsg(socket.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::empty(), Some(&address))
            .unwrap();
    }

    #[test]
    fn a_message_comes_with_its_sender_and_nothing_waits_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.sock");
        let socket = NotifySocket::bind(&path).unwrap();
        send(&path, b"READY=1", &[]);
        let datagram = socket.receive().unwrap().unwrap();
        assert_eq!(datagram.sender, Some(std::process::id() as i32));
        assert_eq!((&datagram.bytes[..], datagram.truncated), (&b"READY=1"[..], false));
        assert!(socket.receive().unwrap().is_none());
    }

    #[test]
    fn what_is_too_long_is_cut_and_said_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.sock");
        let socket = NotifySocket::bind(&path).unwrap();
        for (length, truncated) in [(MESSAGE_MAX, false), (MESSAGE_MAX + 1, true), (100_000, true)] {
            send(&path, &vec![b'x'; length], &[]);
            let datagram = socket.receive().unwrap().unwrap();
            assert_eq!((datagram.bytes.len(), datagram.truncated), (MESSAGE_MAX, truncated), "{length}");
        }
    }

    #[test]
    fn every_descriptor_that_came_along_is_closed_with_its_message() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.sock");
        let socket = NotifySocket::bind(&path).unwrap();
        let file = fs::File::open("/dev/null").unwrap();
        send(&path, b"FDSTORE=1", &[file.as_raw_fd(); DESCRIPTORS_MAX]);
        let datagram = socket.receive().unwrap().unwrap();
        assert_eq!(datagram.descriptors.len(), DESCRIPTORS_MAX);
        assert_eq!(datagram.sender, Some(std::process::id() as i32));
        // Other tests of this process open a few meanwhile.
        assert!(open_descriptors() > DESCRIPTORS_MAX);
        drop(datagram);
        assert!(open_descriptors() < DESCRIPTORS_MAX, "{}", open_descriptors());
    }

    #[test]
    fn a_socket_left_behind_is_replaced_and_a_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.sock");
        drop(NotifySocket::bind(&path).unwrap());
        NotifySocket::bind(&path).unwrap();
        let file = folder.path().join("precious");
        fs::write(&file, "x").unwrap();
        assert_eq!(NotifySocket::bind(&file).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read(&file).unwrap(), b"x");
    }

    #[test]
    fn a_process_is_below_its_ancestors_and_not_below_others() {
        let own = std::process::id() as i32;
        let parent = std::os::unix::process::parent_id() as i32;
        assert!(is_at_or_below(own, &[own]));
        assert!(is_at_or_below(own, &[parent]));
        assert!(!is_at_or_below(parent, &[own]));
        assert!(!is_at_or_below(own, &[]));
        assert!(!is_at_or_below(i32::MAX, &[own]));
    }
}
