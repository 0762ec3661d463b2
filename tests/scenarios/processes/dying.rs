//! On the way out.

use std::os::unix::process::ExitStatusExt;

use nix::sys::signal::Signal;
use sexton_diagnosis::process_state::explain;
use sexton_model::process_state::{HeldMemory, LiveThread, ProcessState, ThreadFate, WaitPlace};
use sexton_model::reading::Reading;
use sexton_model::task::TaskState;
use sexton_tests::{DEADLINE, Fixture, OrSkip, Skip, V1Cgroup, observe, read_process, wait_for, wait_until};

const MIB: u64 = 1 << 20;

/// Threads and memory of a process in state exiting with a dead leader, else none.
fn zl(pid: i32) -> Option<(Vec<LiveThread>, HeldMemory)> {
    match observe(pid) {
        ProcessState::Exiting { leader_dead: true, threads, memory } => Some((threads, memory)),
        _ => None,
    }
}

#[track_caller]
fn mapped_bytes(memory: &HeldMemory) -> (i32, u64) {
    match memory {
        HeldMemory::Mapped { tid, memory } => (*tid, memory.total_bytes),
        other => panic!("no memory mapped: {other:?}"),
    }
}

/// earlyoom#309, pwait (extrace#7): a zombie leader with living threads was taken for a dead process.
#[test]
fn earlyoom_309_a_dead_leader_is_not_a_dead_process() {
    let mut fixture = Fixture::spawn(&["zl", "64"]);
    let (pid, worker) = (fixture.pid(), fixture.ready::<i32>("worker"));
    let (threads, memory) = wait_for(DEADLINE, "a dead leader", || zl(pid));

    let leader = read_process(pid).leader;
    assert_eq!(leader.state, TaskState::Zombie);
    assert_eq!(
        leader.status.value().map(|status| status.memory),
        Some(None),
        "where ps looks there is nothing"
    );
    let (tid, held) = mapped_bytes(&memory);
    assert_eq!(tid, worker);
    assert!(held >= 64 * MIB, "held {held}");
    assert_eq!((threads.len(), threads[0].thread.tid, threads[0].fate), (1, worker, ThreadFate::RunsOn));
    assert!(matches!(read_process(pid).executable, Reading::Value(path) if path.ends_with("sexton-fixture")));
    assert_eq!(fixture.try_reap(), None, "no parent can reap it");

    for left in [48, 32, 16, 0] {
        assert_eq!(fixture.ask("release 16"), format!("held={}", left * MIB));
        let (_, memory) = zl(pid).expect("still exiting");
        let (_, held) = mapped_bytes(&memory);
        assert!((left * MIB..(left + 12) * MIB).contains(&held), "{left} MiB left, {held} bytes seen");
    }
    assert_eq!(fixture.try_reap(), None);

    fixture.tell("exit 5");
    assert_eq!(fixture.reap().code(), Some(5), "the status is that of the last exit_group");
    assert_eq!(observe(pid), ProcessState::Gone);
}

/// FACTS 6, `Zl`, unkillable: a thread that no signal reaches holds everything, as one stuck in a driver does.
#[test]
fn unkillable_thread_keeps_a_dead_process_and_its_memory() {
    let mut fixture = Fixture::spawn(&["hold-memory", "64", "locked"]);
    let Some(freezer) = V1Cgroup::new("freezer").or_skip() else { return };
    let (pid, worker) = (fixture.pid(), fixture.ready::<i32>("worker"));
    freezer.add_thread(worker);
    freezer.freeze();

    fixture.signal(Signal::SIGTERM);
    let look = |when: &str| {
        let (threads, memory) = wait_for(DEADLINE, when, || zl(pid));
        assert_eq!(threads.len(), 1, "{when}: {threads:?}");
        let LiveThread { thread, fate, place } = &threads[0];
        assert_eq!((thread.tid, thread.state), (worker, TaskState::Uninterruptible), "{when}");
        assert_eq!((fate, place), (&ThreadFate::CannotDie, &WaitPlace::Freezer), "{when}");
        let (tid, held) = mapped_bytes(&memory);
        assert!(tid == worker && held >= 64 * MIB, "{when}: held {held} by {tid}");
    };
    look("after SIGTERM");
    fixture.signal(Signal::SIGKILL);
    look("after SIGKILL, which changes nothing");
    assert_eq!(fixture.try_reap(), None);

    let words = explain(pid, &observe(pid));
    assert!(words.sentence.contains("in a frozen cgroup"), "{}", words.sentence);
    assert!(words.action.contains(&format!("thaw the cgroup of thread {worker}")), "{}", words.action);

    freezer.thaw();
    assert_eq!(fixture.reap().signal(), Some(15), "the first fatal signal, not the later SIGKILL");
}

