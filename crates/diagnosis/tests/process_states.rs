//! Every state of a process by the readings that lead to it, and what holds for all readings whatever they say.

use proptest::prelude::*;
use sexton_diagnosis::process_state::{classify, explain};
use sexton_model::process_state::{HeldMemory, ProcessState, ThreadFate, WaitPlace};
use sexton_model::reading::{ObstacleKind, Reading};
use sexton_model::task::{
    ProcessReading, ProcessRef, ResidentMemory, SIGKILL_BIT, TaskState, TaskStatus, ThreadReading,
};
use sexton_model::wait::WaitStatus;

const PID: i32 = 7;
const PARENT: i32 = 5;
const GDB: i32 = 6;

/// A thread by what a table needs of it.
#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    letter: char,
    exiting: bool,
    pending_thread: bool,
    pending_process: bool,
    dumping: bool,
    mapped: bool,
    tracer: i32,
    wchan: Option<&'static str>,
    frame: Option<&'static str>,
}

const fn thread(letter: char) -> Thread {
    let mapped = !matches!(letter, 'Z' | 'X');
    Thread {
        letter,
        exiting: false,
        pending_thread: false,
        pending_process: false,
        dumping: false,
        mapped,
        tracer: 0,
        wchan: None,
        frame: None,
    }
}

impl Thread {
    fn reading(self, tid: i32, threads: u64) -> ThreadReading {
        let memory = ResidentMemory { total_bytes: 64 << 20, ..ResidentMemory::default() };
        let mask = |pending: bool| if pending { SIGKILL_BIT } else { 0 };
        let named = |name: Option<&str>| name.map_or(Reading::Absent, |name| Reading::Value(name.to_owned()));
        ThreadReading {
            tid,
            comm: "worker".to_owned(),
            state: self.letter.into(),
            exiting: self.exiting,
            status: Reading::Value(TaskStatus {
                parent_pid: PARENT,
                tracer_pid: self.tracer,
                threads,
                pending_thread: mask(self.pending_thread),
                pending_process: mask(self.pending_process),
                core_dumping: self.mapped.then_some(self.dumping),
                memory: self.mapped.then_some(memory),
            }),
            wchan: named(self.wchan),
            kernel_stack: named(self.frame).map(|frame| vec!["schedule+0x1/0x2".to_owned(), frame]),
        }
    }
}

fn other(pid: i32, comm: &str) -> ProcessRef {
    ProcessRef { pid, comm: Reading::Value(comm.to_owned()), state: Reading::Value(TaskState::Sleeping) }
}

fn process(leader: Thread, others: &[Thread]) -> ProcessReading {
    let threads = 1 + others.len() as u64;
    ProcessReading {
        pid: PID,
        start_ticks: 1000,
        age_seconds: Reading::Value(1.0),
        user_seconds: 0.0,
        system_seconds: 0.0,
        parent: Reading::Value(other(PARENT, "tini")),
        tracers: vec![other(PARENT, "tini"), other(GDB, "gdb")],
        leader: leader.reading(PID, threads),
        others: (PID + 1..).zip(others).map(|(tid, thread)| thread.reading(tid, threads)).collect(),
        executable: Reading::Absent,
        cgroups: Reading::Absent,
        exit_status: Reading::Value(WaitStatus::exited(3)),
    }
}

fn state_of(leader: Thread, others: &[Thread]) -> ProcessState {
    classify(&Reading::Value(process(leader, others)))
}

/// The JSON name of a state, with what tells its variants apart.
fn name(state: &ProcessState) -> &'static str {
    match state {
        ProcessState::Running { blocked } if blocked.is_empty() => "running",
        ProcessState::Running { .. } => "running, blocked",
        ProcessState::Stopped => "stopped",
        ProcessState::StoppedByTracer { .. } => "stopped by tracer",
        ProcessState::DumpingCore { .. } => "dumping core",
        ProcessState::KilledButStuck { .. } => "killed but stuck",
        ProcessState::Exiting { leader_dead: true, .. } => "exiting, leader dead",
        ProcessState::Exiting { leader_dead: false, .. } => "exiting, leader leaving",
        ProcessState::HeldByTracer { .. } => "held by tracer",
        ProcessState::Unreaped { .. } => "unreaped",
        ProcessState::Gone => "gone",
        ProcessState::Unknown { .. } => "unknown",
    }
}

