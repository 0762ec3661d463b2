//! What kernel, disk and clock offer the supervisor.

use std::time::Duration;

use sexton_model::reading::Reading;
use sexton_model::units::{Bytes, Human};

use super::sight::Disk;
use super::{Check, Sight, missing};

/// Below this, records and output may be lost at any time.
const DISK_FAIL_BYTES: u64 = 64 << 20;
/// Below this, a talkative prover gets there within a day.
const DISK_WARN_BYTES: u64 = 1 << 30;
/// A record is some ten files.
const FILES_WARN: u64 = 10_000;
/// Clocks of two threads, and journal lines of this very moment.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);

pub(super) fn checks(sight: &Sight) -> Vec<Check> {
    vec![
        core_pattern(sight),
        core_limit(sight),
        disk_space(sight),
        clock(sight),
        pidfd(sight),
        pidfd_exit_info(sight),
        subreaper(sight),
    ]
}

fn core_pattern(sight: &Sight) -> Check {
    const ID: &str = "core-pattern";
    match &sight.core_pattern {
        Reading::Value(pattern) if pattern.is_empty() => Check::warn(
            ID,
            "kernel.core_pattern is empty: no core is written under a name of its own",
            "sysctl kernel.core_pattern=core.%e.%p",
        ),
        Reading::Value(pattern) => match pattern.strip_prefix('|') {
            Some(program) => Check::ok(ID, format!("cores go to {} on the host", first_word(program))),
            None if pattern.starts_with('/') => Check::ok(ID, format!("cores are written to {pattern}")),
            None => Check::ok(ID, format!("cores are written to {pattern:?} in the prover's folder")),
        },
        other => Check::warn(ID, missing(other), "make /proc/sys/kernel/core_pattern readable"),
    }
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or("a program without a name")
}

fn core_limit(sight: &Sight) -> Check {
    const ID: &str = "core-limit";
    match &sight.core_limit {
        Reading::Value(limit) => match limit.hard_bytes {
            Some(0) => Check::warn(
                ID,
                "the hard limit is 0: `supervisor run --core` cannot raise it",
                "ulimit -H -c unlimited before the supervisor starts (systemd: LimitCORE=infinity)",
            ),
            Some(bytes) => Check::ok(ID, format!("{} at most with `supervisor run --core`", Bytes(bytes))),
            None => Check::ok(ID, "unlimited with `supervisor run --core`"),
        },
        other => Check::warn(ID, missing(other), "make /proc/self/limits readable"),
    }
}

fn disk_space(sight: &Sight) -> Check {
    const ID: &str = "disk-space-state";
    const MAKE_ROOM: &str = "make room there, or give another --state-dir";
    let disk = match &sight.disk {
        Reading::Value(disk) => disk,
        other => return Check::fail(ID, missing(other), "give a --state-dir on a local disk"),
    };
    let Disk { folder, available_bytes, available_files, is_writable } = disk;
    let folder = folder.display();
    if !is_writable {
        return Check::fail(ID, format!("{folder} is not writable"), "chown it, or give another --state-dir");
    }
    let found = format!("{} free in {folder}", Bytes(*available_bytes));
    match available_files {
        Some(0) => Check::fail(ID, format!("no inodes left in {folder}"), MAKE_ROOM),
        _ if *available_bytes < DISK_FAIL_BYTES => Check::fail(ID, found, MAKE_ROOM),
        Some(files) if *files < FILES_WARN => {
            Check::warn(ID, format!("{files} inodes left in {folder}"), MAKE_ROOM)
        }
        _ if *available_bytes < DISK_WARN_BYTES => Check::warn(ID, found, MAKE_ROOM),
        _ => Check::ok(ID, found),
    }
}

/// Runs sort by wall-clock time, and kernel lines are matched with it.
fn clock(sight: &Sight) -> Check {
    const ID: &str = "clock";
    let clock = &sight.clock;
    let ahead = clock.last_event.map(|last| last.duration_since(clock.now));
    if let Some(ahead) = ahead.and_then(|ahead| Duration::try_from(ahead).ok())
        && ahead > CLOCK_TOLERANCE
    {
        return Check::fail(
            ID,
            format!("the clock is {} behind our own last record: it was set back", Human(ahead)),
            "set it (timedatectl, chronyc makestep); runs sort by time",
        );
    }
    match &clock.source {
        Reading::Value(source)
            if ["jiffies", "acpi_pm", "hpet", "refined-jiffies"].contains(&source.as_str()) =>
        {
            Check::warn(
                ID,
                format!("clock source {source}: slow or coarse, every time stamp costs microseconds"),
                "find out in the kernel log why tsc was given up",
            )
        }
        Reading::Value(source) => Check::ok(ID, format!("not behind our records; clock source {source}")),
        _ => Check::ok(ID, "not behind our records; clock source not told"),
    }
}

fn pidfd(sight: &Sight) -> Check {
    const ID: &str = "pidfd";
    match &sight.pidfd {
        Reading::Value(()) => Check::ok(ID, "pidfd_open works"),
        other => Check::fail(
            ID,
            format!("pidfd_open: {}", missing(other)),
            "Linux 5.3 or later, and a seccomp profile that allows it",
        ),
    }
}

fn pidfd_exit_info(sight: &Sight) -> Check {
    const ID: &str = "pidfd-exit-info";
    match &sight.pidfd_exit_info {
        Reading::Value(()) => {
            Check::ok(ID, "the status of a process that somebody else reaped can be learnt")
        }
        Reading::Absent => Check::warn(
            ID,
            "not offered (Linux 6.15): should keeper and supervisor die both, the status is unknown",
            "nothing needs to be done; a newer kernel closes the gap",
        ),
        other => Check::warn(ID, missing(other), "Linux 6.15 or later"),
    }
}

fn subreaper(sight: &Sight) -> Check {
    const ID: &str = "subreaper";
    match &sight.subreaper {
        Reading::Value(()) => Check::ok(ID, "orphans of the prover stay with us"),
        other => {
            Check::fail(ID, missing(other), "a seccomp profile that allows prctl(PR_SET_CHILD_SUBREAPER)")
        }
    }
}
