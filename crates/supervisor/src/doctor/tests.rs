//! Checks on trees that look like a host.

use std::fs;
use std::path::Path;

use sexton_host::files::Files;
use sexton_model::kernel::LogMark;
use sexton_model::reading::{ObstacleKind, Reading};

use super::sight::{Capabilities, Disk, Subject};
use super::*;

const MOUNTINFO_V2: &str =
    "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n31 1 0:5 / /proc rw - proc proc rw\n";

/// A v2 host with a prover, pid 7, alone in `/box`.
fn tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let files = [
        ("proc/7/cgroup", "0::/box\n"),
        ("proc/1/stat", "1 (init) S"),
        ("proc/self/mountinfo", MOUNTINFO_V2),
        ("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n"),
        (
            "proc/self/limits",
            "Max core file size        0                    unlimited            bytes     \n",
        ),
        ("proc/vmstat", "oom_kill 3\n"),
        ("proc/pressure/memory", "some avg10=1.50 avg60=0.00 avg300=0.00 total=0\n"),
        ("proc/sys/vm/overcommit_memory", "0\n"),
        ("proc/sys/vm/panic_on_oom", "0\n"),
        ("proc/sys/vm/oom_kill_allocating_task", "0\n"),
        ("proc/sys/kernel/core_pattern", "core\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpu memory\n"),
        ("sys/fs/cgroup/cgroup.procs", "1\n"),
        ("sys/fs/cgroup/box/cgroup.procs", "7\n"),
        ("sys/fs/cgroup/box/memory.events", "oom 0\noom_kill 2\n"),
        ("sys/fs/cgroup/box/memory.events.local", "oom 0\noom_kill 2\n"),
        ("sys/fs/cgroup/box/memory.max", "max\n"),
        ("sys/fs/cgroup/box/memory.oom.group", "0\n"),
    ];
    for (path, contents) in files {
        write(root.path(), path, contents);
    }
    root
}