#[test]
fn each_combination_has_its_state() {
    let [r, s, d, t, traced, z, x, i] = ['R', 'S', 'D', 'T', 't', 'Z', 'X', 'I'].map(thread);
    let traced_by = |thread: Thread, tracer| Thread { tracer, ..thread };
    let killed = |thread: Thread| Thread { pending_thread: true, ..thread };
    let shared_kill = |thread: Thread| Thread { pending_process: true, ..thread };
    let leaving = |thread: Thread| Thread { exiting: true, mapped: false, ..thread };
    let dumping = |thread: Thread| Thread { dumping: true, ..thread };

    let table: &[(Thread, &[Thread], &str)] = &[
        // Alive.
        (r, &[], "running"),
        (s, &[s, r], "running"),
        (i, &[], "running"),
        (thread('P'), &[], "running"),
        (s, &[traced_by(s, GDB)], "running"), // traced, but not stopped
        (s, &[d], "running, blocked"),
        (d, &[], "running, blocked"),
        (s, &[z], "running"), // an exited thread whose tracer has not waited
        // Stopped.
        (t, &[t], "stopped"),
        (d, &[t], "stopped"), // the leader stops when it leaves D
        (traced_by(traced, GDB), &[], "stopped by tracer"),
        (s, &[traced_by(traced, GDB)], "stopped by tracer"),
        (traced, &[t], "stopped by tracer"), // by one outside our namespace
        // Told to die.
        (killed(r), &[killed(s)], "exiting, leader leaving"),
        (shared_kill(s), &[], "exiting, leader leaving"),
        (killed(d), &[], "killed but stuck"),
        (shared_kill(d), &[], "killed but stuck"),
        (killed(s), &[killed(d)], "killed but stuck"),
        (killed(traced_by(traced, GDB)), &[], "stopped by tracer"), // at PTRACE_EVENT_EXIT
        // Leader leaving: a single thread gives back 64 GiB in state R.
        (leaving(r), &[], "exiting, leader leaving"),
        (leaving(d), &[], "exiting, leader leaving"),
        (leaving(r), &[leaving(d)], "exiting, leader leaving"),
        // Core dump: the memory tells it, through any thread that still has it.
        (dumping(r), &[], "dumping core"),
        (dumping(killed(d)), &[killed(i)], "dumping core"),
        (z, &[dumping(r)], "dumping core"),
        // Leader dead, threads alive: Zl.
        (z, &[s], "exiting, leader dead"),
        (z, &[killed(d)], "exiting, leader dead"),
        (z, &[leaving(r)], "exiting, leader dead"),
        (z, &[z, leaving(d)], "exiting, leader dead"),
        (x, &[s], "exiting, leader dead"),
        (z, &[z], "exiting, leader dead"), // untraced: it removes itself at this moment
        (z, &[x], "exiting, leader dead"),
        // Held by a tracer.
        (z, &[traced_by(traced, GDB)], "held by tracer"),
        (z, &[traced], "held by tracer"),
        (traced_by(z, GDB), &[], "held by tracer"),
        (traced_by(z, GDB), &[traced_by(z, GDB)], "held by tracer"),
        (z, &[traced_by(z, GDB)], "held by tracer"),
        (traced_by(z, PARENT), &[traced_by(z, PARENT)], "held by tracer"),
        // Over.
        (z, &[], "unreaped"),
        (traced_by(z, PARENT), &[], "unreaped"), // tracer and parent in one: one wait is enough
        (x, &[], "gone"),
    ];
    for (leader, others, expected) in table {
        let state = state_of(*leader, others);
        assert_eq!(name(&state), *expected, "leader {leader:?}, others {others:?}");
    }
}

#[test]
fn no_process_is_gone_and_no_reading_is_unknown() {
    assert_eq!(classify(&Reading::Absent), ProcessState::Gone);
    let hidden = Reading::unreadable(ObstacleKind::Denied, "/proc/7: not visible");
    assert_eq!(name(&classify(&hidden)), "unknown");
}

