//! Headroom and the start gate, by tables of readings. The tests named after a report rebuild its situation.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use proptest::prelude::*;
use sexton_diagnosis::gate::{decide, largest_that_fits};
use sexton_diagnosis::headroom::{Circumstances, headroom};
use sexton_model::cgroup::{CgroupLevel, CgroupVersion, LevelCounters, Limit, MemoryCgroup, MemoryStat};
use sexton_model::gate::{Need, NeedSource};
use sexton_model::headroom::{Headroom, LimitLevel, LimitSource};
use sexton_model::memory::{Meminfo, OvercommitMode};
use sexton_model::numa::{MemoryNodes, NodeMemory};
use sexton_model::process_limits::ProcessLimits;
use sexton_model::reading::{ObstacleKind, Reading};

const GIB: u64 = 1 << 30;

/// A host, a line of cgroups, and everything else out of the way.
struct Host {
    meminfo: Reading<Meminfo>,
    overcommit: Reading<OvercommitMode>,
    cgroup: Reading<MemoryCgroup>,
    process: ProcessLimits,
    nodes: MemoryNodes,
    own_cgroup_limit: Option<u64>,
}

impl Host {
    fn new(total: u64, available: u64) -> Self {
        Self {
            meminfo: Reading::Value(meminfo(total, available)),
            overcommit: Reading::Value(OvercommitMode::Heuristic),
            cgroup: Reading::Absent,
            process: ProcessLimits {
                address_space: Reading::Value(Limit::Unlimited),
                data: Reading::Value(Limit::Unlimited),
            },
            nodes: MemoryNodes { allowed: Reading::Value(vec![0]), nodes: Reading::Absent },
            own_cgroup_limit: None,
        }
    }

    fn with(mut self, version: CgroupVersion, levels: Vec<CgroupLevel>) -> Self {
        let hidden_ancestors = Reading::Value(false);
        self.cgroup = Reading::Value(MemoryCgroup { version, hidden_ancestors, levels });
        self
    }

    fn meminfo(&mut self) -> &mut Meminfo {
        match &mut self.meminfo {
            Reading::Value(meminfo) => meminfo,
            _ => panic!("no meminfo"),
        }
    }

    fn headroom(&self) -> Headroom {
        headroom(&Circumstances {
            meminfo: &self.meminfo,
            overcommit: &self.overcommit,
            cgroup: &self.cgroup,
            process: &self.process,
            nodes: &self.nodes,
            own_cgroup_limit: self.own_cgroup_limit,
            being_released_bytes: 0,
        })
    }

    /// Bytes, and whose limit binds, in which cgroup.
    fn binding(&self) -> (u64, LimitSource, Option<String>) {
        let limit = self.headroom().binding_limit.unwrap();
        (limit.bytes, limit.source, limit.path)
    }
}

fn meminfo(total: u64, available: u64) -> Meminfo {
    let absent = || Reading::Absent;
    Meminfo {
        total_bytes: Reading::Value(total),
        free_bytes: absent(),
        available_bytes: Reading::Value(available),
        buffers_bytes: absent(),
        cached_bytes: absent(),
        active_file_bytes: absent(),
        inactive_file_bytes: absent(),
        unevictable_bytes: absent(),
        mlocked_bytes: absent(),
        dirty_bytes: absent(),
        writeback_bytes: absent(),
        anon_bytes: absent(),
        mapped_bytes: absent(),
        shmem_bytes: absent(),
        slab_reclaimable_bytes: absent(),
        slab_unreclaimable_bytes: absent(),
        kernel_stack_bytes: absent(),
        page_tables_bytes: absent(),
        secondary_page_tables_bytes: absent(),
        percpu_bytes: absent(),
        swap_total_bytes: absent(),
        swap_free_bytes: absent(),
        swap_cached_bytes: absent(),
        commit_limit_bytes: absent(),
        committed_bytes: absent(),
        anon_huge_bytes: absent(),
        shmem_huge_bytes: absent(),
        file_huge_bytes: absent(),
        huge_pages_total: absent(),
        huge_pages_free: absent(),
        huge_pages_reserved: absent(),
        huge_pages_surplus: absent(),
        huge_page_size_bytes: absent(),
        hugetlb_bytes: absent(),
        balloon_bytes: absent(),
    }
}

