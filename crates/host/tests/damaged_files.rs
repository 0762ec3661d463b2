//! Every reader of cgroups and memory over damaged contents of every file it reads: no panic, and nothing that leaves
//! its range. A second of it always; five minutes with `SEXTON_TEST_LONG=1`.

#![allow(clippy::unwrap_used, reason = "a name of our own that is no UTF-8 fails the test")]

use std::time::{Duration, Instant};

use sexton_host::cgroup::{MemoryHierarchy, locate_process};
use sexton_host::files::{Files, Snapshot};
use sexton_host::mounts::Mounts;
use sexton_host::{memory, pressure};
use sexton_model::baseline::{CgroupBaseline, difference};

const MOUNTINFO: &[u8] = b"22 27 0:21 / /proc rw - proc proc rw\n\
    35 31 0:32 /docker/4f2a /sys/fs/cgroup/me\\040m ro,nosuid shared:7 master:2 - cgroup cgroup rw,memory\n\
    36 31 0:32 /../.. /cg rw - cgroup cgroup rw,memory\n41 31 0:38 / /u rw - cgroup2  rw,memory_localevents\n";
const PRESSURE: &[u8] =
    b"some avg10=1.50 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
const MEMINFO: &[u8] =
    b"MemTotal:  24684084 kB\nMemAvailable: 23604876 kB\nActive(file): 1 kB\nSwapTotal: 0 kB\n\
    SwapFree: 18446744073709551360 kB\nHugePages_Total: 2\n";

/// Contents to damage for a file of this name.
fn sample(name: &str) -> &'static [u8] {
    match name {
        "memory.oom_control" => b"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        "memory.events" | "memory.events.local" => b"low 0\nhigh 1\nmax 9\noom 2\noom_kill 5\noom_group_kill 1\n",
        "memory.stat" => {
            b"anon 7\nshmem 1\nactive_file 4096\ninactive_file 0\nhierarchical_memory_limit 9223372036854771712\n\
              total_active_file 18446744073709551615\ntotal_inactive_file 1\ntotal_dirty 7\n"
        }
        "memory.pressure" => PRESSURE,
        "memory.max" | "memory.high" | "memory.swap.max" => b"max\n",
        "memory.oom.group" => b"1\n",
        "cgroup.procs" => b"1\n0\n4015\n",
        "cgroup.controllers" => b"cpuset cpu memory\n",
        "mountinfo" => MOUNTINFO,
        _ => b"9223372036854771712\n",
    }
}

/// xorshift64*: the same damages in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end.max(1)
    }

    fn damaged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..self.below(5) {
            let (at, other) = (self.below(bytes.len()), self.below(bytes.len()));
            match self.below(6) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), self.below(256) as u8),
                2 if !bytes.is_empty() => bytes[at] = b"0 9\n\\/:.-=\xff"[self.below(11)],
                3 if at < other => drop(bytes.drain(at..other)),
                4 if at < other => {
                    let copy = bytes[at..other].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => bytes.extend_from_slice(b"99999999999999999999"),
            }
        }
        bytes
    }
}

fn read_all(hierarchy: &MemoryHierarchy, files: &Files) {
    let cgroup = hierarchy.read(files);
    assert_eq!(cgroup.levels.len(), hierarchy.levels().count());
    let (tightest, free) = (cgroup.tightest_limit(), cgroup.least_free());
    for bound in [tightest.bound, free.bound].into_iter().flatten() {
        assert!(bound.level.is_none_or(|level| level < cgroup.levels.len()));
    }
    let levels = difference(&CgroupBaseline::of(&cgroup, &[4015]), &cgroup);
    for counters in levels.iter().map(|level| &level.gained) {
        assert!(counters.local.oom_kill.value().is_none_or(|gained| *gained == 0));
    }
}

#[test]
fn no_damaged_file_panics() {
    let long = std::env::var("SEXTON_TEST_LONG").is_ok_and(|value| value == "1");
    let time = Duration::from_secs(if long { 300 } else { 1 });
    let mut random = Random(0x5EC5_7017);
    let begin = Instant::now();
    while begin.elapsed() < time {
        let mut snapshot = Snapshot::default();
        let lines: [&[u8]; 3] =
            [b"4:memory:/docker/4f2a/x\n0::/\n", b"0::/../a/b\n", b"4:memory:/../../a:b\n"];
        let lines = lines[random.below(3)];
        snapshot.insert("/proc/7/cgroup", Ok(random.damaged(lines)));
        let mountinfo = random.damaged(MOUNTINFO);
        Mounts::parse(&mountinfo);
        snapshot.insert("/proc/self/mountinfo", Ok(mountinfo));
        snapshot.insert(memory::MEMINFO, Ok(random.damaged(MEMINFO)));
        snapshot.insert(memory::VMSTAT, Ok(random.damaged(sample("memory.stat"))));
        snapshot.insert(pressure::MEMORY, Ok(random.damaged(PRESSURE)));
        let files = Files::Snapshot(snapshot.clone());
        memory::meminfo(&files).map(|meminfo| (meminfo.contradictions().len(), meminfo.swap_used_bytes()));
        memory::vmstat(&files);
        pressure::read(&files, pressure::MEMORY.as_ref());
        let Some(hierarchy) = locate_process(&files, 7).into_value() else { continue };
        for path in hierarchy.files() {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if random.below(10) > 0 {
                snapshot.insert(path, Ok(random.damaged(sample(&name))));
            }
        }
        let mut block = snapshot.encode();
        if random.below(4) == 0 {
            block = random.damaged(&block);
        }
        if let Ok(snapshot) = Snapshot::decode(&block) {
            read_all(&hierarchy, &Files::Snapshot(snapshot));
        }
    }
}