#[test]
fn a_thread_seen_in_the_count_only_keeps_the_process_from_being_unreaped() {
    let mut reading = process(thread('Z'), &[thread('S')]);
    reading.others.clear();
    assert_eq!(name(&classify(&Reading::Value(reading))), "exiting, leader dead");
}

#[test]
fn memory_of_a_process_with_a_dead_leader_is_found_at_a_living_thread() {
    let ProcessState::Exiting { memory, threads, .. } = state_of(thread('Z'), &[thread('Z'), thread('S')])
    else {
        panic!("not exiting");
    };
    assert!(matches!(memory, HeldMemory::Mapped { tid: 9, memory } if memory.total_bytes == 64 << 20));
    assert_eq!((threads.len(), threads[0].fate), (1, ThreadFate::RunsOn));

    let leaving = Thread { exiting: true, mapped: false, ..thread('D') };
    let ProcessState::Exiting { memory, threads, .. } = state_of(thread('Z'), &[leaving]) else {
        panic!("not exiting");
    };
    assert_eq!((memory, threads[0].fate), (HeldMemory::Unmapped, ThreadFate::Leaving));
}

#[test]
fn memory_that_cannot_be_read_is_not_taken_for_none() {
    let mut reading = process(thread('Z'), &[thread('S')]);
    reading.others[0].status = Reading::unreadable(ObstacleKind::Malformed, "/proc/7/task/8/status: odd");
    let ProcessState::Exiting { memory, .. } = classify(&Reading::Value(reading)) else {
        panic!("not exiting");
    };
    assert_eq!(memory, HeldMemory::Unknown);
}

#[test]
fn tini_138_the_parent_that_must_wait_is_named() {
    let state = state_of(thread('Z'), &[]);
    let words = explain(PID, &state);
    assert_eq!(
        words.sentence,
        r#"process 7 is over (exited with 3) and holds no memory; its parent "tini" (pid 5) has not waited for it"#
    );
    assert!(words.action.starts_with("process 5 must wait"), "{}", words.action);
}

#[test]
fn a_stopped_parent_is_told_to_continue() {
    let mut reading = process(thread('Z'), &[]);
    reading.parent =
        Reading::Value(ProcessRef { state: Reading::Value(TaskState::Stopped), ..other(5, "sh") });
    let words = explain(PID, &classify(&Reading::Value(reading)));
    assert_eq!(words.action, "its parent is itself stopped: kill -CONT 5");
}

#[test]
fn open_gpu_kernel_modules_456_stuck_in_the_driver() {
    let stuck = Thread {
        exiting: true,
        mapped: false,
        wchan: Some("rwsem_down_write_slowpath"),
        frame: Some("uvm_va_space_destroy+0x1a2/0x6c0 [nvidia_uvm]"),
        ..thread('D')
    };
    let state = state_of(thread('Z'), &[stuck]);
    let ProcessState::Exiting { threads, .. } = &state else { panic!("not exiting") };
    assert_eq!(threads[0].place, WaitPlace::GpuDriver { module: "nvidia_uvm".to_owned() });
    let words = explain(PID, &state);
    assert!(words.sentence.contains("in the GPU driver (nvidia_uvm)"), "{}", words.sentence);
    assert!(words.action.contains("Xid"), "{}", words.action);
}

