//! Resource limits by name: what is asked for a program, and what a process has. Source: getrlimit(2).

use std::io;

/// The value of a limit that does not limit.
pub const UNLIMITED: u64 = libc::RLIM_INFINITY;

/// A limit for a program that is to be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimit {
    /// `RLIMIT_*`, as [`number`] finds it.
    pub resource: u32,
    /// What applies; the program may raise it up to `hard`. In the resource's own unit: bytes, descriptors, seconds.
    pub soft: u64,
    /// What `soft` may be raised to. To raise this one takes CAP_SYS_RESOURCE.
    pub hard: u64,
}

/// Every resource with the name that `ulimit`'s documentation, systemd and containers have for it, in lower case.
const RESOURCES: [(&str, u32); 16] = [
    ("as", libc::RLIMIT_AS),
    ("core", libc::RLIMIT_CORE),
    ("cpu", libc::RLIMIT_CPU),
    ("data", libc::RLIMIT_DATA),
    ("fsize", libc::RLIMIT_FSIZE),
    ("locks", libc::RLIMIT_LOCKS),
    ("memlock", libc::RLIMIT_MEMLOCK),
    ("msgqueue", libc::RLIMIT_MSGQUEUE),
    ("nice", libc::RLIMIT_NICE),
    ("nofile", libc::RLIMIT_NOFILE),
    ("nproc", libc::RLIMIT_NPROC),
    ("rss", libc::RLIMIT_RSS),
    ("rtprio", libc::RLIMIT_RTPRIO),
    ("rttime", libc::RLIMIT_RTTIME),
    ("sigpending", libc::RLIMIT_SIGPENDING),
    ("stack", libc::RLIMIT_STACK),
];

/// The names that [`number`] knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    RESOURCES.iter().map(|(name, _)| *name)
}

/// The resource of this name: `nofile`, `memlock`, ….
pub fn number(name: &str) -> Option<u32> {
    RESOURCES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// The name of a resource.
pub fn name(resource: u32) -> Option<&'static str> {
    RESOURCES.iter().find(|(_, number)| *number == resource).map(|(name, _)| *name)
}

/// What process `pid` has. It must be of our user, or we privileged (prlimit(2)).
///
/// # Errors
/// `ESRCH`, `EPERM`.
pub fn of(pid: i32, resource: u32) -> io::Result<ResourceLimit> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads into a live structure and sets nothing.
    let rc = unsafe { libc::prlimit64(pid, resource as _, std::ptr::null(), &raw mut limit) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(ResourceLimit { resource, soft: limit.rlim_cur, hard: limit.rlim_max })
}

/// The limit that keeps a child from dumping core; it may raise it again up to what the parent has.
pub fn no_core() -> ResourceLimit {
    let hard = of(0, libc::RLIMIT_CORE).map_or(0, |own| own.hard);
    ResourceLimit { resource: libc::RLIMIT_CORE, soft: 0, hard }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_each_others() {
        for known in names() {
            assert_eq!(name(number(known).unwrap()), Some(known));
        }
        assert_eq!((number("NOFILE"), number("")), (None, None));
    }

    #[test]
    fn own_limits_are_those_of_proc() {
        let text = std::fs::read_to_string("/proc/self/limits").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        let soft: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(of(0, libc::RLIMIT_NOFILE).unwrap().soft, soft);
    }
}
