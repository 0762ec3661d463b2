//! What a subreaper inherits.

use std::{fs, io};

use crate::pidfd;

/// Reaps ended children that are not in `keep`, and returns how many.
///
/// Each wait is addressed: the children are listed first, so the status of a process in `keep` is never taken.
/// SIGCHLD coalesces, so one call reaps whatever has ended by now.
///
/// # Errors
/// Where the list of children cannot be read.
pub fn reap_orphans(keep: &[i32]) -> io::Result<usize> {
    let mut reaped = 0;
    for pid in children()? {
        if keep.contains(&pid) {
            continue;
        }
        // ECHILD: ended and reaped between the list and here (a thread of ours waited for it).
        if let Ok(Some(_)) = pidfd::wait(libc::P_PID, pid as libc::id_t, libc::WNOHANG) {
            reaped += 1;
        }
    }
    Ok(reaped)
}

/// The children of the calling process, living and ended, inherited ones included.
///
/// # Errors
/// Where neither `/proc/self/task/*/children` (`CONFIG_PROC_CHILDREN`) nor `/proc` can be read.
pub fn children() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for task in fs::read_dir("/proc/self/task")? {
        match fs::read_to_string(task?.path().join("children")) {
            Ok(list) => pids.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            // A thread that has just ended; its children moved to another thread.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return children_by_scan(),
            Err(error) => return Err(error),
        }
    }
    Ok(pids)
}

fn children_by_scan() -> io::Result<Vec<i32>> {
    let own = std::process::id().to_string();
    let is_ours = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Field 4 is the parent; the name before it may hold spaces and parentheses.
        stat.rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1))
            .is_some_and(|parent| parent == own)
    };
    let pids =
        fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    Ok(pids.filter(is_ours).collect())
}