#[test]
fn places_are_known_by_their_kernel_functions() {
    let place = |letter, wchan, frame| {
        sexton_diagnosis::process_state::wait_place(&Thread { wchan, frame, ..thread(letter) }.reading(8, 2))
    };
    let module = |name: &str| WaitPlace::GpuDriver { module: name.to_owned() };
    let function = |name: &str| WaitPlace::Other { function: name.to_owned() };
    for (found, expected) in [
        (place('D', Some("__refrigerator"), None), WaitPlace::Freezer),
        (place('S', Some("do_freezer_trap"), None), WaitPlace::Freezer),
        (place('D', Some("futex_do_wait"), None), WaitPlace::Freezer), // frozen in its sleep
        (place('t', Some("ptrace_stop"), None), WaitPlace::Tracer),
        (place('t', None, None), WaitPlace::Tracer),
        (place('D', Some("mem_cgroup_oom_synchronize"), None), WaitPlace::CgroupOutOfMemory),
        (place('D', Some("folio_wait_bit_common"), None), WaitPlace::Disk),
        (place('D', Some("rpc_wait_bit_killable"), None), WaitPlace::NetworkFileSystem),
        (place('D', Some("coredump_task_exit"), None), WaitPlace::CoreDump),
        (place('D', Some("down"), Some("nv_close+0x1/0x2 [nvidia]")), module("nvidia")),
        (place('R', None, Some("nv_free_pages+0x1/0x2 [nvidia]")), module("nvidia")),
        (place('D', Some("os_acquire_mutex"), None), module("nvidia")),
        (place('D', Some("uvm_api_destroy"), None), module("nvidia_uvm")),
        (place('D', None, Some("nfs4_wait+0x1/0x2 [nfsv4]")), WaitPlace::NetworkFileSystem),
        (place('S', Some("futex_do_wait"), None), function("futex_do_wait")),
        (place('S', None, None), WaitPlace::Hidden),
        (place('R', None, None), WaitPlace::Nowhere),
    ] {
        assert_eq!(found, expected);
    }
}

fn any_thread() -> impl Strategy<Value = Thread> {
    let letter = prop::sample::select("RSDTtZXxIPWK?".chars().collect::<Vec<_>>());
    let wchan = prop::sample::select(vec![None, Some("__refrigerator"), Some("futex_do_wait")]);
    let frame = prop::sample::select(vec![None, Some("nv_close+0x1/0x2 [nvidia]"), Some("")]);
    let tracer = prop::sample::select(vec![0, PARENT, GDB, 99]);
    (letter, any::<[bool; 5]>(), tracer, wchan, frame).prop_map(|(letter, flags, tracer, wchan, frame)| {
        let [exiting, pending_thread, pending_process, dumping, mapped] = flags;
        Thread { letter, exiting, pending_thread, pending_process, dumping, mapped, tracer, wchan, frame }
    })
}

fn any_process() -> impl Strategy<Value = ProcessReading> {
    (any_thread(), prop::collection::vec(any_thread(), 0..4), any::<[bool; 3]>(), 0..5u64).prop_map(
        |(leader, others, [orphan, status_hidden, unnamed], threads)| {
            let mut reading = process(leader, &others);
            if orphan {
                reading.parent = Reading::Absent;
            }
            if unnamed {
                reading.tracers.clear();
            }
            if status_hidden {
                reading.leader.status = Reading::unreadable(ObstacleKind::Malformed, "odd");
            } else if let Reading::Value(status) = &mut reading.leader.status {
                status.threads = threads;
            }
            reading
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn every_reading_has_one_state_and_words_for_it(reading in any_process()) {
        let reading = Reading::Value(reading);
        let state = classify(&reading);
        prop_assert_eq!(&state, &classify(&reading));
        let words = explain(PID, &state);
        prop_assert!(words.sentence.contains("process 7") && !words.action.is_empty());
        prop_assert!(!words.sentence.ends_with('.') && !words.action.ends_with('.'));
    }

    /// The rule that everything rests on: with a thread alive, nobody may believe that the process is over.
    #[test]
    fn with_a_thread_alive_a_process_is_neither_gone_nor_unreaped(reading in any_process()) {
        let alive = reading.threads().any(|thread| !thread.state.is_dead());
        let state = classify(&Reading::Value(reading));
        if alive {
            prop_assert!(!matches!(state, ProcessState::Gone | ProcessState::Unreaped { .. }), "{state:?}");
        }
    }

    #[test]
    fn a_dead_leader_never_makes_a_running_process(reading in any_process()) {
        let dead = reading.leader.state.is_dead();
        let state = classify(&Reading::Value(reading));
        if dead {
            let alive = matches!(
                state,
                ProcessState::Running { .. } | ProcessState::Stopped | ProcessState::StoppedByTracer { .. }
            );
            prop_assert!(!alive, "{state:?}");
        }
    }
}