fn level(path: &str, limit: Limit, usage: u64) -> CgroupLevel {
    CgroupLevel {
        path: path.to_owned(),
        folder: format!("/sys/fs/cgroup{path}"),
        limit: Reading::Value(limit),
        high: Reading::Absent,
        memsw_limit: Reading::Absent,
        swap_limit: Reading::Absent,
        usage_bytes: Reading::Value(usage),
        peak_bytes: Reading::Absent,
        swap_bytes: Reading::Value(0),
        stat: MemoryStat {
            anon_bytes: Reading::Absent,
            shmem_bytes: Reading::Absent,
            active_file_bytes: Reading::Value(0),
            inactive_file_bytes: Reading::Value(0),
            dirty_bytes: Reading::Value(0),
            writeback_bytes: Reading::Value(0),
            hierarchical_limit: Reading::Absent,
        },
        counters: LevelCounters::all(&Reading::Absent),
        oom_kill_disable: Reading::Absent,
        under_oom: Reading::Absent,
        oom_group: Reading::Absent,
        pressure: Reading::Absent,
        members: Reading::Absent,
    }
}

fn own(path: &str) -> Option<String> {
    Some(path.to_owned())
}

/// otel-collector#4972: in v1 the own cgroup says "unlimited", and the pod's limit one level up was ignored.
#[test]
fn otel_collector_4972_the_limit_of_a_parent_counts() {
    let levels = vec![
        level("/pod/container", Limit::Unlimited, GIB),
        level("/pod", Limit::Bytes(8 * GIB), 3 * GIB),
        level("/", Limit::Unlimited, 100 * GIB),
    ];
    let host = Host::new(128 * GIB, 90 * GIB).with(CgroupVersion::V1, levels);
    assert_eq!(host.binding(), (5 * GIB, LimitSource::CgroupLimit, own("/pod")));
    assert_eq!(host.headroom().binding_limit.unwrap().level, LimitLevel::Ancestor);
}

/// bottom#2093: the same where the parent cannot be seen: `hierarchical_memory_limit` gives its limit away.
#[test]
fn bottom_2093_a_hidden_limit_counts() {
    let mut container = level("/", Limit::Unlimited, 2 * GIB);
    container.stat.hierarchical_limit = Reading::Value(Limit::Bytes(6 * GIB));
    let host = Host::new(128 * GIB, 90 * GIB).with(CgroupVersion::V1, vec![container]);
    assert_eq!(host.binding(), (4 * GIB, LimitSource::CgroupHidden, None));
    assert_eq!(host.headroom().binding_limit.unwrap().level, LimitLevel::Hidden);
}

/// sysinfo#1669, automemlimit#31: on a hybrid host `0::/` was read first and the whole host's memory taken for free. The
/// reader finds the hierarchy that owns `memory` (tested there); what it found decides here, not the host.
#[test]
fn sysinfo_1669_automemlimit_31_the_cgroup_binds_on_a_large_host() {
    let levels = vec![level("/docker/4f2a", Limit::Bytes(4 * GIB), GIB)];
    let host = Host::new(512 * GIB, 500 * GIB).with(CgroupVersion::V1, levels);
    assert_eq!(host.binding(), (3 * GIB, LimitSource::CgroupLimit, own("/docker/4f2a")));
}

/// preflight#226: `memory.max` of the root was read, which says nothing about the process' own cgroup.
#[test]
fn preflight_226_the_own_cgroup_counts_and_a_root_without_limit_does_not() {
    let mut root = level("/", Limit::Unlimited, 60 * GIB);
    root.limit = Reading::Absent;
    let levels = vec![level("/system.slice/prover.service", Limit::Bytes(16 * GIB), 4 * GIB), root];
    let host = Host::new(128 * GIB, 60 * GIB).with(CgroupVersion::V2, levels);
    assert_eq!(host.binding(), (12 * GIB, LimitSource::CgroupLimit, own("/system.slice/prover.service")));
    assert!(host.headroom().obstacles.is_empty());
}

/// imp#2070: MemAvailable of the host was believed in a container of 8 GiB, and its page cache counted as used.
#[test]
fn imp_2070_the_tightest_limit_and_page_cache_is_not_used_memory() {
    let mut container = level("/container", Limit::Bytes(8 * GIB), 7 * GIB);
    container.stat.inactive_file_bytes = Reading::Value(5 * GIB);
    let host = Host::new(64 * GIB, 50 * GIB).with(CgroupVersion::V2, vec![container]);
    assert_eq!(host.binding().0, 6 * GIB);
    assert_eq!(host.headroom().binding_limit.unwrap().cache_bytes, 5 * GIB);
}

