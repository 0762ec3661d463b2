//! Files of lines `KEY NUMBER` ("flat keyed" in the words of cgroup-v2.rst): `memory.stat`, `memory.events`,
//! `memory.oom_control`, `/proc/vmstat`.
//!
//! The parsers of `procfs` are not used for these, nor for `meminfo` and pressure files: they refuse a whole file for one
//! line, and overflow on values that lxcfs wraps around.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sexton_model::reading::{ObstacleKind, Reading};

use crate::files::Files;

/// One such file.
#[derive(Debug)]
pub(crate) struct FlatKeyed {
    path: PathBuf,
    /// `None`: the rest of the line is no number.
    entries: BTreeMap<String, Option<u64>>,
}

impl FlatKeyed {
    /// Reads the file at `path`.
    pub(crate) fn read(files: &Files, path: &Path) -> Reading<Self> {
        files.parsed(path, |bytes| Self::parse(path, bytes))
    }

    /// Of two lines with one key the later one counts.
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(bytes);
        let entries: BTreeMap<_, _> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let (key, value, rest) = (words.next()?, words.next(), words.next());
                Some((key.to_owned(), value.filter(|_| rest.is_none()).and_then(number)))
            })
            .collect();
        if entries.values().all(Option::is_none) {
            return Err("has no line KEY NUMBER".to_owned());
        }
        Ok(Self { path: path.to_owned(), entries })
    }

    /// The number of `key`; absent where no line has it.
    pub(crate) fn get(&self, key: &str) -> Reading<u64> {
        match self.entries.get(key) {
            None => Reading::Absent,
            Some(Some(number)) => Reading::Value(*number),
            Some(None) => {
                let detail = format!("{}: {key} is no number", self.path.display());
                Reading::unreadable(ObstacleKind::Malformed, detail)
            }
        }
    }
}

/// The number of `key` in a file that may itself be missing.
pub(crate) fn get(file: &Reading<FlatKeyed>, key: &str) -> Reading<u64> {
    match file {
        Reading::Value(file) => file.get(key),
        Reading::Absent => Reading::Absent,
        Reading::Unreadable(obstacle) => Reading::Unreadable(obstacle.clone()),
    }
}

/// A decimal number; one too large is `u64::MAX`.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_numbers_saturate_and_what_is_no_number_is_said_to_be_none() {
        assert_eq!(number("18446744073709551616"), Some(u64::MAX));
        assert_eq!(number("18446744073709551360"), Some(u64::MAX - 255));
        for text in ["", "-1", "+1", "1.0", "0x1", "max", " 1", "\u{0661}"] {
            assert_eq!(number(text), None, "{text:?}");
        }
    }

    #[test]
    fn one_bad_line_spoils_only_itself() {
        let file = FlatKeyed::parse(Path::new("/m"), b"oom_kill 3\noom many\n\xff\nmax 1 2\n\n").unwrap();
        assert_eq!(file.get("oom_kill"), Reading::Value(3));
        assert_eq!(file.get("oom_group_kill"), Reading::Absent);
        let obstacle = file.get("oom").obstacle().map(ToString::to_string);
        assert_eq!(obstacle.as_deref(), Some("/m: oom is no number"));
        assert!(file.get("max").obstacle().is_some());
    }

    #[test]
    fn an_empty_file_does_not_say_that_there_is_nothing() {
        assert!(FlatKeyed::parse(Path::new("/m"), b"").is_err());
        assert!(FlatKeyed::parse(Path::new("/m"), b"\n\n").is_err());
    }
}
