//! The judgement as a table: what was readable, what it said, and the verdict that this allows.

use sexton_model::Timestamp;
use sexton_model::baseline::CgroupBaseline;
use sexton_model::cgroup::{
    CgroupLevel, CgroupVersion, LevelCounters, Limit, Members, MemoryCgroup, MemoryStat,
};
use sexton_model::kernel::fact::{Named, OomContext, OomGroup, OomKilled, OomScope, Segfault, Xid};
use sexton_model::kernel::trace::{SignalOrigin, SignalOutcome, SignalSent};
use sexton_model::kernel::{KernelEvent, KernelFact};
use sexton_model::reading::{ObstacleKind, Reading};
use sexton_model::verdict::{Answer, Cause, Confidence, Level, Source};
use sexton_model::wait::WaitStatus;

use super::{Facts, KernelLog, Membership, OwnSignal, Tasks, judge};

const PID: i32 = 700;
const THREAD: i32 = 703;
const MIB: u64 = 1 << 20;

fn unreadable<T>() -> Reading<T> {
    Reading::unreadable(ObstacleKind::Denied, "permission denied")
}

fn level(path: &str, oom_kill: u64, failcnt: u64, limit: Limit) -> CgroupLevel {
    let mut counters = LevelCounters::all(&Reading::Absent);
    counters.local.oom_kill = Reading::Value(oom_kill);
    counters.failcnt = Reading::Value(failcnt);
    CgroupLevel {
        path: path.to_owned(),
        folder: format!("/sys/fs/cgroup/memory{path}"),
        limit: Reading::Value(limit),
        high: Reading::Absent,
        memsw_limit: Reading::Absent,
        swap_limit: Reading::Absent,
        usage_bytes: Reading::Value(MIB),
        peak_bytes: Reading::Value(MIB),
        swap_bytes: Reading::Absent,
        stat: MemoryStat {
            anon_bytes: Reading::Absent,
            shmem_bytes: Reading::Absent,
            active_file_bytes: Reading::Absent,
            inactive_file_bytes: Reading::Absent,
            dirty_bytes: Reading::Absent,
            writeback_bytes: Reading::Absent,
            hierarchical_limit: Reading::Absent,
        },
        counters,
        oom_kill_disable: Reading::Absent,
        under_oom: Reading::Absent,
        oom_group: Reading::Absent,
        pressure: Reading::Absent,
        members: Reading::Value(Members { pids: vec![PID], foreign: 0 }),
    }
}

/// The run in `/pod/prover` below `/pod`, with kills and limit hits during the run, alone or with neighbours.
fn membership(kills: u64, hits: [u64; 2], shared: bool) -> Membership {
    let cgroup = |kills, hits: [u64; 2]| {
        let mut own = level("/pod/prover", 5 + kills, hits[0], Limit::Bytes(64 * MIB));
        if shared {
            own.members = Reading::Value(Members { pids: vec![PID, 9], foreign: 0 });
        }
        let levels = vec![own, level("/pod", 2, hits[1], Limit::Bytes(128 * MIB))];
        MemoryCgroup { version: CgroupVersion::V1, hidden_ancestors: Reading::Value(false), levels }
    };
    Membership {
        baseline: Reading::Value(CgroupBaseline::of(&cgroup(0, [0, 0]), &[PID])),
        at_death: Reading::Value(cgroup(kills, hits)),
        kills_survived: 0,
    }
}

fn killed_run() -> Facts {
    Facts {
        tasks: Tasks {
            pid: Some(PID),
            thread_ids: vec![THREAD],
            names: vec!["prover".to_owned()],
            numbers_are_global: true,
        },
        memberships: vec![membership(0, [0, 0], false)],
        cgroup_last_seen_seconds: Some(0.1),
        vmstat_oom_kills: Reading::Value(0),
        kernel_log: Reading::Value(KernelLog { events: vec![], whole: true }),
        output: Reading::Value(String::new()),
        ..Facts::of(WaitStatus::killed(9, false), Timestamp::UNIX_EPOCH)
    }
}

fn event(fact: KernelFact) -> KernelEvent {
    KernelEvent { seq: None, at_us: 0, fact }
}

