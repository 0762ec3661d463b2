//! Marks of killers in user space on a cgroup.
//!
//! systemd-oomd counts its kills in extended attributes of the cgroup v2 folder whose processes it killed, which may be
//! one *above* that of the prover: ask for each up to the root. The folder of a unit can vanish right after the kill;
//! then the marks are unreadable, not absent.
//!
//! earlyoom and nohang leave no mark: only a line in the journal or on their standard error, and a SIGKILL (or SIGTERM)
//! whose sender a [`tracefs`](crate::tracefs) trace names.

use std::path::Path;

use rustix::fs::getxattr;
use rustix::io::Errno;
use sexton_model::oomd::OomdMarks;
use sexton_model::reading::{ObstacleKind, Reading};

/// A decimal number of 64 bits has 20 digits.
const LONGEST_VALUE: usize = 32;

/// Reads the marks on the cgroup folder `cgroup`.
///
/// Absent: no mark, which is also the answer of file systems without such attributes (cgroup v1, v2 before Linux 5.7:
/// systemd-oomd cannot mark there). Unreadable: the folder is gone or may not be read.
pub fn oomd_marks(cgroup: &Path) -> OomdMarks {
    OomdMarks { ooms: counter(cgroup, "user.oomd_ooms"), kills: counter(cgroup, "user.oomd_kill") }
}

fn counter(cgroup: &Path, name: &str) -> Reading<u64> {
    let mut value = [0; LONGEST_VALUE];
    let told = |detail: String| format!("{}: {name}: {detail}", cgroup.display());
    let length = match getxattr(cgroup, name, &mut value) {
        Ok(length) => length,
        Err(Errno::NODATA | Errno::NOTSUP) => return Reading::Absent,
        Err(error) => {
            let kind = match error {
                Errno::ACCESS | Errno::PERM => ObstacleKind::Denied,
                Errno::NOENT => ObstacleKind::Vanished,
                Errno::RANGE => ObstacleKind::Malformed,
                _ => ObstacleKind::Failed,
            };
            return Reading::unreadable(kind, told(std::io::Error::from(error).to_string()));
        }
    };
    let text = String::from_utf8_lossy(value.get(..length).unwrap_or_default()).into_owned();
    match text.trim_end_matches(['\0', '\n']).parse() {
        Ok(count) => Reading::Value(count),
        Err(_) => Reading::unreadable(ObstacleKind::Malformed, told(format!("not a number: {text:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{XattrFlags, setxattr};
    use std::io::Write;

    use super::*;

    #[test]
    fn marks_are_read_absent_or_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let none = oomd_marks(folder.path());
        assert_eq!((none.ooms, none.kills), (Reading::Absent, Reading::Absent));

        let gone = oomd_marks(&folder.path().join("gone"));
        assert_eq!(gone.kills.obstacle().unwrap().kind, ObstacleKind::Vanished);

        let set = |name: &str, value: &[u8]| setxattr(folder.path(), name, value, XattrFlags::empty());
        if let Err(error) = set("user.oomd_kill", b"3") {
            let _ = writeln!(
                std::io::stderr(),
                "skipped: user.oomd_kill: no such attributes in {folder:?}: {error}"
            );
            return;
        }
        set("user.oomd_ooms", b"many").unwrap();
        let marks = oomd_marks(folder.path());
        assert_eq!(marks.kills, Reading::Value(3));
        assert_eq!(marks.ooms.obstacle().unwrap().kind, ObstacleKind::Malformed);
        set("user.oomd_ooms", &[b'1'; 80]).unwrap();
        assert_eq!(oomd_marks(folder.path()).ooms.obstacle().unwrap().kind, ObstacleKind::Malformed);
    }
}
