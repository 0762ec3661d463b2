//! The memory-controller reader against the kernel of this machine, and real out-of-memory kills. v1 only: where the
//! controller is elsewhere, or its tree cannot be written, the tests say so and pass.

#![allow(clippy::unwrap_used, reason = "what cannot be set up fails the test")]

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sexton_host::cgroup::{MemoryHierarchy, locate_process};
use sexton_host::files::{Files, Recorder, Snapshot};
use sexton_host::memory;
use sexton_model::baseline::{CgroupBaseline, Continuity, LevelDifference, difference};
use sexton_model::cgroup::{Bound, BoundKind, CgroupVersion, Limit, MemoryCgroup};
use sexton_model::reading::Reading;

const MIB: u64 = 1 << 20;

/// A cgroup of our own; removed when dropped.
struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    /// Below the cgroup of this process. `None`, with the reason printed, where that is impossible.
    fn new() -> Option<Self> {
        let own = locate_process(&Files::system(), std::process::id() as i32);
        match own {
            Reading::Value(own) if own.version() == CgroupVersion::V1 => Self::below(own.own_folder()),
            Reading::Value(_) => skip("the memory controller is v2 here"),
            other => skip(&format!("{other:?}")),
        }
    }

    fn below(parent: &Path) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("sexton-host-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = parent.join(name);
        match fs::create_dir(&folder) {
            Ok(()) => Some(Self { folder }),
            Err(error) => skip(&format!("{}: {error}", folder.display())),
        }
    }

    fn limit(&self, bytes: u64) {
        fs::write(self.folder.join("memory.limit_in_bytes"), bytes.to_string()).unwrap();
    }

    /// Limits memory and swap together, where swap is accounted; after [`Self::limit`], which may not be above it.
    fn limit_with_swap(&self, bytes: u64) {
        self.limit(bytes);
        let path = self.folder.join("memory.memsw.limit_in_bytes");
        if path.exists() {
            fs::write(path, bytes.to_string()).unwrap();
        }
    }

    /// A process of this cgroup that runs `script`.
    fn shell(&self, script: &str) -> Child {
        Command::new("sh")
            .args(["-c", &format!("echo $$ > \"$0/cgroup.procs\" && {script}")])
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Has `tail` keep a line of 256 MiB, which the limits of these tests do not allow.
    fn run_out_of_memory(&self) -> ExitStatus {
        self.shell("head -c 256M /dev/zero | tail").wait().unwrap()
    }

    /// Where a process of this cgroup stands.
    fn hierarchy(&self) -> MemoryHierarchy {
        let mut child = self.shell("read line");
        let procs = self.folder.join("cgroup.procs");
        wait_until(|| fs::read_to_string(&procs).unwrap().lines().any(|pid| pid == child.id().to_string()));
        let hierarchy = locate_process(&Files::system(), child.id() as i32);
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        child.wait().unwrap();
        hierarchy.into_value().unwrap()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let begin = Instant::now();
        while fs::remove_dir(&self.folder).is_err() && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn skip<T>(why: &str) -> Option<T> {
    eprintln!("skipped: {why}");
    None
}

#[track_caller]
fn wait_until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(10), "not within 10 s");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn now(hierarchy: &MemoryHierarchy) -> MemoryCgroup {
    hierarchy.read(&Files::system())
}

fn kills(level: &LevelDifference) -> Option<u64> {
    level.gained.local.oom_kill.value().copied()
}

#[test]
fn limits_that_were_set_are_read_back() {
    let Some(parent) = Cgroup::new() else { return };
    let child = Cgroup::below(&parent.folder).unwrap();
    parent.limit(64 * MIB);
    let hierarchy = child.hierarchy();
    assert_eq!(hierarchy.own_folder(), child.folder);
    let cgroup = now(&hierarchy);
    assert_eq!(cgroup.levels[0].limit, Reading::Value(Limit::Unlimited));
    assert_eq!(cgroup.levels[1].limit, Reading::Value(Limit::Bytes(64 * MIB)));
    assert_eq!(cgroup.levels[0].stat.hierarchical_limit, Reading::Value(Limit::Bytes(64 * MIB)));
    let tightest = cgroup.tightest_limit();
    assert_eq!(tightest.bound, Some(Bound { bytes: 64 * MIB, kind: BoundKind::Limit, level: Some(1) }));
    assert_eq!(tightest.obstacles, []);
    assert!(cgroup.levels.iter().all(|level| level.charge_bytes().value().is_some()));
    assert_eq!(cgroup.levels[0].exclusive_to(&[]), Reading::Value(true), "nobody is in it any more");
}

#[test]
fn counters_differ_by_exactly_the_kills() {
    let Some(cgroup) = Cgroup::new() else { return };
    cgroup.limit_with_swap(32 * MIB);
    let hierarchy = cgroup.hierarchy();
    let vmstat_before = memory::vmstat(&Files::system()).into_value().unwrap().oom_kill;
    let mut seen = 0;
    for round in 1..=3 {
        let baseline = CgroupBaseline::of(&now(&hierarchy), &[]);
        assert!(!cgroup.run_out_of_memory().success());
        let levels = difference(&baseline, &now(&hierarchy));
        assert_eq!(levels[0].continuity, Continuity::Same, "round {round}");
        // The kernel may take its shell along, which it counts too.
        let gained = kills(&levels[0]).unwrap();
        assert!((1..=2).contains(&gained), "round {round}: {gained}");
        seen += gained;
    }
    assert_eq!(now(&hierarchy).levels[0].counters.local.oom_kill, Reading::Value(seen));
    let vmstat_after = memory::vmstat(&Files::system()).into_value().unwrap().oom_kill;
    assert!(vmstat_after.value().unwrap() - vmstat_before.value().unwrap() >= seen);
    let baseline = CgroupBaseline::of(&now(&hierarchy), &[]);
    let status = cgroup.shell("kill -KILL $$").wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    assert_eq!(kills(&difference(&baseline, &now(&hierarchy))[0]), Some(0), "kill -9 is no such kill");
}

/// The failcnt of a limit that is met counts; where the limit of memory and swap is the same, only the peak tells.
#[test]
fn containerd_6323_a_limit_of_the_parent_kills_in_the_child_and_shows_at_the_parent() {
    for limit in [Cgroup::limit, Cgroup::limit_with_swap] {
        let Some(parent) = Cgroup::new() else { return };
        let (child, sibling) =
            (Cgroup::below(&parent.folder).unwrap(), Cgroup::below(&parent.folder).unwrap());
        limit(&parent, 32 * MIB);
        child.limit(64 * MIB);
        let (of_child, of_sibling) = (child.hierarchy(), sibling.hierarchy());
        let before = [&of_child, &of_sibling].map(|hierarchy| CgroupBaseline::of(&now(hierarchy), &[]));
        assert!(!child.run_out_of_memory().success());

        let levels = difference(&before[0], &now(&of_child));
        assert_eq!(
            (kills(&levels[0]), kills(&levels[1])),
            (Some(1), Some(0)),
            "counted where the victim was"
        );
        assert_eq!(levels[0].limit_met, Reading::Value(false), "not the child's own limit");
        assert_eq!(levels[1].limit_met, Reading::Value(true), "but the parent's");
        let levels = difference(&before[1], &now(&of_sibling));
        assert_eq!(kills(&levels[0]), Some(0), "the sibling was not touched");
        assert_eq!(levels[0].limit_met, Reading::Absent, "and has no limit");
    }
}

#[test]
fn a_cgroup_made_again_under_the_same_name_is_noticed() {
    let Some(cgroup) = Cgroup::new() else { return };
    cgroup.limit_with_swap(16 * MIB);
    let hierarchy = cgroup.hierarchy();
    assert!(!cgroup.run_out_of_memory().success());
    let baseline = CgroupBaseline::of(&now(&hierarchy), &[]);
    wait_until(|| fs::remove_dir(&cgroup.folder).is_ok());
    let gone = now(&hierarchy).levels.remove(0);
    assert!(gone.limit.obstacle().is_some() && gone.counters.local.oom_kill.obstacle().is_some(), "{gone:?}");
    fs::create_dir(&cgroup.folder).unwrap();
    let level = difference(&baseline, &now(&hierarchy)).remove(0);
    assert_eq!((level.continuity, kills(&level)), (Continuity::MadeAnew, Some(0)));
}

#[test]
fn evidence_recorded_without_allocating_is_judged_as_the_live_files_are() {
    let Some(cgroup) = Cgroup::new() else { return };
    cgroup.limit_with_swap(24 * MIB);
    let hierarchy = cgroup.hierarchy();
    assert!(!cgroup.run_out_of_memory().success());
    let mut buffer = vec![0; 128 << 10];
    let mut recorder = Recorder::new(&mut buffer);
    hierarchy.files().iter().for_each(|path| recorder.file(path));
    let block = recorder.bytes().to_vec();
    assert_eq!(recorder.left_out(), 0);
    drop(cgroup);
    let recorded = hierarchy.read(&Files::Snapshot(Snapshot::decode(&block).unwrap()));
    assert_eq!(recorded.levels[0].counters.local.oom_kill, Reading::Value(1));
    assert_eq!(recorded.levels[0].limit, Reading::Value(Limit::Bytes(24 * MIB)));
}
