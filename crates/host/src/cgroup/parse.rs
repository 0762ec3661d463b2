//! From the bytes of a file of the memory controller to values. Pure. Numbers that do not fit saturate.

use sexton_model::cgroup::{Limit, Members};

use crate::flat_keyed;

/// v1 writes "no limit" as the largest multiple of the page size in an `i64`: 9223372036854771712 with pages of 4 KiB,
/// less with larger ones; before Linux 3.19 all bits. Pages are below 1 MiB.
const V1_UNLIMITED: u64 = i64::MAX as u64 - (1 << 20);

/// A single number.
pub(super) fn number(bytes: &[u8]) -> Result<u64, String> {
    let text = String::from_utf8_lossy(bytes);
    flat_keyed::number(text.trim_end()).ok_or_else(|| format!("{:?} is no number", excerpt(&text)))
}

/// `0` or `1`.
pub(super) fn flag(bytes: &[u8]) -> Result<bool, String> {
    number(bytes).and_then(flag_of)
}

pub(super) fn flag_of(number: u64) -> Result<bool, String> {
    match number {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(format!("{other} is neither 0 nor 1")),
    }
}

/// A v1 limit.
pub(super) fn limit_v1(bytes: &[u8]) -> Result<Limit, String> {
    number(bytes).map(limit_v1_of)
}

pub(super) fn limit_v1_of(number: u64) -> Limit {
    if number >= V1_UNLIMITED { Limit::Unlimited } else { Limit::Bytes(number) }
}

/// A v2 limit: a number or `max`.
pub(super) fn limit_v2(bytes: &[u8]) -> Result<Limit, String> {
    match bytes.trim_ascii_end() {
        b"max" => Ok(Limit::Unlimited),
        other => number(other).map(Limit::Bytes),
    }
}

/// `cgroup.procs`: a PID a line, 0 for one outside the reader's namespace. An empty file is an empty cgroup.
pub(super) fn members(bytes: &[u8]) -> Result<Members, String> {
    let text = String::from_utf8_lossy(bytes);
    let mut members = Members::default();
    for line in text.lines() {
        match line.parse::<i32>() {
            Ok(0) => members.foreign += 1,
            Ok(pid) if pid > 0 => members.pids.push(pid),
            _ => return Err(format!("{:?} is no pid", excerpt(line))),
        }
    }
    Ok(members)
}

/// Words between white space that are UTF-8.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .filter_map(|word| std::str::from_utf8(word).ok())
}

/// As much of a text as an error needs.
fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_sentinel_of_v1_is_unlimited() {
        for sentinel in [
            "9223372036854771712\n",  // pages of 4 KiB
            "9223372036854759424\n",  // 16 KiB
            "9223372036854710272\n",  // 64 KiB
            "9223372036854775807\n",  // before Linux 3.19
            "18446744073709551615\n", // written as -1 on some
            "99999999999999999999\n",
        ] {
            assert_eq!(limit_v1(sentinel.as_bytes()), Ok(Limit::Unlimited), "{sentinel}");
        }
        assert_eq!(limit_v1(b"367219703808\n"), Ok(Limit::Bytes(342 << 30)));
    }

    #[test]
    fn v2_writes_max_and_never_a_sentinel() {
        assert_eq!(limit_v2(b"max\n"), Ok(Limit::Unlimited));
        assert_eq!(limit_v2(b"0\n"), Ok(Limit::Bytes(0)));
        assert!(limit_v2(b"maximum\n").is_err());
        assert!(limit_v2(b"").is_err(), "nothing is not unlimited");
    }

    #[test]
    fn members_of_another_pid_namespace_are_counted() {
        let members = members(b"7\n0\n12\n0\n").unwrap();
        assert_eq!((members.pids, members.foreign), (vec![7, 12], 2));
        assert_eq!(super::members(b""), Ok(Members::default()));
        assert!(super::members(b"7\nx\n").is_err());
        assert!(super::members(b"-7\n").is_err());
    }

    #[test]
    fn a_flag_is_0_or_1() {
        assert_eq!((flag(b"0\n"), flag(b"1\n")), (Ok(false), Ok(true)));
        assert!(flag(b"2\n").is_err() && flag(b"\n").is_err());
    }

    proptest! {
        #[test]
        fn no_parser_panics(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = (number(&bytes), flag(&bytes), limit_v1(&bytes), limit_v2(&bytes), members(&bytes));
            let _ = words(&bytes).count();
        }

        #[test]
        fn huge_numbers_saturate(digits in "[1-9][0-9]{20,60}\n") {
            prop_assert_eq!(number(digits.as_bytes()), Ok(u64::MAX));
            prop_assert_eq!(limit_v1(digits.as_bytes()), Ok(Limit::Unlimited));
        }
    }
}
