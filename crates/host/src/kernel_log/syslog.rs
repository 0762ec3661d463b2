//! `syslog(2)`: the lines of the whole ring, `<PRIORITY>[SECONDS.MICROSECONDS] TEXT`. Pure: the call itself is given.
//!
//! Against `/dev/kmsg` it lacks record numbers, so that a lost line cannot be noticed; bytes are not escaped; and a record
//! with newlines arrives as several lines, each with the same prefix. The priority holds the facility here too, so that
//! lines of users can be refused.

use sexton_model::kernel::{Door, KernelRecord, KernelWindow, LogMark};
use sexton_model::reading::{Obstacle, ObstacleKind};

/// Lines of users and of the kernel, oldest first. What has no priority is a piece of a line and is left out.
pub(super) fn records(log: &[u8]) -> Vec<KernelRecord> {
    log.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// `<6>[ 2195.357893] hog[5234]: segfault at …`; with `CONFIG_PRINTK_CALLER` `[ 2195.357893][  T123] …`; with
/// `printk.time=0` no brackets at all.
fn line(bytes: &[u8]) -> Option<KernelRecord> {
    let line = String::from_utf8_lossy(bytes);
    let (priority, rest) = line.strip_prefix('<')?.split_once('>')?;
    let priority = priority.parse().ok().filter(|_| priority.bytes().all(|byte| byte.is_ascii_digit()))?;
    let (at_us, text) = time(rest).unwrap_or((0, rest));
    Some(KernelRecord { seq: None, at_us, priority, text: text.to_owned(), tags: Vec::new() })
}

fn time(rest: &str) -> Option<(u64, &str)> {
    let (time, text) = rest.strip_prefix('[')?.split_once(']')?;
    let (seconds, fraction) = time.trim_start().split_once('.')?;
    let micros: u64 = Some(fraction).filter(|digits| digits.len() == 6)?.parse().ok()?;
    let at_us = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros)?;
    Some((at_us, without_caller(text).strip_prefix(' ')?))
}

/// Without the `[  T123]` or `[   C1]` of `CONFIG_PRINTK_CALLER`.
fn without_caller(text: &str) -> &str {
    let caller = || {
        let (caller, rest) = text.strip_prefix('[')?.split_once(']')?;
        let number = caller.trim_start().strip_prefix(['T', 'C'])?;
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
    };
    caller().unwrap_or(text)
}

/// The records after `mark`.
///
/// # Errors
/// As [`checked`].
pub(super) fn since(log: &[u8], mark: &LogMark) -> Result<KernelWindow, Obstacle> {
    let mut records = checked(log)?;
    let found = super::position_after(&records, mark);
    records.drain(..found.index);
    let all = records.len();
    records.retain(KernelRecord::is_from_kernel);
    let refused = u64::try_from(all - records.len()).unwrap_or(u64::MAX);
    Ok(KernelWindow {
        refused,
        gaps: u64::from(!found.is_certain),
        records,
        ..KernelWindow::empty(Door::Syslog)
    })
}

/// The end of the log, as a mark.
///
/// # Errors
/// As [`checked`].
pub(super) fn mark(log: &[u8]) -> Result<LogMark, Obstacle> {
    Ok(checked(log)?.last().map_or_else(LogMark::default, super::mark_after))
}

/// The records of a log that is the host's.
///
/// # Errors
/// [`ObstacleKind::Malformed`] if no line in it is one, or if it is the one that gVisor makes up. An empty log is one:
/// after `dmesg --clear` this door shows only what came later.
fn checked(log: &[u8]) -> Result<Vec<KernelRecord>, Obstacle> {
    let records = records(log);
    let refusal = if records.iter().any(|record| record.text.starts_with("Starting gVisor")) {
        "the log of gVisor, not the host's"
    } else if records.is_empty() && !log.is_empty() {
        "no line in what it says"
    } else {
        return Ok(records);
    };
    Err(Obstacle::new(ObstacleKind::Malformed, format!("syslog(2): {refusal}")))
}
