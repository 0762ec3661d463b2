//! A process of its own: it runs out of descriptors.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::IoSlice;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use sexton_process::NotifySocket;

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn descriptors_that_only_some_of_find_room_are_closed_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify.sock");
    let socket = NotifySocket::bind(&path).unwrap();
    let sender = UnixDatagram::unbound().unwrap();
    let file = fs::File::open("/dev/null").unwrap();
    let before = open_descriptors();
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, before as u64 + 10, hard).unwrap();

    let many = [file.as_raw_fd(); 200];
    let control = [ControlMessage::ScmRights(&many)];
    let address = UnixAddr::new(&path).unwrap();
    let flags = MsgFlags::empty();
    sendmsg(sender.as_raw_fd(), &[IoSlice::new(b"FDSTORE=1")], &control, flags, Some(&address)).unwrap();
    let datagram = socket.receive().unwrap().unwrap();
    assert!((1..200).contains(&datagram.descriptors.len()), "{}", datagram.descriptors.len());
    assert_eq!(datagram.sender, Some(std::process::id() as i32));
    drop(datagram);
    assert_eq!(open_descriptors(), before);
}