/// The two lines of one kill.
fn oom(pid: i32, comm: &str, limit: Option<&str>, task: &str) -> Vec<KernelEvent> {
    let context = OomContext {
        constraint: Some(if limit.is_some() { "CONSTRAINT_MEMCG" } else { "CONSTRAINT_NONE" }.to_owned()),
        oom_memcg: limit.map(str::to_owned),
        global_oom: limit.is_none(),
        task_memcg: Some(task.to_owned()),
        comm: Some(comm.to_owned()),
        pid: Some(pid),
        ..OomContext::default()
    };
    let killed = OomKilled {
        victim: Named { pid, comm: comm.to_owned() },
        scope: Some(if limit.is_some() { OomScope::Memcg } else { OomScope::Host }),
        uid: None,
        oom_score_adj: None,
        total_vm_bytes: None,
        anon_bytes: Some(60 * MIB),
        file_bytes: None,
        shmem_bytes: None,
        pgtables_bytes: None,
    };
    vec![event(KernelFact::OomContext(context)), event(KernelFact::OomKilled(killed))]
}

fn log(events: Vec<KernelEvent>) -> Reading<KernelLog> {
    Reading::Value(KernelLog { events, whole: true })
}

#[track_caller]
fn expect(facts: &Facts, cause: Cause, level: Option<Level>, confidence: Confidence) {
    let verdict = judge(facts).verdict;
    assert_eq!(
        (verdict.cause, verdict.level, verdict.confidence),
        (cause, level, confidence),
        "{}",
        verdict.summary
    );
}

#[test]
fn a_kernel_line_that_names_it_is_certain_and_its_paths_give_the_level() {
    for (limit, cause, level) in [
        (Some("/pod/prover"), Cause::OomOwnLimit, Level::Own),
        (Some("/pod"), Cause::OomAncestorLimit, Level::Ancestor),
        (Some("/host-slice"), Cause::OomAncestorLimit, Level::Hidden),
        (None, Cause::OomHost, Level::Host),
    ] {
        for named in [PID, THREAD] {
            let mut facts = killed_run();
            facts.memberships = vec![membership(1, [1, 0], false)];
            facts.kernel_log = log(oom(named, "worker", limit, "/pod/prover"));
            expect(&facts, cause, Some(level), Confidence::Certain);
        }
    }
}

#[test]
fn the_counter_of_an_exclusive_cgroup_is_enough_without_a_kernel_log() {
    for (hits, cause, level) in [
        ([1, 0], Cause::OomOwnLimit, Level::Own),
        ([0, 1], Cause::OomAncestorLimit, Level::Ancestor),
        ([0, 0], Cause::OomHost, Level::Host),
    ] {
        let mut facts = killed_run();
        facts.memberships = vec![membership(1, hits, false)];
        facts.kernel_log = unreadable();
        expect(&facts, cause, Some(level), Confidence::Likely);
    }
}

#[test]
fn a_neighbours_kill_beside_a_kill_9_in_a_shared_cgroup_is_never_certain() {
    let mut facts = killed_run();
    facts.memberships = vec![membership(1, [1, 0], true)];
    facts.kernel_log = unreadable();
    expect(&facts, Cause::OomSuspected, None, Confidence::Possible);
    // With the line the neighbour is known, and so is that it was not the run.
    facts.kernel_log = log(oom(9, "neighbour", Some("/pod/prover"), "/pod/prover"));
    expect(&facts, Cause::KilledUnknown, None, Confidence::Likely);
    assert_eq!(judge(&facts).members_killed.len(), 1);
}

#[test]
fn a_counter_that_did_not_move_rules_the_killer_out_whatever_the_host_counted() {
    let mut facts = killed_run();
    facts.vmstat_oom_kills = Reading::Value(7);
    for log in [unreadable(), Reading::Value(KernelLog { events: vec![], whole: false })] {
        facts.kernel_log = log;
        expect(&facts, Cause::KilledUnknown, None, Confidence::Likely);
    }
}

#[test]
fn a_counter_that_did_not_move_says_little_of_a_run_that_may_have() {
    let mut facts = killed_run();
    facts.kernel_log = unreadable();
    facts.vmstat_oom_kills = Reading::Value(1);
    facts.cgroup_last_seen_seconds = Some(30.0);
    expect(&facts, Cause::OomSuspected, None, Confidence::Possible);
    facts.vmstat_oom_kills = Reading::Value(0);
    expect(&facts, Cause::KilledUnknown, None, Confidence::Likely);
}

