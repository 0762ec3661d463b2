//! The task reader against trees that look like `/proc`, in a temporary folder: cases that a real kernel shows only for
//! an instant, only to other users, or only in other versions.

#![allow(clippy::unwrap_used, reason = "a fake tree that cannot be written fails the test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use sexton_host::task::Tasks;
use sexton_model::reading::{ObstacleKind, Reading};
use sexton_model::task::{SIGKILL_BIT, TaskState};
use sexton_model::wait::WaitStatus;

/// A `/proc` with PID 1 and whatever a test adds.
struct FakeProc {
    root: tempfile::TempDir,
}

/// One thread to be written below a [`FakeProc`].
#[derive(Clone)]
struct FakeTask {
    pid: i32,
    tid: i32,
    parent: i32,
    comm: &'static [u8],
    state: char,
    flags: u32,
    threads: u64,
    exit_code: i32,
    tracer: i32,
    extra_status: &'static str,
    wchan: Option<&'static str>,
    stack: Option<&'static str>,
    children: Option<&'static str>,
}

impl FakeTask {
    fn leader(pid: i32) -> Self {
        Self {
            pid,
            tid: pid,
            parent: 1,
            comm: b"prover",
            state: 'S',
            flags: 0,
            threads: 1,
            exit_code: 0,
            tracer: 0,
            extra_status: "VmRSS:\t    2048 kB\nRssAnon:\t    1024 kB\nRssFile:\t     768 kB\nRssShmem:\t     256 kB\nCoreDumping:\t0\n",
            wchan: Some("futex_wait_queue"),
            stack: None,
            children: Some(""),
        }
    }

    fn thread(&self, tid: i32) -> Self {
        Self { tid, comm: b"worker", ..self.clone() }
    }

    fn stat(&self) -> Vec<u8> {
        let Self { tid, parent, comm, state, flags, threads, exit_code, .. } = self;
        let head = format!("{tid} (").into_bytes();
        let tail = format!(
            ") {state} {parent} 7 7 0 -1 {flags} 0 0 0 0 250 150 0 0 20 0 {threads} 0 1000 0 0 \
             18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 {exit_code}\n"
        );
        [head, comm.to_vec(), tail.into_bytes()].concat()
    }

    fn status(&self) -> Vec<u8> {
        let Self { pid, tid, parent, comm, state, threads, tracer, extra_status, .. } = self;
        let name = [b"Name:\t", *comm, b"\n"].concat();
        let rest = format!(
            "Umask:\t0022\nState:\t{state} (whatever)\nTgid:\t{pid}\nNgid:\t0\nPid:\t{tid}\nPPid:\t{parent}\n\
             TracerPid:\t{tracer}\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t0 \n{extra_status}\
             Threads:\t{threads}\nSigQ:\t0/7\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n\
             SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n\
             CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
        );
        [name, rest.into_bytes()].concat()
    }

    fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        let optional = [("wchan", self.wchan), ("stack", self.stack), ("children", self.children)];
        let optional =
            optional.into_iter().filter_map(|(name, text)| Some((name, text?.as_bytes().to_vec())));
        [("stat", self.stat()), ("status", self.status())].into_iter().chain(optional).collect()
    }
}

