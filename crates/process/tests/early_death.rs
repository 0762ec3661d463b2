//! In a program of its own, whose only child is the one in question.

use std::time::{Duration, Instant};

use sexton_process::{Pidfd, SIGKILL, Spawn, SpawnError, children, fifo};

#[test]
fn a_child_that_dies_before_it_is_prepared_is_seen_to_be_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cgroup.procs");
    fifo::make(&path).unwrap();
    // Opening it for writing waits for a reader, who does not come: the child stays in its preparation.
    let spawn = Spawn { program: "/bin/true".into(), cgroup_procs: vec![path], ..Default::default() };
    let started = std::thread::spawn(|| spawn.start().map(|held| held.pid()));
    let deadline = Instant::now() + Duration::from_secs(30);
    let child = loop {
        if let Some(child) = children().unwrap().first() {
            break *child;
        }
        assert!(Instant::now() < deadline, "no child");
        std::thread::yield_now();
    };
    Pidfd::open(child).unwrap().signal(SIGKILL).unwrap();
    assert!(matches!(started.join().unwrap(), Err(SpawnError::Vanished)));
}