/// Measured: adding the cache to MemAvailable gave 26.7 GiB on a machine of 24.1 GiB.
#[test]
fn the_host_has_memavailable_and_nothing_besides() {
    let mut host = Host::new(24 * GIB, 22 * GIB);
    host.meminfo().cached_bytes = Reading::Value(4 * GIB);
    host.meminfo().inactive_file_bytes = Reading::Value(3 * GIB);
    assert_eq!(host.binding(), (22 * GIB, LimitSource::HostAvailable, None));
}

#[test]
fn pinned_shared_memory_is_used_memory() {
    let mut own = level("/a", Limit::Bytes(64 * GIB), 40 * GIB);
    own.stat.shmem_bytes = Reading::Value(36 * GIB);
    let host = Host::new(128 * GIB, 100 * GIB).with(CgroupVersion::V2, vec![own]);
    assert_eq!(host.binding().0, 24 * GIB);
}

/// Parameters that were read twice are active cache. The prover that read them is dead; its cgroup holds them for ever.
#[test]
fn active_cache_of_a_dead_prover_keeps_nobody_out_and_dirty_cache_does() {
    let mut own = level("/a", Limit::Bytes(420 * GIB), 57 * GIB);
    own.stat.active_file_bytes = Reading::Value(57 * GIB);
    let host = Host::new(512 * GIB, 500 * GIB).with(CgroupVersion::V2, vec![own.clone()]);
    assert_eq!(host.binding().0, 420 * GIB);
    own.stat.dirty_bytes = Reading::Value(2 * GIB);
    own.stat.writeback_bytes = Reading::Value(GIB);
    let host = Host::new(512 * GIB, 500 * GIB).with(CgroupVersion::V2, vec![own]);
    assert_eq!(host.binding().0, 417 * GIB);
}

#[test]
fn each_limit_binds_where_it_is_the_least() {
    let line = || vec![level("/a", Limit::Bytes(64 * GIB), 4 * GIB)];
    let base = || Host::new(128 * GIB, 100 * GIB).with(CgroupVersion::V1, line());
    assert_eq!(base().binding(), (60 * GIB, LimitSource::CgroupLimit, own("/a")));

    let mut high = line();
    high[0].high = Reading::Value(Limit::Bytes(32 * GIB));
    let host = Host::new(128 * GIB, 100 * GIB).with(CgroupVersion::V2, high);
    assert_eq!(host.binding(), (28 * GIB, LimitSource::CgroupHigh, own("/a")));

    let mut memsw = line();
    memsw[0].memsw_limit = Reading::Value(Limit::Bytes(64 * GIB));
    memsw[0].swap_bytes = Reading::Value(10 * GIB);
    let host = Host::new(128 * GIB, 100 * GIB).with(CgroupVersion::V1, memsw);
    assert_eq!(host.binding(), (50 * GIB, LimitSource::CgroupMemsw, own("/a")));

    let mut host = base();
    host.process.address_space = Reading::Value(Limit::Bytes(8 * GIB));
    assert_eq!(host.binding(), (8 * GIB, LimitSource::AddressSpace, None));

    let mut host = base();
    host.process.data = Reading::Value(Limit::Bytes(7 * GIB));
    assert_eq!(host.binding(), (7 * GIB, LimitSource::DataSegment, None));

    let mut host = base();
    host.own_cgroup_limit = Some(6 * GIB);
    assert_eq!(host.binding(), (6 * GIB, LimitSource::CgroupLimit, None));

    let mut host = base();
    host.meminfo().commit_limit_bytes = Reading::Value(30 * GIB);
    host.meminfo().committed_bytes = Reading::Value(10 * GIB);
    assert_eq!(host.binding().1, LimitSource::CgroupLimit, "overcommit is not 2");
    host.overcommit = Reading::Value(OvercommitMode::Never);
    assert_eq!(host.binding(), (20 * GIB, LimitSource::CommitLimit, None));
    host.meminfo().committed_bytes = Reading::Value(40 * GIB);
    assert_eq!(host.binding().0, 0, "more promised than there is");
}