#[test]
fn unreadable_sources_are_never_a_no() {
    let mut facts = killed_run();
    facts.memberships =
        vec![Membership { baseline: unreadable(), at_death: unreadable(), kills_survived: 0 }];
    facts.kernel_log = unreadable();
    facts.vmstat_oom_kills = unreadable();
    expect(&facts, Cause::KilledUnknown, None, Confidence::Unknown);
    facts.vmstat_oom_kills = Reading::Value(1);
    expect(&facts, Cause::OomSuspected, None, Confidence::Possible);
    facts.vmstat_oom_kills = Reading::Value(0);
    expect(&facts, Cause::KilledUnknown, None, Confidence::Likely);
    let rows = judge(&facts).evidence;
    let of = |source| rows.iter().find(|row| row.source == source).map(|row| row.answer);
    assert_eq!(of(Source::CgroupOomKill), Some(Answer::Unreadable));
    assert_eq!(of(Source::KernelLog), Some(Answer::Unreadable));
    assert_eq!(of(Source::VmstatOomKill), Some(Answer::Empty));
}

#[test]
fn a_move_that_was_not_followed_leaves_the_counter_open() {
    let mut facts = killed_run();
    facts.memberships = vec![
        membership(0, [0, 0], false),
        Membership { baseline: unreadable(), at_death: unreadable(), kills_survived: 0 },
    ];
    facts.kernel_log = unreadable();
    facts.vmstat_oom_kills = Reading::Value(1);
    expect(&facts, Cause::OomSuspected, None, Confidence::Possible);
}

#[test]
fn a_kill_in_the_cgroup_that_it_left_or_entered_counts() {
    for memberships in [
        vec![membership(1, [1, 0], false), membership(0, [0, 0], false)],
        vec![membership(0, [0, 0], false), membership(1, [1, 0], false)],
    ] {
        let facts = Facts { memberships, kernel_log: unreadable(), ..killed_run() };
        assert!(matches!(judge(&facts).verdict.cause, Cause::OomOwnLimit | Cause::OomHost));
        assert_eq!(judge(&facts).verdict.confidence, Confidence::Likely);
    }
}

#[test]
fn inside_a_pid_namespace_name_and_cgroup_match_with_less_confidence() {
    let mut facts = killed_run();
    facts.tasks.numbers_are_global = false;
    facts.memberships = vec![membership(1, [1, 0], true)];
    let deep = "/kubepods/pod1/pod/prover";
    facts.kernel_log = log(oom(88_123, "prover", Some(deep), deep));
    expect(&facts, Cause::OomOwnLimit, Some(Level::Own), Confidence::Likely);
    facts.kernel_log = log(oom(88_123, "other", Some(deep), deep));
    expect(&facts, Cause::KilledUnknown, None, Confidence::Likely);
    // Nobody else was there to be hit.
    facts.memberships = vec![membership(1, [1, 0], false)];
    expect(&facts, Cause::OomOwnLimit, Some(Level::Own), Confidence::Likely);
}

#[test]
fn kills_that_the_run_lived_through_are_no_death_of_it() {
    let mut facts = killed_run();
    facts.kernel_log = unreadable();
    let survived = |kills_survived| {
        let one = membership(2, [2, 0], false);
        vec![Membership { kills_survived, ..one }]
    };
    facts.memberships = survived(2);
    expect(&facts, Cause::KilledUnknown, None, Confidence::Likely);
    facts.memberships = survived(1);
    expect(&facts, Cause::OomOwnLimit, Some(Level::Own), Confidence::Likely);
}

#[test]
fn a_member_killed_while_the_main_process_lived_on_is_an_event_and_no_verdict() {
    // moby#15621
    let mut facts = killed_run();
    facts.wait = WaitStatus::exited(0);
    facts.memberships = vec![membership(1, [1, 0], false)];
    facts.kernel_log = log(oom(9, "helper", Some("/pod/prover"), "/pod/prover"));
    expect(&facts, Cause::CleanExit, None, Confidence::Certain);
    assert!(judge(&facts).members_killed[0].contains("helper"));
    facts.wait = WaitStatus::killed(15, false);
    expect(&facts, Cause::Terminated, None, Confidence::Likely);
}

