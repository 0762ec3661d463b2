//! Messages to a service manager (`sd_notify(3)`): what a program under one says of itself.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Names the manager's socket.
pub const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// Sends one message to the socket named by `NOTIFY_SOCKET`, where that is set.
///
/// # Errors
/// When it is set and the message cannot be sent: one line with the address.
pub fn notify(message: &str) -> Result<(), String> {
    match std::env::var_os(NOTIFY_SOCKET).filter(|address| !address.is_empty()) {
        Some(address) => send(&address, message)
            .map_err(|error| format!("NOTIFY_SOCKET {}: {error}", address.to_string_lossy())),
        None => Ok(()),
    }
}

/// Sends one message. An address that starts with `@` is in the abstract namespace; any other is an absolute path.
///
/// # Errors
/// The kernel's; `WouldBlock` where the manager does not read, which must not stop us.
pub fn send(address: &OsStr, message: &str) -> io::Result<()> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(address)?,
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "neither an absolute path nor @name")),
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(message.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_message_reaches_a_path_and_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(receive(&by_path), "READY=1");

        let name = format!("sexton-notify-test-{}", std::process::id());
        let by_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        assert_eq!(receive(&by_name), "STOPPING=1");
    }

    #[test]
    fn an_address_that_leads_nowhere_is_an_error() {
        assert!(send(OsStr::new("/no/such/socket"), "READY=1").is_err());
        assert!(send(OsStr::new("relative"), "READY=1").is_err());
    }
}