fn node(node: u32, free: u64, cache: u64) -> NodeMemory {
    NodeMemory {
        node,
        total_bytes: Reading::Value(64 * GIB),
        free_bytes: Reading::Value(free),
        active_file_bytes: Reading::Value(0),
        inactive_file_bytes: Reading::Value(cache),
        dirty_bytes: Reading::Value(0),
        writeback_bytes: Reading::Value(0),
        slab_reclaimable_bytes: Reading::Value(0),
    }
}

#[test]
fn numa_nodes_bind_where_not_all_are_allowed() {
    let mut host = Host::new(128 * GIB, 96 * GIB);
    host.meminfo().free_bytes = Reading::Value(90 * GIB);
    host.meminfo().inactive_file_bytes = Reading::Value(8 * GIB);
    host.nodes = MemoryNodes {
        allowed: Reading::Value(vec![0, 1, 2, 3]),
        nodes: Reading::Value(vec![node(0, 30 * GIB, 8 * GIB), node(1, 60 * GIB, 0)]),
    };
    assert_eq!(host.binding().1, LimitSource::HostAvailable, "all that have memory are allowed");
    host.nodes.allowed = Reading::Value(vec![0]);
    // 2 GiB of the host are not available though free: one of them falls to each node.
    assert_eq!(host.binding(), (37 * GIB, LimitSource::NumaNodes, None));
    host.nodes.allowed = Reading::Value(vec![5]);
    assert_eq!(host.binding().1, LimitSource::HostAvailable);
    assert!(host.headroom().obstacles[0].detail.contains("none of the allowed NUMA nodes"));
}

#[test]
fn what_lxcfs_makes_up_is_capped_and_named() {
    let host = Host::new(8 * GIB, u64::MAX);
    let headroom = host.headroom();
    assert_eq!(headroom.bytes, Reading::Value(8 * GIB));
    assert_eq!(headroom.contradictions, ["MemAvailable > MemTotal"]);
}

fn denied<T>() -> Reading<T> {
    Reading::unreadable(ObstacleKind::Denied, "/sys/fs/cgroup/a/memory.max: permission denied")
}

#[test]
fn what_cannot_be_read_is_named_and_is_not_unlimited() {
    let mut own = level("/a", Limit::Unlimited, GIB);
    own.limit = denied();
    let host = Host::new(128 * GIB, 100 * GIB).with(CgroupVersion::V2, vec![own]);
    let headroom = host.headroom();
    assert_eq!(headroom.bytes, Reading::Value(100 * GIB));
    assert_eq!(headroom.obstacles.len(), 1);

    let mut blind = Host::new(0, 0);
    blind.meminfo = denied();
    assert!(blind.headroom().bytes.obstacle().is_some(), "nothing is known: not 0, not unlimited");

    let mut no_usage = level("/a", Limit::Bytes(8 * GIB), 0);
    no_usage.usage_bytes = denied();
    let host = Host::new(128 * GIB, 100 * GIB).with(CgroupVersion::V2, vec![no_usage]);
    assert_eq!(host.headroom().limits.len(), 1, "a limit without a usage says nothing");
    assert_eq!(host.headroom().obstacles.len(), 1);
}

#[test]
fn all_limits_are_listed_the_tightest_first_and_the_sentence_names_the_binding_one() {
    let levels =
        vec![level("/a/b", Limit::Bytes(64 * GIB), 4 * GIB), level("/a", Limit::Bytes(80 * GIB), 40 * GIB)];
    let headroom = Host::new(128 * GIB, 100 * GIB).with(CgroupVersion::V2, levels).headroom();
    let bytes: Vec<u64> = headroom.limits.iter().map(|limit| limit.bytes / GIB).collect();
    assert_eq!(bytes, [40, 60, 100]);
    let words = headroom.binding_limit.as_ref().unwrap().to_string();
    assert_eq!(words, "memory limit of the cgroup /a (80.0 GiB): 40.0 GiB left");
    let json = serde_json::to_string(&headroom).unwrap();
    assert_eq!(serde_json::from_str::<Headroom>(&json).unwrap(), headroom);
}

mod gate {
    use sexton_diagnosis::drain::{Figures, Sample, Settings, Start, Tracker};
    use sexton_model::Timestamp;
    use sexton_model::drain::DrainReport;
    use sexton_model::process_state::{HeldMemory, ProcessState};

    use super::*;