/// The same before the leader is dead: nothing of the process can take the signal.
#[test]
fn a_sigkill_that_cannot_act_is_seen_as_such() {
    let mut fixture = Fixture::spawn(&["hold-memory", "16"]);
    let Some(freezer) = V1Cgroup::new("freezer").or_skip() else { return };
    let pid = fixture.pid();
    freezer.add_process(pid);
    freezer.freeze();
    assert!(
        matches!(observe(pid), ProcessState::Running { blocked } if blocked.len() == 2),
        "frozen, not killed"
    );

    fixture.signal(Signal::SIGKILL);
    match observe(pid) {
        ProcessState::KilledButStuck { threads, memory } => {
            assert_eq!(threads.len(), 2);
            assert!(threads.iter().all(|thread| thread.fate == ThreadFate::CannotDie), "{threads:?}");
            assert!(threads.iter().all(|thread| thread.place == WaitPlace::Freezer), "{threads:?}");
            assert!(mapped_bytes(&memory).1 >= 16 * MIB);
        }
        other => panic!("not stuck: {other:?}"),
    }
    assert_eq!(fixture.try_reap(), None);
    freezer.thaw();
    assert_eq!(fixture.reap().signal(), Some(9));
}

/// systemd#21466: a core dump takes its time, and the process is neither alive nor to be killed meanwhile.
#[test]
fn systemd_21466_a_core_dump_in_progress_is_seen() {
    let Some(()) = core_is_written_to_working_directory().or_skip() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut fixture = Fixture::spawn_in(folder.path(), &["dump-core", "256"]);
    if !fixture.ready::<bool>("unlimited") {
        return Skip("the size of cores is limited".to_owned()).report();
    }
    let pid = fixture.pid();
    fixture.tell("abort");
    let mut seen = None;
    let status = wait_for(DEADLINE, "the end of the dump", || {
        if let ProcessState::DumpingCore { memory } = observe(pid) {
            seen = Some(memory);
        }
        fixture.try_reap()
    });
    assert!(status.core_dumped() && status.signal() == Some(6), "{status:?}");
    let memory = seen.expect("256 MiB are not written between two looks");
    assert!(mapped_bytes(&memory).1 >= 256 * MIB);
}

fn core_is_written_to_working_directory() -> Result<(), Skip> {
    let path = "/proc/sys/kernel/core_pattern";
    match std::fs::read_to_string(path) {
        Ok(pattern) if !pattern.starts_with(['|', '/', '@']) => Ok(()),
        Ok(pattern) => Err(Skip::because(path, pattern.trim_end())),
        Err(error) => Err(Skip::because(path, error)),
    }
}

/// A process told to die is never seen as running or gone before it can be reaped.
#[test]
fn between_the_kill_and_the_reap_no_look_finds_it_gone() {
    let mut fixture = Fixture::spawn(&["hold-memory", "128"]);
    let pid = fixture.pid();
    fixture.signal(Signal::SIGKILL);
    wait_until(DEADLINE, "unreaped", || match observe(pid) {
        ProcessState::Exiting { .. } => false,
        ProcessState::Unreaped { .. } => true,
        other => panic!("after SIGKILL: {other:?}"),
    });
    assert_eq!(fixture.reap().signal(), Some(9));
}