fn write(root: &Path, path: &str, contents: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

fn seen(root: &Path) -> Sight {
    Sight {
        kernel_log: Reading::Value(LogMark { next_seq: Some(1), ..LogMark::default() }),
        is_initial_pid_namespace: Reading::Value(true),
        tracefs_exists: true,
        disk: Reading::Value(Disk {
            folder: "/state".into(),
            available_bytes: 8 << 30,
            available_files: Some(1 << 20),
            is_writable: true,
        }),
        pidfd: Reading::Value(()),
        pidfd_exit_info: Reading::Value(()),
        subreaper: Reading::Value(()),
        gpu_sampler: Reading::Value("/opt/gpu-sampler".into()),
        ..Sight::of_files(&Files::under(root), Subject::Prover(7))
    }
}

#[track_caller]
fn line(sight: &Sight, id: &str) -> Check {
    examine(sight).into_iter().find(|check| check.id == id).unwrap()
}

/// Every `(file, contents, id, level)`: the one file makes the one line bad.
#[test]
fn each_setting_shows_in_its_own_line() {
    for (path, contents, id, level) in [
        ("proc/sys/vm/panic_on_oom", "2\n", "panic-on-oom", Level::Fail),
        ("proc/sys/vm/panic_on_oom", "1\n", "panic-on-oom", Level::Warn),
        ("proc/sys/vm/panic_on_oom", "banana\n", "panic-on-oom", Level::Warn),
        ("proc/sys/vm/oom_kill_allocating_task", "1\n", "oom-kill-allocating-task", Level::Warn),
        ("proc/sys/vm/overcommit_memory", "2\n", "overcommit", Level::Warn),
        ("sys/fs/cgroup/box/memory.oom.group", "1\n", "oom-group", Level::Warn),
        ("sys/fs/cgroup/box/cgroup.procs", "7\n9\n0\n", "cgroup-exclusive", Level::Warn),
        ("proc/sys/kernel/yama/ptrace_scope", "3\n", "ptrace-scope", Level::Warn),
        ("proc/sys/kernel/core_pattern", "\n", "core-pattern", Level::Warn),
        ("proc/self/limits", "Max core file size  0  0  bytes\n", "core-limit", Level::Warn),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n", "clock", Level::Warn),
        ("proc/pressure/memory", "nonsense\n", "psi", Level::Warn),
        ("proc/vmstat", "nr_free_pages 7\n", "host-oom-counter", Level::Warn),
    ] {
        let root = tree();
        assert_eq!(line(&seen(root.path()), id).level, Level::Ok, "{id} before");
        write(root.path(), path, contents);
        let bad: Vec<_> =
            examine(&seen(root.path())).into_iter().filter(|check| check.level > Level::Ok).collect();
        assert_eq!(bad.iter().map(|check| (check.id, check.level)).collect::<Vec<_>>(), [(id, level)]);
        assert!(bad[0].fix.as_ref().is_some_and(|fix| !fix.is_empty()), "{id} has no fix");
    }
}

#[test]
fn a_host_where_all_is_well_has_no_warning_and_exits_0() {
    let root = tree();
    let report = Report::of("prover", &seen(root.path()));
    assert_eq!((report.level, report.level.exit_code()), (Level::Ok, 0), "{}", report.page());
    assert!(report.page().contains("2 OOM kills in /box so far"), "{}", report.page());
}

#[test]
fn ids_are_a_contract() {
    let root = tree();
    let ids: Vec<_> = examine(&seen(root.path())).iter().map(|check| check.id).collect();
    let expected = "oom-counter cgroup-exclusive kernel-log host-oom-counter tracefs-signal-trace pid-namespace \
                    proc-hidepid ptrace-scope gpu-sampler cgroup-version cgroup-delegated oom-group oom-kill-disable \
                    panic-on-oom oom-kill-allocating-task overcommit psi core-pattern core-limit disk-space-state \
                    clock pidfd pidfd-exit-info subreaper";
    assert_eq!(ids, expected.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn a_host_that_shows_nothing_is_never_ok_by_default() {
    let root = tempfile::tempdir().unwrap();
    let sight = Sight::of_files(&Files::under(root.path()), Subject::Us(7));
    let ok: Vec<_> = examine(&sight).into_iter().filter(|check| check.level == Level::Ok).collect();
    // Without yama nothing is restricted; a clock needs no file.
    assert_eq!(ok.iter().map(|check| check.id).collect::<Vec<_>>(), ["ptrace-scope", "clock"]);
    assert_eq!(line(&sight, "oom-counter").level, Level::Fail);
    assert_eq!(Report::of("prover", &sight).level.exit_code(), 2);
}

#[test]
fn a_denied_kernel_log_is_a_warning_that_says_why() {
    let root = tree();
    let mut sight = seen(root.path());
    sight.kernel_log = Reading::unreadable(ObstacleKind::Denied, "/dev/kmsg: permission denied");
    let check = line(&sight, "kernel-log");
    assert_eq!((check.level, check.found.as_str()), (Level::Warn, "/dev/kmsg: permission denied"));
}

#[test]
fn without_rights_a_trace_is_not_promised() {
    let root = tree();
    let sight = Sight { capabilities: Capabilities::default(), ..seen(root.path()) };
    assert_eq!(line(&sight, "tracefs-signal-trace").level, Level::Warn);
}

#[test]
fn a_disk_is_judged_by_bytes_inodes_and_rights() {
    let root = tree();
    let level = |change: &dyn Fn(&mut Disk)| {
        let mut sight = seen(root.path());
        if let Reading::Value(disk) = &mut sight.disk {
            change(disk);
        }
        line(&sight, "disk-space-state").level
    };
    assert_eq!(level(&|disk| disk.available_bytes = 1 << 20), Level::Fail);
    assert_eq!(level(&|disk| disk.available_bytes = 500 << 20), Level::Warn);
    assert_eq!(level(&|disk| disk.available_files = Some(0)), Level::Fail);
    assert_eq!(level(&|disk| disk.available_files = Some(9)), Level::Warn);
    assert_eq!(level(&|disk| disk.available_files = None), Level::Ok, "btrfs counts none");
    assert_eq!(level(&|disk| disk.is_writable = false), Level::Fail);
}

#[test]
fn a_clock_that_was_set_back_fails() {
    let root = tree();
    let mut sight = seen(root.path());
    sight.clock.last_event = Some(sight.clock.now + std::time::Duration::from_secs(3600));
    let check = line(&sight, "clock");
    assert_eq!(check.level, Level::Fail, "{}", check.found);
    assert!(check.found.contains("1h"), "{}", check.found);
}

#[test]
fn a_look_around_on_this_host_ends_in_time() {
    let state = tempfile::tempdir().unwrap();
    let place = crate::place::Place {
        name: "prover".to_owned(),
        state_dir: state.path().join("not/yet/made"),
        runtime_dir: state.path().join("run"),
    };
    let began = std::time::Instant::now();
    let sight = Sight::read(&place, Subject::Us(std::process::id() as i32));
    assert_eq!(sight.pidfd, Reading::Value(()));
    assert_eq!(sight.disk.value().map(|disk| disk.folder.as_path()), Some(state.path()));
    assert!(began.elapsed().as_secs() < 15, "{:?}", began.elapsed());
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0, "it changes nothing");
}