    fn of_host(available: u64) -> Headroom {
        Host::new(512 * GIB, available).headroom()
    }

    fn need(bytes: u64) -> Option<Need> {
        Some(Need { bytes, source: NeedSource::Configured })
    }

    /// The drain of a run of 400 GiB that still holds `held`, at one look or two, `apart` seconds from each other.
    fn drain(gone: bool, held: u64, apart: u64) -> DrainReport {
        let figures = |charge| Figures {
            charge_bytes: Reading::Value(charge),
            shmem_bytes: Reading::Absent,
            available_bytes: Reading::Absent,
        };
        let start = Start {
            baseline: figures(0),
            exclusive: Reading::Value(true),
            alive: figures(400 * GIB),
            resident_bytes: None,
        };
        let at = Timestamp::UNIX_EPOCH;
        let mut tracker = Tracker::new(7, Settings::default(), start, Vec::new(), at);
        let exiting = || ProcessState::Exiting {
            leader_dead: false,
            threads: Vec::new(),
            memory: HeldMemory::Unmapped,
        };
        let mut look = |seconds: u64, charge| {
            let process = if gone { ProcessState::Gone } else { exiting() };
            let elapsed = std::time::Duration::from_secs(seconds);
            let threads_alive = Reading::Absent;
            tracker.feed(&Sample {
                at,
                elapsed,
                process,
                threads_alive,
                cpu_seconds: None,
                memory: figures(charge),
                work_done: None,
            })
        };
        look(0, if apart > 60 { held } else { 400 * GIB });
        look(apart, held)
    }

    #[test]
    fn it_opens_when_need_and_reserve_fit() {
        let report = decide(need(380 * GIB), 4 * GIB, of_host(384 * GIB), None);
        assert!(report.open, "{}", report.summary);
        let report = decide(need(380 * GIB), 4 * GIB, of_host(383 * GIB), None);
        assert!(!report.open);
        assert_eq!(report.short_by_bytes, GIB);
        let expected = "380.0 GiB and a reserve of 4.0 GiB do not fit, 1.0 GiB are missing; MemAvailable of the host \
                        (512.0 GiB): 383.0 GiB left";
        assert_eq!(report.summary, expected);
        assert!(report.eta_reason.contains("held by others"), "{}", report.eta_reason);
    }

    /// systemd#13288: a new instance was started over one that could not be killed.
    #[test]
    fn systemd_13288_a_left_over_keeps_it_shut_whatever_is_free() {
        let report = decide(need(GIB), 0, of_host(500 * GIB), Some(&drain(false, 400 * GIB, 1)));
        assert!(!report.open);
        assert!(report.summary.starts_with("the run before is not gone: exiting"), "{}", report.summary);
    }

    #[test]
    fn it_opens_while_the_rest_still_comes_back_once_enough_is_there() {
        let releasing = drain(true, 300 * GIB, 10);
        let report = decide(need(100 * GIB), 0, of_host(90 * GIB), Some(&releasing));
        assert!(!report.open);
        assert_eq!((report.still_releasing_bytes, report.eta_seconds), (300 * GIB, Some(1.0)));
        assert!(decide(need(100 * GIB), 0, of_host(100 * GIB), Some(&releasing)).open);
    }

    /// A need above the limit itself: whoever waited for that would wait for ever.
    #[test]
    fn a_need_above_a_limit_can_never_fit() {
        let line = vec![level("/a", Limit::Bytes(300 * GIB), 10 * GIB)];
        let headroom = Host::new(512 * GIB, 500 * GIB).with(CgroupVersion::V2, line).headroom();
        let report = decide(need(380 * GIB), 0, headroom.clone(), None);
        assert!(!report.open && !report.can_ever_fit);
        let expected = "380.0 GiB can never fit: memory limit of the cgroup /a (300.0 GiB): 290.0 GiB left";
        assert_eq!(report.summary, expected);
        assert!(decide(need(295 * GIB), 0, headroom, None).can_ever_fit, "it may wait for 5 GiB");
        let report = decide(need(600 * GIB), 0, of_host(500 * GIB), None);
        assert!(report.summary.contains("grows as it is used"), "{}", report.summary);
    }

    #[test]
    fn what_is_coming_back_may_not_be_enough() {
        let report = decide(need(400 * GIB), 0, of_host(90 * GIB), Some(&drain(true, 200 * GIB, 10)));
        assert_eq!(report.eta_seconds, None);
        assert!(report.eta_reason.contains("110.0 GiB are missing all the same"), "{}", report.eta_reason);
    }

