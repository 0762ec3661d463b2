//! Small readers of text. Each takes a value from the front and returns the rest, or none.

use std::str::FromStr;

use sexton_model::kernel::fact::Named;

/// Longest name of a task, in bytes: `TASK_COMM_LEN` - 1. What is longer is not a name, and the line not what it seems.
const LONGEST_COMM: usize = 15;

/// A name of a task. Bytes that are not UTF-8 were replaced one by one or several at once, so characters are counted.
pub(super) fn comm(text: &str) -> Option<String> {
    (text.chars().count() <= LONGEST_COMM).then(|| text.to_owned())
}

/// A decimal number at the front: all digits that there are, so that 123 is never read where 1234 stands.
pub(super) fn number<T: FromStr>(text: &str) -> Option<(T, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

/// As [`number`], negative ones too.
pub(super) fn signed<T: FromStr>(text: &str) -> Option<(T, &str)> {
    let sign = usize::from(text.starts_with('-'));
    let digits = text.get(sign..)?;
    let length = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let (value, rest) = text.split_at_checked(sign + length)?;
    Some((value.parse().ok()?, rest))
}

/// A whole text that is one decimal number.
pub(super) fn whole<T: FromStr>(text: &str) -> Option<T> {
    number(text).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

/// A hexadecimal number at the front.
pub(super) fn hex(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((u64::from_str_radix(digits, 16).ok()?, rest))
}

/// `KEY` and a number of kB behind it, anywhere in `text`, as bytes. Cut off before the unit, it is none: a digit may
/// be missing.
pub(super) fn kib(text: &str, key: &str) -> Option<u64> {
    let (value, rest) = number::<u64>(text.split_once(key)?.1)?;
    rest.starts_with("kB").then(|| value.saturating_mul(1024))
}

/// `NAME[N]REST`: where a name stands first in a line it may itself hold brackets and numbers, so every place is tried
/// until `rest` accepts what follows.
pub(super) fn named_in_brackets<'a, T>(
    text: &'a str,
    rest: impl Fn(&'a str) -> Option<T>,
) -> Option<(Named, T)> {
    text.match_indices('[').find_map(|(at, _)| {
        let comm = comm(text.get(..at)?)?;
        let (pid, tail) = number(text.get(at + 1..)?)?;
        Some((Named { pid, comm }, rest(tail.strip_prefix(']')?)?))
    })
}
