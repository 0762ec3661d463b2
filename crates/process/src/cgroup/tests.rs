//! Real cgroups below our own, of whichever kind this machine has; skipped where it has none that can be written.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sexton_model::wait::WaitStatus;

use super::*;
use crate::{Held, Spawn};

const MIB: u64 = 1 << 20;

/// Below our own cgroup of the v1 memory controller, or of the unified hierarchy.
fn make(version: CgroupVersion) -> Option<Cgroup> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let (mark, mounts): (&str, &[&str]) = match version {
        CgroupVersion::V1 => (":memory:", &["/sys/fs/cgroup/memory"]),
        CgroupVersion::V2 => ("0::", &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]),
    };
    let path = own.lines().find_map(|line| line.split_once(mark).map(|(_, path)| path.to_owned()))?;
    let name =
        format!("sexton-test-process-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folders = mounts.iter().map(|mount| Path::new(mount).join(path.trim_start_matches('/')));
    let own = folders.into_iter().find(|folder| folder.join("cgroup.procs").exists());
    match own.map(|own| Cgroup::make(version, own.join(name))) {
        Some(Ok(cgroup)) => Some(cgroup),
        other => {
            println!("skipped: no {version:?} cgroup of our own: {other:?}");
            None
        }
    }
}

/// A shell inside that starts another process and waits.
fn two_inside(cgroup: &Path) -> Held {
    Spawn {
        program: "/bin/sh".into(),
        arguments: ["sh", "-c", "sleep 1000 & wait"].map(OsString::from).to_vec(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cgroup_procs: vec![cgroup.join("cgroup.procs")],
        ..Default::default()
    }
    .start()
    .unwrap()
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(30), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill_one_by_one(cgroup: &Cgroup) {
    wait_until("an empty cgroup", || {
        let members = cgroup.members().unwrap();
        for pid in &members {
            let _ = crate::Pidfd::open(*pid).map(|pidfd| pidfd.signal(crate::SIGKILL));
        }
        members.is_empty()
    });
}

#[test]
fn members_are_found_at_every_depth_and_a_busy_cgroup_is_not_removed() {
    for version in [CgroupVersion::V1, CgroupVersion::V2] {
        let Some(cgroup) = make(version) else { continue };
        let below = Cgroup::make(version, cgroup.folder().join("below")).unwrap();
        let deepest = Cgroup::make(version, below.folder().join("deepest")).unwrap();
        let (shallow, deep) = (two_inside(cgroup.folder()), two_inside(deepest.folder()));
        assert_eq!(cgroup.members().unwrap().len(), 2);
        assert_eq!(below.members().unwrap(), [deep.pid()], "they do not run yet");
        assert_eq!(cgroup.remove().unwrap(), Removal::Busy);
        let parents: Vec<_> = [shallow, deep].map(|held| held.release().0).into();
        wait_until("what the shells start", || cgroup.members().unwrap().len() == 4);

        if version == CgroupVersion::V2 {
            assert!(cgroup.kill().unwrap(), "Linux is 5.14 or later");
        } else {
            assert!(!cgroup.kill().unwrap(), "v1 has no such file");
            kill_one_by_one(&cgroup);
        }
        for parent in parents {
            assert_eq!(parent.wait().unwrap().status, WaitStatus::killed(9, false));
        }
        wait_until("its removal", || cgroup.remove().unwrap() == Removal::Gone);
        assert!(!cgroup.folder().exists());
        assert_eq!((cgroup.members().unwrap(), cgroup.remove().unwrap()), (vec![], Removal::Gone));
    }
}

#[test]
fn one_that_is_there_already_is_nobodys_to_make() {
    let Some(cgroup) = make(CgroupVersion::V1).or_else(|| make(CgroupVersion::V2)) else { return };
    let error = Cgroup::make(cgroup.version(), cgroup.folder().to_owned()).unwrap_err();
    assert_eq!(error.source.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(cgroup.remove().unwrap(), Removal::Gone);
}

#[test]
fn v1_limits_rise_and_fall_together_with_those_on_swap() {
    let Some(cgroup) = make(CgroupVersion::V1) else { return };
    for mib in [64, 256, 32] {
        let limits = MemoryLimits { max: Some(mib * MIB), high: Some(MIB) };
        assert_eq!(cgroup.limit(limits).unwrap(), ["memory.high"]);
        for file in ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] {
            let path = cgroup.folder().join(file);
            if path.exists() {
                assert_eq!(fs::read_to_string(path).unwrap().trim(), (mib * MIB).to_string(), "{file}");
            }
        }
    }
    assert_eq!(cgroup.remove().unwrap(), Removal::Gone);
}

#[test]
fn errors_name_the_file_and_say_what_is_the_matter() {
    let error = pass_memory_on(Path::new("/no/such/cgroup")).unwrap_err();
    assert!(error.to_string().starts_with("/no/such/cgroup/cgroup.subtree_control: No such file"), "{error}");
    let busy = CgroupError {
        path: "/x/cgroup.subtree_control".into(),
        source: io::Error::from_raw_os_error(libc::EBUSY),
    };
    assert!(busy.to_string().contains("processes are in this cgroup itself"), "{busy}");
}
