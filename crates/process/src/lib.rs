//! Acts on processes: makes them, signals them, waits for them.
//!
//! This crate stands at the edge of the flow: the supervisor and its keeper call it, and nothing in it decides
//! anything. Its three rules come from what goes wrong elsewhere:
//!
//! * **Addressed waits only.** A blind `waitpid(-1)` steals the status that somebody else waits for, so every wait
//!   names a process ([`Pidfd::peek`], [`reap_orphans`]).
//! * **Signals by pidfd only.** A PID can be reused between the look and the kill; a [`Pidfd`] cannot. (A group is
//!   signalled by number, while its leader is a child of ours that nobody has reaped: [`kill_group`].)
//! * **Look before reaping.** [`Pidfd::peek`] leaves the zombie in place, so that its evidence can be read, and its
//!   status written durably, while the PID still means this process.
//!
//! | module | does |
//! |---|---|
//! | [`spawn`] | makes a process that waits, fully prepared, until it may run its program |
//! | [`limits`] | resource limits by name |
//! | [`cgroup`] | makes, limits, kills and removes cgroups of our own |
//! | [`pidfd`] | a handle on one process: signal, peek, reap, exit status of a stranger |
//! | [`orphans`] | reaps what a subreaper inherits, without touching its own children |
//! | [`group`] | ends a process group of our own |
//! | [`inherit`] | takes over descriptors that came through `exec` |
//! | [`identity`] | boot id, PID namespace and start time of a process |
//! | [`fifo`], [`splice`] | the FIFO that carries a prover's output, and its way into a file inside the kernel |
//! | [`klog`] | the kernel log by `syslog(2)` |
//! | [`notify_socket`] | receives `sd_notify(3)` messages, with who sent them |
//! | [`watch`] | tells when a file has grown |
//! | [`ready`], [`readable`] | wait until descriptors have something: by `poll`, and inside the runtime |
// The crate exists for system calls that have no safe wrapper; each block says why it is sound.
#![allow(unsafe_code)]

pub mod cgroup;
pub mod fifo;
pub mod group;
pub mod identity;
pub mod inherit;
pub mod klog;
pub mod limits;
pub mod notify_socket;
pub mod orphans;
pub mod pidfd;
pub mod readable;
pub mod ready;
pub mod spawn;
pub mod splice;
pub mod watch;

pub use group::kill_group;
pub use identity::{identity, start_ticks};
pub use inherit::inherited;
pub use limits::{ResourceLimit, no_core};
pub use notify_socket::{Datagram, NotifySocket, is_at_or_below};
pub use orphans::{children, reap_orphans};
pub use pidfd::{Ended, Pidfd, Usage};
pub use readable::Readable;
pub use spawn::{Held, Spawn, SpawnError, Stage};

pub use libc::{EBUSY, ECANCELED, EINVAL, EIO, ENOENT, ESRCH, SIGINT, SIGKILL, SIGTERM};

/// Names the calling thread, of the main thread the process, as `ps` shows it: 15 bytes at most.
///
/// # Errors
/// The kernel's, in practice never.
pub fn set_name(name: &std::ffi::CStr) -> std::io::Result<()> {
    Ok(nix::sys::prctl::set_name(name)?)
}

/// From now on, files and sockets that this process makes are for its user alone. Returns the mask before.
pub fn make_files_private() -> u32 {
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077)).bits()
}

/// Makes the calling process a subreaper: orphans below it become its children instead of PID 1's. Kept over `exec`,
/// not inherited by `fork` (prctl(2), `PR_SET_CHILD_SUBREAPER`).
///
/// # Errors
/// The kernel's, in practice never (Linux ≥ 3.4).
pub fn become_subreaper() -> std::io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}