impl FakeProc {
    fn new() -> Self {
        let fake = Self { root: tempfile::tempdir().unwrap() };
        fake.write("uptime", b"25.00 90.00\n");
        fake.add(&FakeTask { parent: 0, comm: b"init", ..FakeTask::leader(1) });
        fake
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, name: &str, contents: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    fn add(&self, task: &FakeTask) {
        for (name, contents) in task.files() {
            self.write(&format!("{}/task/{}/{name}", task.pid, task.tid), &contents);
            if task.pid == task.tid {
                self.write(&format!("{}/{name}", task.pid), &contents);
            }
        }
    }

    fn tasks(&self) -> Tasks {
        Tasks::under(self.root.path())
    }
}

#[test]
fn a_living_process_is_read_in_full() {
    let fake = FakeProc::new();
    fake.add(&FakeTask { threads: 2, ..FakeTask::leader(7) });
    fake.add(&FakeTask { state: 'R', wchan: Some("0"), ..FakeTask::leader(7).thread(8) });
    fake.write("7/cgroup", b"4:memory:/prover\n0::/\n");
    symlink("/opt/prover (deleted)", fake.path("7/task/7/exe")).unwrap();

    let process = fake.tasks().process(7).into_value().unwrap();
    assert_eq!((process.pid, process.start_ticks), (7, 1000));
    assert_eq!(process.age_seconds, Reading::Value(15.0), "uptime 25 s, started at tick 1000 of 100 Hz");
    assert_eq!((process.user_seconds, process.system_seconds), (2.5, 1.5));
    assert_eq!(process.executable, Reading::Value("/opt/prover (deleted)".to_owned()));
    assert_eq!(process.parent.value().unwrap().comm, Reading::Value("init".to_owned()));
    assert_eq!(process.cgroups.value().unwrap()[0].path, "/prover");
    assert_eq!(process.exit_status, Reading::Absent, "it has not exited");

    let status = process.leader.status.value().unwrap();
    let memory = status.memory.unwrap();
    assert_eq!(memory.total_bytes, 2 << 20);
    assert_eq!(memory.shared_bytes, Some(256 << 10));
    assert_eq!((status.threads, status.pending_thread), (2, SIGKILL_BIT));
    assert_eq!(status.core_dumping, Some(false));
    assert_eq!(process.leader.wchan, Reading::Value("futex_wait_queue".to_owned()));
    assert_eq!(process.others[0].wchan, Reading::Absent, "a running thread waits nowhere");
}

#[test]
fn a_hidden_wait_channel_is_unreadable_and_not_nowhere() {
    let fake = FakeProc::new();
    fake.add(&FakeTask { wchan: Some("0"), ..FakeTask::leader(7) });
    let process = fake.tasks().process(7).into_value().unwrap();
    assert_eq!(process.leader.wchan.obstacle().unwrap().kind, ObstacleKind::Denied);
}

#[test]
fn the_id_of_a_thread_leads_to_its_process() {
    let fake = FakeProc::new();
    fake.add(&FakeTask { threads: 2, ..FakeTask::leader(7) });
    let thread = FakeTask::leader(7).thread(8);
    fake.add(&thread);
    for (name, contents) in thread.files() {
        fake.write(&format!("8/{name}"), &contents);
    }
    assert_eq!(fake.tasks().process(8).into_value().unwrap().pid, 7);
}

#[test]
fn names_of_any_bytes_are_read() {
    let fake = FakeProc::new();
    fake.add(&FakeTask { comm: b"a) R 1 (\xff:", ..FakeTask::leader(7) });
    let process = fake.tasks().process(7).into_value().unwrap();
    assert_eq!(process.leader.comm, "a) R 1 (\u{fffd}:");
    assert!(process.leader.status.value().is_some());
}

#[test]
fn zero_in_field_52_is_a_status_only_with_ptrace_access() {
    let zombie = FakeTask { state: 'Z', extra_status: "", ..FakeTask::leader(7) };
    let status_of = |fake: &FakeProc| fake.tasks().process(7).into_value().unwrap().exit_status;

    let fake = FakeProc::new();
    fake.add(&zombie);
    assert_eq!(status_of(&fake).obstacle().unwrap().kind, ObstacleKind::Denied);

    fake.write("7/io", b"rchar: 0\n");
    assert_eq!(status_of(&fake), Reading::Value(WaitStatus::exited(0)));
    fs::remove_file(fake.path("7/io")).unwrap();
    fs::create_dir(fake.path("7/ns")).unwrap();
    symlink("user:[4026531837]", fake.path("7/ns/user")).unwrap();
    assert_eq!(status_of(&fake), Reading::Value(WaitStatus::exited(0)));
    fs::remove_dir_all(fake.path("7/ns")).unwrap();

    fake.add(&FakeTask { exit_code: 42 << 8, ..zombie.clone() });
    assert_eq!(status_of(&fake), Reading::Value(WaitStatus::exited(42)));
    fake.add(&FakeTask { exit_code: 9, ..zombie });
    assert_eq!(status_of(&fake), Reading::Value(WaitStatus::killed(9, false)));
}

#[test]
fn a_thread_that_vanishes_is_left_out() {
    let fake = FakeProc::new();
    fake.add(&FakeTask { threads: 3, ..FakeTask::leader(7) });
    fake.add(&FakeTask::leader(7).thread(9));
    fs::create_dir(fake.path("7/task/8")).unwrap(); // listed, and its files are gone
    let process = fake.tasks().process(7).into_value().unwrap();
    assert_eq!(process.others.iter().map(|thread| thread.tid).collect::<Vec<_>>(), [9]);
}

#[test]
fn a_process_that_vanishes_at_any_point_is_absent() {
    for lost in ["7/stat", "7/task/7/stat", "7/task", "7"] {
        let fake = FakeProc::new();
        fake.add(&FakeTask::leader(7));
        let path = fake.path(lost);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        assert_eq!(fake.tasks().process(7), Reading::Absent, "without {lost}");
    }
}

#[test]
fn a_proc_that_hides_others_does_not_make_them_dead() {
    let fake = FakeProc::new();
    fs::remove_dir_all(fake.path("1")).unwrap();
    assert_eq!(fake.tasks().process(7).obstacle().unwrap().kind, ObstacleKind::Denied);
}

#[test]
fn kernels_without_a_file_lack_the_field_only() {
    let fake = FakeProc::new();
    fake.add(&FakeTask {
        state: 'D',
        wchan: None,
        stack: None,
        extra_status: "VmRSS:\t 4 kB\n",
        ..FakeTask::leader(7)
    });
    let process = fake.tasks().process(7).into_value().unwrap();
    assert_eq!((&process.leader.wchan, &process.leader.kernel_stack), (&Reading::Absent, &Reading::Absent));
    assert_eq!(process.cgroups, Reading::Absent);
    let status = process.leader.status.value().unwrap();
    assert_eq!((status.core_dumping, status.memory.unwrap().anonymous_bytes), (None, None));
}

#[test]
fn stacks_are_read_of_threads_that_may_be_stuck() {
    let stack = Some("[<0>] nv_close+0x1/0x2 [nvidia]\n");
    let fake = FakeProc::new();
    fake.add(&FakeTask { stack, ..FakeTask::leader(7) });
    fake.add(&FakeTask { stack, state: 'D', ..FakeTask::leader(7).thread(8) });
    let process = fake.tasks().process(7).into_value().unwrap();
    assert_eq!(process.leader.kernel_stack, Reading::Absent, "asleep in a living process");
    assert_eq!(process.others[0].kernel_stack.value().unwrap()[0], "nv_close+0x1/0x2 [nvidia]");

    fake.add(&FakeTask { stack, state: 'Z', ..FakeTask::leader(7) });
    fake.add(&FakeTask { stack, state: 'R', flags: 4, ..FakeTask::leader(7).thread(8) });
    let process = fake.tasks().process(7).into_value().unwrap();
    assert_eq!(process.leader.kernel_stack, Reading::Absent, "the dead have none");
    assert!(process.others[0].exiting && process.others[0].kernel_stack.value().is_some());
}

#[test]
fn a_malformed_status_is_unreadable_with_its_path() {
    let fake = FakeProc::new();
    fake.add(&FakeTask::leader(7));
    fake.write("7/task/7/status", b"Name:\tx\n");
    let process = fake.tasks().process(7).into_value().unwrap();
    let obstacle = process.leader.status.obstacle().unwrap();
    assert_eq!(obstacle.kind, ObstacleKind::Malformed);
    assert!(obstacle.detail.contains("7/task/7/status"), "{obstacle}");
    assert_eq!(process.leader.state, TaskState::Sleeping, "what stat says is still there");
}

#[test]
fn an_uptime_before_the_start_gives_no_age() {
    let fake = FakeProc::new();
    fake.write("uptime", b"3.00 1.00\n");
    fake.add(&FakeTask::leader(7));
    let process = fake.tasks().process(7).into_value().unwrap();
    assert_eq!(process.age_seconds.obstacle().unwrap().kind, ObstacleKind::Malformed);
}

#[test]
fn tracers_and_parents_are_named() {
    let fake = FakeProc::new();
    fake.add(&FakeTask { comm: b"gdb", ..FakeTask::leader(5) });
    fake.add(&FakeTask { tracer: 5, parent: 5, threads: 2, ..FakeTask::leader(7) });
    fake.add(&FakeTask { tracer: 5, ..FakeTask::leader(7).thread(8) });
    let process = fake.tasks().process(7).into_value().unwrap();
    assert_eq!(process.tracers.len(), 1, "one tracer of two threads");
    assert_eq!(process.tracers[0].comm, Reading::Value("gdb".to_owned()));
    assert_eq!(process.parent.value(), Some(&process.tracers[0]));

    fake.add(&FakeTask { parent: 0, ..FakeTask::leader(7) });
    assert_eq!(
        fake.tasks().process(7).into_value().unwrap().parent,
        Reading::Absent,
        "outside the namespace"
    );
}

#[test]
fn the_tree_is_walked_with_and_without_children_files() {
    for listed in [true, false] {
        let children = |text| if listed { Some(text) } else { None };
        let fake = FakeProc::new();
        fake.add(&FakeTask { children: children("20 10 "), ..FakeTask::leader(7) });
        fake.add(&FakeTask { children: children("11"), ..FakeTask::leader(7).thread(8) });
        fake.add(&FakeTask { parent: 7, children: children(""), ..FakeTask::leader(10) });
        fake.add(&FakeTask { parent: 7, children: children(""), state: 'Z', ..FakeTask::leader(11) });
        fake.add(&FakeTask { parent: 7, children: children("30"), ..FakeTask::leader(20) });
        fake.add(&FakeTask { parent: 20, children: children("7"), ..FakeTask::leader(30) });
        assert_eq!(fake.tasks().children(7), Reading::Value(vec![10, 11, 20]), "listed: {listed}");
        assert_eq!(fake.tasks().descendants(7), Reading::Value(vec![10, 11, 20, 30]), "listed: {listed}");
        assert_eq!(fake.tasks().descendants(99), Reading::Absent);
    }
}
