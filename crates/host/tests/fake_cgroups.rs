//! The memory-controller reader against trees that look like those of other hosts, and against recorded files with the
//! errors that root never gets. Tests are named after the public reports that they come from.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a fake tree that cannot be written fails the test")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sexton_host::cgroup::{MemoryHierarchy, locate, locate_process};
use sexton_host::files::{Files, Recorder, Snapshot};
use sexton_model::cgroup::{Bound, BoundKind, CgroupVersion, Limit, MemoryCgroup};
use sexton_model::reading::{ObstacleKind, Reading};
use sexton_model::run::CgroupPath;

const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
const V2: &str = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const SENTINEL: &str = "9223372036854771712";
const GIB: u64 = 1 << 30;
const PID: i32 = 4015;

/// A `/` with what a test puts in it, and process [`PID`].
struct FakeHost {
    root: tempfile::TempDir,
}

impl FakeHost {
    fn new(cgroup: &str, mountinfo: &str) -> Self {
        let host = Self { root: tempfile::tempdir().unwrap() };
        host.file(&format!("/proc/{PID}/cgroup"), cgroup);
        host.file("/proc/self/mountinfo", mountinfo);
        host
    }

    fn file(&self, path: &str, contents: &str) {
        let path = self.root.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    /// A v1 cgroup with 1 GiB in use, a quarter of it page cache.
    fn v1(&self, folder: &str, limit: &str, hierarchical: &str) {
        let stat = format!(
            "cache 7\nactive_file 7\nhierarchical_memory_limit {hierarchical}\nhierarchical_memsw_limit {SENTINEL}\n\
             total_rss 700000000\ntotal_shmem 4096\ntotal_dirty 0\ntotal_writeback 0\ntotal_swap 0\n\
             total_inactive_file 200000000\ntotal_active_file 68435456\n"
        );
        for (name, contents) in [
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
            ("memory.limit_in_bytes", &format!("{limit}\n")),
            ("memory.usage_in_bytes", "1073741824\n"),
            ("memory.max_usage_in_bytes", "2147483648\n"),
            ("memory.failcnt", "12\n"),
            ("memory.stat", &stat),
            ("cgroup.procs", "4015\n"),
        ] {
            self.file(&format!("{folder}/{name}"), contents);
        }
    }

    /// A v2 cgroup that is not the root.
    fn v2(&self, folder: &str, max: &str, high: &str) {
        for (name, contents) in [
            ("memory.events", "low 0\nhigh 1\nmax 9\noom 2\noom_kill 5\noom_group_kill 1\n"),
            ("memory.events.local", "low 0\nhigh 0\nmax 8\noom 1\noom_kill 4\noom_group_kill 0\n"),
            ("memory.max", &format!("{max}\n")),
            ("memory.high", &format!("{high}\n")),
            ("memory.swap.max", "0\n"),
            ("memory.current", "1073741824\n"),
            ("memory.swap.current", "0\n"),
            ("memory.peak", "2147483648\n"),
            (
                "memory.stat",
                "anon 700000000\nfile 300000000\nshmem 4096\nfile_dirty 0\ninactive_file 200000000\nactive_file 68435456\n",
            ),
            ("memory.oom.group", "1\n"),
            (
                "memory.pressure",
                "some avg10=1.00 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
            ),
            ("cgroup.procs", "4015\n0\n"),
            ("cgroup.events", "populated 1\nfrozen 0\n"),
            ("cgroup.controllers", "cpu io memory pids\n"),
        ] {
            self.file(&format!("{folder}/{name}"), contents);
        }
    }

    /// The root of a v2 hierarchy, with these controllers.
    fn v2_root(&self, folder: &str, controllers: &str) {
        self.file(&format!("{folder}/cgroup.controllers"), controllers);
        self.file(&format!("{folder}/cgroup.procs"), "1\n");
        self.file(&format!("{folder}/memory.stat"), "anon 1\nfile 2\n");
    }

    fn v1_root(&self, folder: &str) {
        self.v1(folder, SENTINEL, SENTINEL);
        self.file(&format!("{folder}/cgroup.sane_behavior"), "0\n");
    }

    fn files(&self) -> Files {
        Files::under(self.root.path())
    }

    #[track_caller]
    fn located(&self) -> MemoryHierarchy {
        match locate_process(&self.files(), PID) {
            Reading::Value(hierarchy) => hierarchy,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn read(&self) -> MemoryCgroup {
        self.located().read(&self.files())
    }
}

fn paths(cgroup: &MemoryCgroup) -> Vec<&str> {
    cgroup.levels.iter().map(|level| level.path.as_str()).collect()
}

fn bound(bytes: u64, level: Option<usize>) -> Option<Bound> {
    Some(Bound { bytes, kind: BoundKind::Limit, level })
}

#[track_caller]
fn kind_of<T: std::fmt::Debug>(reading: &Reading<T>) -> ObstacleKind {
    reading.obstacle().unwrap_or_else(|| panic!("{reading:?}")).kind
}

#[test]
fn otel_collector_4972_bottom_2093_the_leaf_says_unlimited_and_its_parent_binds() {
    let host = FakeHost::new("9:name=systemd:/x\n4:memory:/pod/prover\n", V1);
    host.v1_root("/sys/fs/cgroup/memory");
    host.v1("/sys/fs/cgroup/memory/pod", &(8 * GIB).to_string(), &(8 * GIB).to_string());
    host.v1("/sys/fs/cgroup/memory/pod/prover", SENTINEL, &(8 * GIB).to_string());
    let cgroup = host.read();
    assert_eq!(cgroup.version, CgroupVersion::V1);
    assert_eq!(paths(&cgroup), ["/pod/prover", "/pod", "/"]);
    assert_eq!(cgroup.levels[0].limit, Reading::Value(Limit::Unlimited));
    assert_eq!(cgroup.tightest_limit().bound, bound(8 * GIB, Some(1)));
    assert_eq!(cgroup.hidden_ancestors, Reading::Value(false));
    assert_eq!(cgroup.hidden_limit(), None);
}

#[test]
fn every_v1_field_is_read_hierarchical_sums_not_local_ones() {
    let host = FakeHost::new("4:memory:/a\n", V1);
    host.v1_root("/sys/fs/cgroup/memory");
    host.v1("/sys/fs/cgroup/memory/a", "2000000000", "2000000000");
    let own = host.read().levels.remove(0);
    assert_eq!(own.charge_bytes(), Reading::Value(GIB - 268_435_456));
    assert_eq!(own.peak_bytes, Reading::Value(2 * GIB));
    assert_eq!(own.stat.anon_bytes, Reading::Value(700_000_000));
    assert_eq!(
        (own.counters.failcnt.clone(), own.counters.local.oom_kill.clone()),
        (Reading::Value(12), Reading::Value(3))
    );
    assert_eq!(
        (own.oom_kill_disable.clone(), own.under_oom.clone()),
        (Reading::Value(false), Reading::Value(false))
    );
    assert_eq!(own.memsw_limit, Reading::Absent, "no swap accounting");
    assert_eq!(own.exclusive_to(&[PID]), Reading::Value(true));
}

#[test]
fn sysinfo_1669_automemlimit_31_in_a_hybrid_the_unified_line_first_is_not_the_answer() {
    let both = format!("41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n{V1}");
    for lines in ["0::/\n4:memory:/a\n", "4:memory:/a\n0::/\n", "11:cpu,memory:/a\n0::/\n"] {
        let host = FakeHost::new(lines, &both);
        host.v2_root("/sys/fs/cgroup/unified", "hugetlb\n");
        host.v1_root("/sys/fs/cgroup/memory");
        host.v1("/sys/fs/cgroup/memory/a", "1073741824", "1073741824");
        assert_eq!(host.read().tightest_limit().bound, bound(GIB, Some(0)), "{lines}");
    }
}

#[test]
fn preflight_226_the_own_path_is_read_not_the_root() {
    let host = FakeHost::new("0::/system.slice/prover.service\n", V2);
    host.v2_root("/sys/fs/cgroup", "cpu memory\n");
    host.v2("/sys/fs/cgroup/system.slice", "max", "max");
    host.v2("/sys/fs/cgroup/system.slice/prover.service", "4294967296", "3221225472");
    let cgroup = host.read();
    assert_eq!(cgroup.version, CgroupVersion::V2);
    assert_eq!(paths(&cgroup), ["/system.slice/prover.service", "/system.slice", "/"]);
    assert_eq!(cgroup.levels[0].limit, Reading::Value(Limit::Bytes(4 * GIB)));
    assert_eq!(cgroup.levels[1].limit, Reading::Value(Limit::Unlimited));
    assert_eq!(cgroup.levels[2].limit, Reading::Absent, "the root of v2 has no limit");
    let expected = Bound { bytes: 3 * GIB, kind: BoundKind::High, level: Some(0) };
    assert_eq!(cgroup.tightest_limit().bound, Some(expected));
    assert_eq!(cgroup.hidden_ancestors, Reading::Value(false));
}

#[test]
fn v2_events_of_the_cgroup_and_of_its_descendants_are_kept_apart() {
    let host = FakeHost::new("0::/a\n", V2);
    host.v2_root("/sys/fs/cgroup", "memory\n");
    host.v2("/sys/fs/cgroup/a", "max", "max");
    let own = host.read().levels.remove(0);
    assert_eq!(
        (own.counters.local.oom_kill, own.counters.subtree.oom_kill),
        (Reading::Value(4), Reading::Value(5))
    );
    assert_eq!(own.counters.subtree.oom_group_kill, Reading::Value(1));
    assert_eq!(own.oom_group, Reading::Value(true));
    assert_eq!(own.swap_limit, Reading::Value(Limit::Bytes(0)));
    assert_eq!(
        own.pressure.value().and_then(|pressure| pressure.some.value()).map(|some| some.avg10_ratio),
        Some(0.01)
    );
    let members = own.members.into_value().unwrap();
    assert_eq!((members.pids, members.foreign), (vec![PID], 1));
}

#[test]
fn with_memory_localevents_the_plain_file_is_the_local_one() {
    let host = FakeHost::new("0::/a\n", &V2.replace("nsdelegate", "nsdelegate,memory_localevents"));
    host.v2_root("/sys/fs/cgroup", "memory\n");
    host.v2("/sys/fs/cgroup/a", "max", "max");
    let counters = host.read().levels.remove(0).counters;
    assert_eq!((counters.local.oom_kill, counters.subtree.oom_kill), (Reading::Value(5), Reading::Absent));
}

#[test]
fn files_that_older_kernels_lack_are_absent() {
    let host = FakeHost::new("0::/a\n", V2);
    host.v2_root("/sys/fs/cgroup", "memory\n");
    host.v2("/sys/fs/cgroup/a", "max", "max");
    for name in ["memory.events.local", "memory.peak", "memory.oom.group", "memory.pressure"] {
        fs::remove_file(host.root.path().join("sys/fs/cgroup/a").join(name)).unwrap();
    }
    let own = host.read().levels.remove(0);
    assert_eq!((own.counters.local.oom_kill, own.peak_bytes), (Reading::Absent, Reading::Absent));
    assert_eq!((own.oom_group, own.pressure), (Reading::Absent, Reading::Absent));
    assert_eq!(own.counters.subtree.oom_kill, Reading::Value(5));
}

/// Its kills are counted at the parent, whose `cgroup.procs` says nothing about who else is charged there.
#[test]
fn a_v2_cgroup_without_the_controller_is_charged_to_its_parent() {
    let host = FakeHost::new("0::/a/leaf/sub\n", V2);
    host.v2_root("/sys/fs/cgroup", "memory\n");
    host.v2("/sys/fs/cgroup/a", "4294967296", "max");
    host.file("/sys/fs/cgroup/a/leaf/cgroup.procs", "");
    host.file("/sys/fs/cgroup/a/leaf/sub/cgroup.procs", "4015\n");
    let cgroup = host.read();
    assert_eq!(paths(&cgroup), ["/a", "/"]);
    assert_eq!(cgroup.levels[0].counters.local.oom_kill, Reading::Value(4));
    assert_eq!(kind_of(&cgroup.levels[0].exclusive_to(&[PID])), ObstacleKind::Failed);
}

#[test]
fn in_a_cgroup_namespace_the_root_has_a_limit_and_more_may_be_above() {
    let host = FakeHost::new("0::/\n", &V2.replace(" rw,nosuid ", " ro,nosuid "));
    host.v2("/sys/fs/cgroup", "8589934592", "max");
    let cgroup = host.read();
    assert_eq!(paths(&cgroup), ["/"]);
    assert_eq!(cgroup.hidden_ancestors, Reading::Value(true));
    assert_eq!(cgroup.tightest_limit().bound, bound(8 * GIB, Some(0)));
}

#[test]
fn docker_sees_its_own_v1_cgroup_only_and_the_kernel_gives_the_hidden_limit_away() {
    let mount = "45 40 0:32 /docker/4f2a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    let host = FakeHost::new("4:memory:/docker/4f2a/prover\n", mount);
    host.v1("/sys/fs/cgroup/memory", &(342 * GIB).to_string(), &(336 * GIB).to_string());
    host.v1("/sys/fs/cgroup/memory/prover", SENTINEL, &(336 * GIB).to_string());
    let cgroup = host.read();
    assert_eq!(paths(&cgroup), ["/docker/4f2a/prover", "/docker/4f2a"]);
    assert_eq!(cgroup.hidden_ancestors, Reading::Value(true));
    assert_eq!(cgroup.hidden_limit(), Some(336 * GIB));
    assert_eq!(cgroup.tightest_limit().bound, bound(336 * GIB, None));
}

#[test]
fn of_several_mounts_the_one_that_leads_to_the_cgroup_is_taken() {
    // The larger view is of a tree that was moved away; only the smaller one has files.
    let mounts = format!("{V1}50 31 0:32 /a /mnt/cg rw - cgroup cgroup rw,memory\n");
    let host = FakeHost::new("4:memory:/a/b\n", &mounts);
    host.v1("/mnt/cg", SENTINEL, SENTINEL);
    host.v1("/mnt/cg/b", SENTINEL, SENTINEL);
    assert_eq!(host.located().own_folder(), Path::new("/mnt/cg/b"));
    host.v1("/sys/fs/cgroup/memory/a/b", SENTINEL, SENTINEL);
    assert_eq!(host.located().own_folder(), Path::new("/sys/fs/cgroup/memory/a/b"));
}

#[test]
fn a_kernel_without_memory_controller_is_absent_one_that_hides_it_is_not() {
    let host = FakeHost::new("0::/a\n", V2);
    host.v2_root("/sys/fs/cgroup", "cpu io\n");
    assert_eq!(locate_process(&host.files(), PID), Reading::Absent);

    let inside = FakeHost::new("0::/\n", V2);
    inside.v2_root("/sys/fs/cgroup", "cpu io\n");
    inside.file("/sys/fs/cgroup/cgroup.events", "populated 1\n");
    assert_eq!(kind_of(&locate_process(&inside.files(), PID)), ObstacleKind::Failed);

    let none = FakeHost::new("1:name=systemd:/a\n", V1);
    assert_eq!(locate_process(&none.files(), PID), Reading::Absent);
}

#[test]
fn a_hierarchy_that_is_not_mounted_is_an_obstacle() {
    let host = FakeHost::new("4:memory:/a\n", V2);
    let reading = locate_process(&host.files(), PID);
    assert!(reading.obstacle().unwrap().detail.contains("not mounted here"), "{reading:?}");
}

#[test]
fn a_cgroup_that_was_removed_has_no_counters_rather_than_none_to_report() {
    let host = FakeHost::new("0::/a/gone (deleted)\n", V2);
    host.v2_root("/sys/fs/cgroup", "memory\n");
    host.v2("/sys/fs/cgroup/a", "4294967296", "max");
    let cgroup = host.read();
    let own = &cgroup.levels[0];
    assert_eq!(kind_of(&own.counters.local.oom_kill), ObstacleKind::Vanished);
    assert_eq!(kind_of(&own.limit), ObstacleKind::Vanished);
    assert_eq!(kind_of(&own.members), ObstacleKind::Vanished);
    let tightest = cgroup.tightest_limit();
    assert_eq!((tightest.bound, tightest.obstacles.is_empty()), (bound(4 * GIB, Some(1)), false));
}

#[test]
fn a_tree_that_cannot_be_written_is_read_all_the_same() {
    use std::os::unix::fs::PermissionsExt;
    let host = FakeHost::new("4:memory:/a\n", &V1.replace(" rw,relatime ", " ro,relatime "));
    host.v1_root("/sys/fs/cgroup/memory");
    host.v1("/sys/fs/cgroup/memory/a", "2000000000", "2000000000");
    let folder = host.root.path().join("sys/fs/cgroup/memory/a");
    for file in fs::read_dir(&folder).unwrap() {
        fs::set_permissions(file.unwrap().path(), fs::Permissions::from_mode(0o444)).unwrap();
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(host.read().levels[0].limit, Reading::Value(Limit::Bytes(2_000_000_000)));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn imp_2070_page_cache_is_not_counted_as_used() {
    let host = FakeHost::new("0::/\n", V2);
    host.v2("/sys/fs/cgroup", "8589934592", "max");
    host.file("/sys/fs/cgroup/memory.current", "8500000000\n");
    host.file(
        "/sys/fs/cgroup/memory.stat",
        "anon 2000000000\nshmem 0\nfile_dirty 0\nfile_writeback 0\ninactive_file 6000000000\nactive_file 0\n",
    );
    let cgroup = host.read();
    assert_eq!(cgroup.levels[0].charge_bytes(), Reading::Value(2_500_000_000));
    assert_eq!(cgroup.least_free().bound, bound(8 * GIB - 2_500_000_000, Some(0)));
}

/// What `host` shows, with `errno` for every file whose name begins with `name`.
fn refused(host: &FakeHost, name: &str, errno: i32) -> Files {
    let hierarchy = host.located();
    let mut snapshot = host.files().record(hierarchy.files());
    for path in hierarchy.files() {
        if path.file_name().unwrap().to_str().unwrap().starts_with(name) {
            snapshot.insert(path, Err(io::Error::from_raw_os_error(errno)));
        }
    }
    Files::Snapshot(snapshot)
}

#[test]
fn what_may_not_be_read_is_denied_and_lowers_nothing_to_zero() {
    let host = FakeHost::new("4:memory:/a\n", V1);
    host.v1_root("/sys/fs/cgroup/memory");
    host.v1("/sys/fs/cgroup/memory/a", "2000000000", "2000000000");
    let cgroup = host.located().read(&refused(&host, "memory.", libc::EACCES));
    for level in &cgroup.levels {
        assert_eq!(kind_of(&level.counters.local.oom_kill), ObstacleKind::Denied);
        assert_eq!(kind_of(&level.charge_bytes()), ObstacleKind::Denied);
        assert_eq!(kind_of(&level.limit), ObstacleKind::Denied);
    }
    assert_eq!(cgroup.tightest_limit().bound, None);
    assert_eq!(cgroup.tightest_limit().obstacles.len(), 2);
}

#[test]
fn pelagos_343_a_cgroup_removed_while_its_files_were_open_has_vanished() {
    let host = FakeHost::new("0::/a\n", V2);
    host.v2_root("/sys/fs/cgroup", "memory\n");
    host.v2("/sys/fs/cgroup/a", "max", "max");
    let cgroup = host.located().read(&refused(&host, "memory.events", libc::ENODEV));
    assert_eq!(kind_of(&cgroup.levels[0].counters.local.oom_kill), ObstacleKind::Vanished);
    assert_eq!(kind_of(&cgroup.levels[0].counters.subtree.oom), ObstacleKind::Vanished);
}

#[test]
fn psi_that_is_switched_off_is_no_obstacle() {
    let host = FakeHost::new("0::/a\n", V2);
    host.v2_root("/sys/fs/cgroup", "memory\n");
    host.v2("/sys/fs/cgroup/a", "max", "max");
    let cgroup = host.located().read(&refused(&host, "memory.pressure", libc::EOPNOTSUPP));
    assert_eq!(cgroup.levels[0].pressure, Reading::Absent);
}

#[test]
fn recorded_files_are_judged_as_live_ones() {
    let v1 = FakeHost::new("4:memory:/a/b\n", V1);
    v1.v1_root("/sys/fs/cgroup/memory");
    v1.v1("/sys/fs/cgroup/memory/a", SENTINEL, SENTINEL);
    v1.v1("/sys/fs/cgroup/memory/a/b", "2000000000", "2000000000");
    let v2 = FakeHost::new("0::/a/b\n", V2);
    v2.v2_root("/sys/fs/cgroup", "memory\n");
    v2.v2("/sys/fs/cgroup/a", "max", "max");
    v2.v2("/sys/fs/cgroup/a/b", "max", "4096");
    let charged_above = FakeHost::new("0::/a/b\n", V2);
    charged_above.v2_root("/sys/fs/cgroup", "memory\n");
    charged_above.v2("/sys/fs/cgroup/a", "max", "max");
    charged_above.file("/sys/fs/cgroup/a/b/cgroup.procs", "4015\n");
    for host in [v1, v2, charged_above] {
        let hierarchy = host.located();
        let mut buffer = vec![0; 64 << 10];
        let mut recorder = Recorder::new(&mut buffer);
        for path in hierarchy.files() {
            recorder.add(&path, fs::File::open(host.root.path().join(path.strip_prefix("/").unwrap())));
        }
        assert_eq!(recorder.left_out(), 0);
        let recorded = Files::Snapshot(Snapshot::decode(recorder.bytes()).unwrap());
        assert_eq!(hierarchy.read(&recorded), hierarchy.read(&host.files()));
        // A bundle has no hierarchy at hand: it finds it again.
        let lines = fs::read_to_string(host.root.path().join(format!("proc/{PID}/cgroup"))).unwrap();
        let (number, rest) = lines.trim().split_once(':').unwrap();
        let (controllers, path) = rest.split_once(':').unwrap();
        let line = CgroupPath {
            hierarchy: number.parse().unwrap(),
            controllers: controllers.to_owned(),
            path: path.to_owned(),
        };
        assert_eq!(locate(&recorded, &[line]), Reading::Value(hierarchy));
    }
}

#[test]
fn exactly_the_files_of_the_controller_are_read() {
    let host = FakeHost::new("4:memory:/a\n", V1);
    host.v1_root("/sys/fs/cgroup/memory");
    host.v1("/sys/fs/cgroup/memory/a", "2000000000", "2000000000");
    let files = host.located().files();
    let of_own: Vec<PathBuf> =
        files.iter().filter(|path| path.starts_with("/sys/fs/cgroup/memory/a")).cloned().collect();
    let names: Vec<_> = of_own.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "memory.oom_control",
            "memory.limit_in_bytes",
            "memory.memsw.limit_in_bytes",
            "memory.usage_in_bytes",
            "memory.max_usage_in_bytes",
            "memory.failcnt",
            "memory.memsw.failcnt",
            "memory.stat",
            "cgroup.procs"
        ]
    );
    assert_eq!(files.last().unwrap(), Path::new("/proc/self/mountinfo"));
    assert!(files.iter().all(|path| path.is_absolute()));
}
