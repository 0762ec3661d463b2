//! Real trees of processes, with and without a cgroup of their own.

use std::ffi::OsString;

use sexton_model::cgroup::CgroupVersion;
use sexton_model::run::{Executable, MadeCgroup};
use sexton_model::{SCHEMA_VERSION, Timestamp};
use sexton_process::Spawn;
use sexton_process::cgroup::Removal;

use super::super::own_cgroup::{self, Create, OwnCgroups, Settings};
use super::*;
use crate::runs::RunDir;

/// A prover of several processes.
struct Family {
    pidfd: Pidfd,
    record: RunRecord,
    _runs: tempfile::TempDir,
    dir: RunDir,
}

fn family(script: &str, with_cgroup: bool) -> Option<Family> {
    let runs = tempfile::tempdir().unwrap();
    let dir = RunDir::new(runs.path(), "20260101T000000.000Z-0001");
    std::fs::create_dir(dir.path()).unwrap();
    let mut made = None;
    if with_cgroup {
        let settings = Settings { create: Create::Auto, ..Settings::default() };
        let name = format!("tree-{}-{}", std::process::id(), fastrand::u32(..));
        let outcome = OwnCgroups::new(settings, &name).make(&dir, &[std::process::id() as i32]).unwrap();
        if outcome.made.is_none() {
            println!("skipped: {:?}", outcome.notes);
            return None;
        }
        made = outcome.made;
    }
    let procs: Vec<PathBuf> = made.iter().map(|made| own_cgroup::procs_file(made).into()).collect();
    let spawn = Spawn {
        program: "/bin/sh".into(),
        arguments: ["sh", "-c", script].map(OsString::from).to_vec(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cgroup_procs: procs,
        own_session: true,
        ..Spawn::default()
    };
    let held = spawn.start().unwrap();
    let record = RunRecord {
        schema_version: SCHEMA_VERSION,
        run_id: dir.run_id(),
        command: vec![],
        identity: Some(sexton_process::identity(held.pid()).unwrap()),
        executable: Executable::default(),
        started_at: Timestamp::now(),
        cgroups: vec![],
        made_cgroup: made,
        budget_bytes: None,
    };
    let (pidfd, started) = held.release();
    started.unwrap();
    Some(Family { pidfd, record, _runs: runs, dir })
}

impl Family {
    async fn wait_for(&self, count: usize) -> Tree {
        let tree = Tree::of(&self.record, None);
        let deadline = Instant::now() + Duration::from_secs(30);
        while tree.members().len() != count {
            assert!(Instant::now() < deadline, "{:?}", tree.members());
            sleep(Duration::from_millis(2)).await;
        }
        tree
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        Tree::of(&self.record, None).signal(SIGKILL);
        let _ = self.pidfd.wait();
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while !matches!(own_cgroup::remove(&self.dir), Ok(Removal::Gone)) {
            assert!(std::time::Instant::now() < deadline, "the cgroup does not get empty");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

const THREE: &str = "sh -c 'sleep 1000 & wait' & wait";
/// What is ignored stays so over `exec`.
const STUBBORN: &str = "trap '' TERM; sh -c 'while :; do sleep 1000; done' & wait";

#[tokio::test]
async fn circus_1044_the_whole_tree_is_stopped_with_and_without_a_cgroup() {
    for with_cgroup in [false, true] {
        let Some(family) = family(THREE, with_cgroup) else { continue };
        let tree = family.wait_for(3).await;
        assert_eq!(tree.others().len(), 2);
        let stopped = tree.stop(Duration::from_secs(30), Duration::from_secs(30)).await;
        assert_eq!((stopped.terminated.len(), stopped.killed, stopped.stuck), (3, vec![], vec![]));
        assert_eq!(tree.members(), []);
    }
}

#[tokio::test]
async fn who_ignores_sigterm_is_killed_after_its_time() {
    for with_cgroup in [false, true] {
        let Some(family) = family(STUBBORN, with_cgroup) else { continue };
        let tree = family.wait_for(3).await;
        let stopped = tree.stop(Duration::from_millis(200), Duration::from_secs(30)).await;
        assert!(!stopped.killed.is_empty() && stopped.stuck.is_empty(), "{stopped:?}");
        assert_eq!(tree.members(), []);
    }
}

/// The main process is dead, and in its cgroup others go on.
#[tokio::test]
async fn what_has_lost_its_parents_is_found_by_the_cgroup() {
    let Some(family) = family("setsid sleep 1000 & exec sleep 1001", true) else { return };
    let tree = family.wait_for(2).await;
    // Not before it is what it is going to be.
    let deadline = Instant::now() + Duration::from_secs(30);
    while tree.others().iter().any(|other| other.name != "sleep") {
        assert!(Instant::now() < deadline, "{:?}", tree.others());
        sleep(Duration::from_millis(2)).await;
    }
    family.pidfd.signal(SIGKILL).unwrap();
    family.pidfd.wait().unwrap();
    let left = tree.members();
    assert_eq!(left.iter().map(|left| left.name.as_str()).collect::<Vec<_>>(), ["sleep"]);
    assert_eq!(tree.signal(SIGTERM), left);
    family.wait_for(0).await;
}

/// Processes that stop each other by no cgroup: one that has a cgroup in common with a run is no member of its tree.
#[tokio::test]
async fn a_neighbour_in_a_shared_cgroup_is_not_touched() {
    let neighbour = family(THREE, false).unwrap();
    let family = family(THREE, false).unwrap();
    let (of_neighbour, tree) = (neighbour.wait_for(3).await, family.wait_for(3).await);
    tree.stop(Duration::from_secs(30), Duration::from_secs(30)).await;
    assert_eq!(of_neighbour.members().len(), 3);
}

#[tokio::test]
async fn a_record_of_another_boot_or_of_a_process_long_gone_names_nobody() {
    let family = family(THREE, false).unwrap();
    family.wait_for(3).await;
    let identity = family.record.identity.clone().unwrap();
    let mut other_boot = family.record.clone();
    other_boot.identity =
        Some(sexton_model::run::ProcessIdentity { boot_id: "other".into(), ..identity.clone() });
    other_boot.made_cgroup = Some(MadeCgroup {
        version: CgroupVersion::V1,
        path: "/".into(),
        folder: "/sys/fs/cgroup/memory".into(),
    });
    let mut other_process = family.record.clone();
    other_process.identity =
        Some(sexton_model::run::ProcessIdentity { start_ticks: identity.start_ticks + 1, ..identity });
    for record in [other_boot, other_process] {
        let tree = Tree::of(&record, None);
        assert_eq!((tree.members(), tree.signal(SIGKILL)), (vec![], vec![]));
    }
}
