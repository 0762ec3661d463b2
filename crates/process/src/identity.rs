//! What tells one process from every other that this host ever ran.

use std::os::unix::fs::MetadataExt;
use std::{fs, io};

use sexton_model::run::ProcessIdentity;

/// The identity of the process that has `pid` now. To be sure that it is the one a [`crate::Pidfd`] refers to, call
/// this after opening it and ask [`crate::Pidfd::has_ended`] or [`crate::Pidfd::signal`] once more.
///
/// # Errors
/// `ENOENT` or `ESRCH` where there is no such process; others where `/proc` is not readable.
pub fn identity(pid: i32) -> io::Result<ProcessIdentity> {
    Ok(ProcessIdentity {
        boot_id: boot_id()?,
        pid_namespace: fs::metadata("/proc/self/ns/pid")?.ino(),
        pid,
        start_ticks: start_ticks(pid)?,
    })
}

/// The random id of this boot.
///
/// # Errors
/// Where `/proc` is not readable.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Field 22 of `/proc/PID/stat` (proc_pid_stat(5)): start time in clock ticks since boot. It stays readable while
/// the process is a zombie.
///
/// # Errors
/// As [`identity()`].
pub fn start_ticks(pid: i32) -> io::Result<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat"))?;
    // The name (field 2) is in parentheses and may hold any byte, a ")" too: count from the last one.
    let text = String::from_utf8_lossy(&stat);
    let fields = text.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
    let ticks = fields.split_ascii_whitespace().nth(19).and_then(|field| field.parse().ok());
    ticks.ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat has no field 22"))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn own_identity_is_stable_and_differs_from_the_parents() {
        let own = super::identity(std::process::id() as i32).unwrap();
        assert_eq!(own, super::identity(own.pid).unwrap());
        let parent = super::identity(std::os::unix::process::parent_id() as i32).unwrap();
        assert_ne!(own, parent);
        assert_eq!(own.boot_id, parent.boot_id);
    }

    #[test]
    fn no_such_process_is_an_error() {
        assert!(super::identity(i32::MAX).is_err());
    }
}
