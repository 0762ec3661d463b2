//! A real trace of a real SIGKILL. Needs root; mounts tracefs at a folder of its own where it is not mounted, and leaves
//! nothing behind.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sexton_host::files::Files;
use sexton_host::tracefs::{self, INSTANCE, KillTrace};
use sexton_model::kernel::trace::{SignalOrigin, SignalSent, TraceEvent};
use sexton_model::reading::Reading;
use sexton_process::ready::{Slot, wait};

fn skipped(why: impl std::fmt::Display) {
    let thread = std::thread::current();
    let _ = writeln!(std::io::stderr(), "skipped: {}: {why}", thread.name().unwrap_or("?"));
}

/// What came of the kill of `pid`, within five seconds. Waits by poll.
fn kill_of(trace: &mut KillTrace, pid: i32) -> Option<SignalSent> {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let mut slot = [Slot::new(Some(trace.as_fd()))];
        wait(&mut slot, Some(end.saturating_duration_since(Instant::now()))).unwrap();
        let [Slot { readable: true, .. }] = slot else { return None };
        let found = trace.read().into_value().unwrap().events.into_iter().find_map(|event| match event {
            TraceEvent::Signal(signal) if signal.pid == pid => Some(signal),
            _ => None,
        });
        if found.is_some() {
            return found;
        }
    }
}

#[test]
fn the_sender_of_a_kill_is_named_and_nothing_stays_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (tracefs, _mounted): (PathBuf, Option<tracefs::Mounted>) = match tracefs::mounted(&Files::system()) {
        Reading::Value(path) => (path, None),
        _ => match tracefs::mount(folder.path()) {
            Ok(mounted) => (mounted.path().to_owned(), Some(mounted)),
            Err(error) => return skipped(format!("tracefs is not mounted and cannot be: {error}")),
        },
    };
    let instance = tracefs.join("instances").join(INSTANCE);
    if instance.exists() {
        return skipped(format!("{} is in use or left over", instance.display()));
    }
    // A left-over of an earlier maker is no obstacle.
    if let Err(error) = fs::create_dir(&instance) {
        return skipped(format!("{}: {error}", instance.display()));
    }
    let mut trace = match KillTrace::start(&tracefs) {
        Reading::Value(trace) => trace,
        other => {
            let _ = fs::remove_dir(&instance);
            return skipped(format!("{other:?}"));
        }
    };
    let size = fs::read_to_string(instance.join("buffer_size_kb")).unwrap();
    assert!(size.trim().parse::<u64>().is_ok_and(|kib| kib <= 64), "{size} KiB a CPU");
    let second = KillTrace::start(&tracefs);
    assert!(second.obstacle().is_some_and(|obstacle| obstacle.detail.contains("another")), "{second:?}");

    let mut victim = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // An answer shows that it has its own name: a spawned process gets that after its parent goes on.
    victim.stdin.as_mut().unwrap().write_all(b"?").unwrap();
    victim.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let victim_pid = victim.id() as i32;
    let mut killer = Command::new("sh").args(["-c", &format!("kill -9 {victim_pid}; :")]).spawn().unwrap();
    let killer_pid = killer.id() as i32;
    killer.wait().unwrap();
    victim.wait().unwrap();
    let sent = kill_of(&mut trace, victim_pid).unwrap();
    assert_eq!((sent.signal, sent.origin, sent.group), (9, SignalOrigin::Kill, true));
    assert_eq!((sent.sender_pid, sent.sender_comm.as_deref()), (killer_pid, Some("sh")));
    assert_eq!(sent.comm, "cat");

    drop(trace);
    assert!(!instance.exists(), "removed");
}

#[test]
fn no_tracefs_is_absent_and_no_permission_is_not() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(KillTrace::start(folder.path()), Reading::Absent), "no instances");
    fs::create_dir_all(folder.path().join("instances")).unwrap();
    assert!(matches!(KillTrace::start(folder.path()), Reading::Absent), "no such event");
    assert!(!folder.path().join("instances").join(INSTANCE).exists(), "what was begun is removed");
    fs::create_dir_all(folder.path().join("instances/sexton/held")).unwrap();
    assert!(KillTrace::start(folder.path()).obstacle().is_some(), "a left-over that stays");
}