#[test]
fn members_that_go_with_the_run_are_named_though_only_the_first_kill_says_where_it_was() {
    let group = |memcg: &str| KernelFact::OomGroup(OomGroup { memcg: memcg.to_owned() });
    let member = |number| oom(number, "helper", None, "").pop().unwrap();
    let events = |memcg| {
        let first = oom(PID, "prover", Some("/pod/prover"), "/pod/prover");
        first.into_iter().chain([event(group(memcg)), member(9), member(10)]).collect::<Vec<_>>()
    };
    let mut facts = killed_run();
    facts.memberships = vec![membership(3, [3, 0], false)];
    facts.kernel_log = log(events("/pod/prover"));
    expect(&facts, Cause::OomOwnLimit, Some(Level::Own), Confidence::Certain);
    assert_eq!(judge(&facts).members_killed.len(), 2);
    // All of a cgroup above: of whom it names, nothing says that they were ours.
    facts.kernel_log = log(events("/pod"));
    assert_eq!(judge(&facts).members_killed.len(), 0);
}

#[test]
fn a_bare_137_or_sigkill_is_never_called_out_of_memory() {
    let at = Timestamp::UNIX_EPOCH;
    expect(&Facts::of(WaitStatus::exited(137), at), Cause::ErrorExit, None, Confidence::Certain);
    expect(&Facts::of(WaitStatus::killed(9, false), at), Cause::KilledUnknown, None, Confidence::Unknown);
}

#[test]
fn our_own_kills_are_known_whatever_the_counters_say() {
    let at = Timestamp::UNIX_EPOCH;
    let own = |signals: &[i32]| {
        signals.iter().map(|signal| OwnSignal { signal: *signal, at, watchdog: None }).collect()
    };
    for (wait, sent, cause) in [
        (WaitStatus::killed(9, false), &[15, 9][..], Cause::KilledBySupervisor),
        (WaitStatus::killed(15, false), &[15, 9], Cause::StoppedBySupervisor),
        (WaitStatus::exited(0), &[15], Cause::StoppedBySupervisor),
        (WaitStatus::exited(1), &[15], Cause::StoppedBySupervisor),
        // Killed by someone else while we waited for it to stop.
        (WaitStatus::killed(9, false), &[15], Cause::KilledUnknown),
        // It crashed while it was stopping.
        (WaitStatus::killed(11, false), &[15], Cause::Segfault),
        (WaitStatus::UNKNOWN, &[15], Cause::Unknown),
    ] {
        let mut facts = Facts { wait, own_signals: own(sent), ..killed_run() };
        assert_eq!(judge(&facts).verdict.cause, cause, "{wait} after {sent:?}");
        // The same, sent because it did not work.
        facts.own_signals.iter_mut().for_each(|own| own.watchdog = Some("no partition ended".to_owned()));
        let of_ours = matches!(cause, Cause::KilledBySupervisor | Cause::StoppedBySupervisor);
        assert_eq!(judge(&facts).verdict.cause, if of_ours { Cause::Watchdog } else { cause }, "{wait}");
    }
}

#[test]
fn a_known_sender_is_named_and_the_kernels_own_kill_is_not_taken_for_one() {
    let sent = |comm: &str, origin| SignalSent {
        at_us: 0,
        sender_pid: 41,
        sender_comm: Some(comm.to_owned()),
        signal: 9,
        origin,
        pid: PID,
        comm: "prover".to_owned(),
        group: true,
        outcome: SignalOutcome::Delivered,
    };
    let mut facts = killed_run();
    facts.kills_sent = Reading::Value(vec![sent("bash", SignalOrigin::Kill)]);
    expect(&facts, Cause::KilledByProcess, None, Confidence::Certain);
    let own = SignalSent { sender_pid: PID, ..sent("prover", SignalOrigin::Kill) };
    facts.kills_sent = Reading::Value(vec![own]);
    assert_eq!(judge(&facts).verdict.summary, "it sent itself SIGKILL");
    facts.kills_sent = Reading::Value(vec![sent("systemd-oomd", SignalOrigin::Kill)]);
    expect(&facts, Cause::OomUserspace, None, Confidence::Certain);
    facts.kills_sent = Reading::Value(vec![sent("prover", SignalOrigin::Kernel)]);
    expect(&facts, Cause::KilledUnknown, None, Confidence::Likely);
}