    #[test]
    fn without_a_need_all_is_waited_for_unless_it_stalls() {
        let report = decide(None, 4 * GIB, of_host(90 * GIB), Some(&drain(true, 200 * GIB, 10)));
        assert!(!report.open);
        let stalled = drain(true, 200 * GIB, 100);
        assert!(stalled.stalled);
        assert!(decide(None, 4 * GIB, of_host(90 * GIB), Some(&stalled)).open);
        assert!(decide(None, 4 * GIB, of_host(90 * GIB), None).open);
        let released = drain(true, 0, 10);
        assert!(decide(None, 0, of_host(90 * GIB), Some(&released)).open);
    }

    #[test]
    fn a_stall_is_told_with_its_sentence() {
        let report = decide(need(200 * GIB), 0, of_host(90 * GIB), Some(&drain(true, 200 * GIB, 100)));
        assert!(!report.open);
        assert!(report.summary.contains("do not come back: stalled"), "{}", report.summary);
    }

    #[test]
    fn a_headroom_that_cannot_be_read_keeps_nobody_out() {
        let mut blind = Host::new(0, 0);
        blind.meminfo = Reading::unreadable(ObstacleKind::Denied, "/proc/meminfo: permission denied");
        let report = decide(need(GIB), 0, blind.headroom(), None);
        assert!(report.open && report.summary.contains("permission denied"), "{}", report.summary);
    }

    #[test]
    fn the_largest_step_that_fits() {
        let steps = [400 * GIB, 340 * GIB, 280 * GIB];
        let fits = |there, floor| largest_that_fits(&steps, floor, 10 * GIB, 4 * GIB, &of_host(there));
        assert_eq!(fits(414 * GIB, 0), Some(400 * GIB));
        assert_eq!(fits(413 * GIB, 0), Some(340 * GIB));
        assert_eq!(fits(300 * GIB, 300 * GIB), None, "what fits is below the floor");
        assert_eq!(fits(100 * GIB, 0), None);
    }
}

fn reading() -> impl Strategy<Value = Reading<u64>> {
    let edges = prop_oneof![Just(0), Just(u64::MAX), Just(u64::MAX - 4096), 0..64 * GIB];
    prop_oneof![
        4 => edges.prop_map(Reading::Value),
        1 => Just(Reading::Absent),
        1 => Just(Reading::unreadable(ObstacleKind::Failed, "x")),
    ]
}

proptest! {
    /// Whatever the files say: nothing panics, and what is told is the least of what is listed.
    #[test]
    fn no_reading_overflows(numbers in prop::collection::vec(reading(), 12), never in any::<bool>()) {
        let mut host = Host::new(0, 0);
        let mut own = level("/a", Limit::Unlimited, 0);
        let limit = |reading: &Reading<u64>| reading.clone().map(Limit::Bytes);
        own.limit = limit(&numbers[0]);
        own.high = limit(&numbers[1]);
        own.memsw_limit = limit(&numbers[2]);
        own.usage_bytes = numbers[3].clone();
        own.swap_bytes = numbers[4].clone();
        own.stat.active_file_bytes = numbers[5].clone();
        own.stat.inactive_file_bytes = numbers[6].clone();
        own.stat.dirty_bytes = numbers[7].clone();
        own.stat.hierarchical_limit = limit(&numbers[8]);
        let meminfo = host.meminfo();
        meminfo.available_bytes = numbers[9].clone();
        meminfo.total_bytes = numbers[10].clone();
        meminfo.commit_limit_bytes = numbers[11].clone();
        meminfo.committed_bytes = numbers[3].clone();
        meminfo.free_bytes = numbers[7].clone();
        host.overcommit = Reading::Value(if never { OvercommitMode::Never } else { OvercommitMode::Always });
        host.nodes = MemoryNodes {
            allowed: Reading::Value(vec![0]),
            nodes: Reading::Value(vec![node(0, 7, u64::MAX), node(1, 1, 1)]),
        };
        let headroom = host.with(CgroupVersion::V2, vec![own]).headroom();
        let least = headroom.limits.iter().map(|limit| limit.bytes).min();
        prop_assert_eq!(headroom.bytes.value().copied(), least);
    }
}
