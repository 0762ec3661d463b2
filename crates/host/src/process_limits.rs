//! `/proc/PID/limits`: takes no lock of the process.

use std::path::Path;

use sexton_model::cgroup::Limit;
use sexton_model::process_limits::ProcessLimits;
use sexton_model::reading::Reading;

use crate::files::Files;
use crate::flat_keyed::number;

/// The reader's own.
pub const OWN: &str = "/proc/self/limits";

/// Soft limits of process `pid`; of the reader itself, and so of the children that it makes, without one.
pub fn read(files: &Files, pid: Option<i32>) -> ProcessLimits {
    let path = pid.map_or_else(|| OWN.to_owned(), |pid| format!("/proc/{pid}/limits"));
    let path = Path::new(&path);
    let limit = |name: &str| {
        let found = files.parsed(path, |bytes| soft(bytes, name));
        found.and_then(|limit| limit.map_or(Reading::Absent, Reading::Value))
    };
    ProcessLimits { address_space: limit("Max address space"), data: limit("Max data size") }
}

/// `Max address space         unlimited            unlimited            bytes`
fn soft(bytes: &[u8], name: &str) -> Result<Option<Limit>, String> {
    let text = String::from_utf8_lossy(bytes);
    let Some(rest) = text.lines().find_map(|line| line.strip_prefix(name)) else { return Ok(None) };
    match rest.split_whitespace().next() {
        Some("unlimited") => Ok(Some(Limit::Unlimited)),
        Some(word) => match number(word) {
            Some(bytes) => Ok(Some(Limit::Bytes(bytes))),
            None => Err(format!("{name} is {word:?}, neither a number nor \"unlimited\"")),
        },
        None => Err(format!("{name} has no value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Snapshot;

    fn read_from(text: &str) -> ProcessLimits {
        let mut snapshot = Snapshot::default();
        snapshot.insert(OWN, Ok(text.as_bytes().to_vec()));
        read(&Files::Snapshot(snapshot), None)
    }

    #[test]
    fn soft_limits_by_name() {
        let limits = read_from(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max data size             unlimited            unlimited            bytes     \n\
             Max address space         68719476736          unlimited            bytes     \n",
        );
        assert_eq!(limits.address_space, Reading::Value(Limit::Bytes(64 << 30)));
        assert_eq!(limits.data, Reading::Value(Limit::Unlimited));
    }

    #[test]
    fn a_missing_line_is_absent_and_a_bad_one_an_obstacle() {
        let limits = read_from("Max address space         many bytes\n");
        assert!(limits.address_space.obstacle().is_some());
        assert_eq!(limits.data, Reading::Absent);
    }

    #[test]
    fn our_own_are_read() {
        let limits = read(&Files::system(), None);
        assert!(limits.address_space.value().is_some() && limits.data.value().is_some());
    }
}