/// What a limit or a closed pipe does is no request from outside.
#[test]
fn a_signal_that_the_kernel_sends_for_a_reason_is_told_by_that_reason() {
    for (signal, reason) in [
        (13, "nobody reads"),
        (14, "timer"),
        (24, "RLIMIT_CPU"),
        (25, "RLIMIT_FSIZE"),
        (15, "asked it to end"),
    ] {
        let mut facts = killed_run();
        facts.wait = WaitStatus::killed(signal, false);
        expect(&facts, Cause::Terminated, None, Confidence::Likely);
        let summary = judge(&facts).verdict.summary;
        assert!(summary.contains(reason), "{summary}");
    }
}

#[test]
fn faults_are_certain_with_the_kernels_line_and_likely_without() {
    let fault = |pid| {
        let task = Named { pid, comm: "worker".to_owned() };
        event(KernelFact::Segfault(Segfault {
            task,
            address: 0x10,
            ip: 1,
            sp: None,
            error: None,
            mapping: None,
        }))
    };
    let mut facts = Facts { wait: WaitStatus::killed(11, false), ..killed_run() };
    expect(&facts, Cause::Segfault, None, Confidence::Likely);
    facts.kernel_log = log(vec![fault(THREAD)]);
    expect(&facts, Cause::Segfault, None, Confidence::Certain);
    // 70 is the beginning of 703 and somebody else's.
    facts.kernel_log = log(vec![fault(70)]);
    expect(&facts, Cause::Segfault, None, Confidence::Likely);
}

#[test]
fn a_panic_is_told_from_an_exit_and_an_abort() {
    let words = "thread 'main' panicked at src/main.rs:2:5:\nboom\n".to_owned();
    let facts = |wait| Facts { wait, output: Reading::Value(words.clone()), ..killed_run() };
    expect(&facts(WaitStatus::exited(101)), Cause::Panic, None, Confidence::Certain);
    expect(&facts(WaitStatus::killed(6, false)), Cause::Panic, None, Confidence::Certain);
    expect(&facts(WaitStatus::exited(1)), Cause::ErrorExit, None, Confidence::Certain);
    let silent = Facts { wait: WaitStatus::exited(101), ..killed_run() };
    expect(&silent, Cause::ErrorExit, None, Confidence::Certain);
}

#[test]
fn a_gpu_fault_needs_an_xid_that_may_be_its_own() {
    let xid = |pid, name: Option<&str>| {
        let name = name.map(str::to_owned);
        let (pci, text) = ("PCI:0000:01:00".to_owned(), "fault".to_owned());
        event(KernelFact::Xid(Xid {
            pci,
            gpu_instance: None,
            compute_instance: None,
            code: 31,
            pid,
            name,
            text,
        }))
    };
    let mut facts = Facts { wait: WaitStatus::exited(1), ..killed_run() };
    for (event, cause) in [
        (xid(Some(PID), Some("prover")), Cause::GpuFault),
        (xid(None, None), Cause::GpuFault),
        (xid(Some(9), Some("neighbour")), Cause::ErrorExit),
    ] {
        facts.kernel_log = log(vec![event]);
        assert_eq!(judge(&facts).verdict.cause, cause);
    }
    // HAMi#2393: an application's Xid beside a clean exit is no fault of the run.
    facts.wait = WaitStatus::exited(0);
    facts.kernel_log = log(vec![xid(Some(PID), Some("prover"))]);
    expect(&facts, Cause::CleanExit, None, Confidence::Certain);
}

#[test]
fn a_program_that_never_ran_is_a_failed_start_and_not_exit_127() {
    let start_error = Some("cannot execute".to_owned());
    let facts = Facts { start_error, ..Facts::of(WaitStatus::exited(127), Timestamp::UNIX_EPOCH) };
    expect(&facts, Cause::StartFailed, None, Confidence::Certain);
}

#[test]
fn facts_come_back_whole_from_json_and_lead_to_the_same_judgement() {
    let mut facts = killed_run();
    facts.memberships = vec![membership(1, [1, 0], false)];
    facts.kernel_log = log(oom(PID, "prover", Some("/pod"), "/pod/prover"));
    let json = serde_json::to_string(&facts).unwrap();
    let again: Facts = serde_json::from_str(&json).unwrap();
    assert_eq!(again, facts);
    assert_eq!(judge(&again), judge(&facts));
}
