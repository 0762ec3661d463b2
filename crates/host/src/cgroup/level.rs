//! One cgroup: its files, and what they say.

use std::path::PathBuf;

use sexton_model::cgroup::{CgroupLevel, CgroupVersion, LevelCounters, Limit, MemoryEvents, MemoryStat};
use sexton_model::reading::{ObstacleKind, Reading};

use super::parse;
use super::place::{LevelFolder, Place};

use crate::files::{Files, parsed};
use crate::flat_keyed::{self, FlatKeyed};
use crate::pressure;

/// A file that every cgroup of every version has.
pub(super) const EVERYWHERE: &str = "cgroup.procs";
/// v2: a file that every cgroup with the memory controller has, but for the root.
pub(super) const WITH_MEMORY: &str = "memory.events";
/// v2: the controllers that a cgroup can have.
pub(super) const CONTROLLERS: &str = "cgroup.controllers";

/// A file that v1 has at the root of a hierarchy only (`CFTYPE_ONLY_ON_ROOT`), v2 everywhere else (`CFTYPE_NOT_ON_ROOT`).
pub(super) fn root_marker(version: CgroupVersion) -> &'static str {
    match version {
        CgroupVersion::V1 => "cgroup.sane_behavior",
        CgroupVersion::V2 => "cgroup.events",
    }
}

/// The files of one level. [`EVERYWHERE`] is last: if it is still there, the others were not missing because the cgroup
/// had gone.
pub(super) fn files(version: CgroupVersion) -> &'static [&'static str] {
    match version {
        CgroupVersion::V1 => &[
            "memory.oom_control",
            "memory.limit_in_bytes",
            "memory.memsw.limit_in_bytes",
            "memory.usage_in_bytes",
            "memory.max_usage_in_bytes",
            "memory.failcnt",
            "memory.memsw.failcnt",
            "memory.stat",
            EVERYWHERE,
        ],
        CgroupVersion::V2 => &[
            "memory.events",
            "memory.events.local",
            "memory.max",
            "memory.high",
            "memory.swap.max",
            "memory.current",
            "memory.swap.current",
            "memory.peak",
            "memory.stat",
            "memory.oom.group",
            "memory.pressure",
            EVERYWHERE,
        ],
    }
}

/// Reads one level.
pub(super) fn read(files: &Files, place: &Place, folder: &LevelFolder) -> CgroupLevel {
    let level = Contents::read(files, place.version, folder);
    match place.version {
        CgroupVersion::V1 => level.v1(folder),
        CgroupVersion::V2 => level.v2(folder, place.local_events),
    }
}

/// What came of reading each file.
struct Contents {
    files: Vec<(&'static str, PathBuf, Reading<Vec<u8>>)>,
}

impl Contents {
    fn read(files: &Files, version: CgroupVersion, level: &LevelFolder) -> Self {
        let read = |name: &&'static str| {
            let path = level.folder.join(name);
            let bytes = match *name {
                // PSI that is switched off is not an obstacle.
                "memory.pressure" => pressure::bytes(files, &path),
                _ => files.bytes(&path),
            };
            (*name, path, bytes)
        };
        let mut files: Vec<_> = self::files(version).iter().map(read).collect();
        let gone = files.last().is_some_and(|(_, _, bytes)| *bytes == Reading::Absent);
        if gone {
            for (_, path, bytes) in &mut files {
                if *bytes == Reading::Absent {
                    let detail = format!("{}: the cgroup is gone", path.display());
                    *bytes = Reading::unreadable(ObstacleKind::Vanished, detail);
                }
            }
        }
        Self { files }
    }

    fn parsed<T>(&self, name: &str, parser: impl FnOnce(&[u8]) -> Result<T, String>) -> Reading<T> {
        match self.files.iter().find(|(file, ..)| *file == name) {
            Some((_, path, Reading::Value(bytes))) => parsed(path, parser(bytes)),
            Some((_, _, Reading::Unreadable(obstacle))) => Reading::Unreadable(obstacle.clone()),
            Some((_, _, Reading::Absent)) | None => Reading::Absent,
        }
    }

    fn keyed(&self, name: &str) -> Reading<FlatKeyed> {
        let path = self.files.iter().find(|(file, ..)| *file == name).map(|(_, path, _)| path.as_path());
        self.parsed(name, |bytes| FlatKeyed::parse(path.unwrap_or(name.as_ref()), bytes))
    }

    fn number(&self, name: &str) -> Reading<u64> {
        self.parsed(name, parse::number)
    }

    fn v1(&self, folder: &LevelFolder) -> CgroupLevel {
        let oom_control = self.keyed("memory.oom_control");
        let stat = self.keyed("memory.stat");
        let flag = |key: &str| {
            let path = folder.folder.join("memory.oom_control");
            flat_keyed::get(&oom_control, key).and_then(|number| parsed(&path, parse::flag_of(number)))
        };
        let total = |key: &str| flat_keyed::get(&stat, key);
        CgroupLevel {
            path: folder.path.clone(),
            folder: folder.folder.to_string_lossy().into_owned(),
            limit: self.parsed("memory.limit_in_bytes", parse::limit_v1),
            high: Reading::Absent,
            memsw_limit: self.parsed("memory.memsw.limit_in_bytes", parse::limit_v1),
            swap_limit: Reading::Absent,
            usage_bytes: self.number("memory.usage_in_bytes"),
            peak_bytes: self.number("memory.max_usage_in_bytes"),
            swap_bytes: total("total_swap"),
            stat: MemoryStat {
                anon_bytes: total("total_rss"),
                shmem_bytes: total("total_shmem"),
                active_file_bytes: total("total_active_file"),
                inactive_file_bytes: total("total_inactive_file"),
                dirty_bytes: total("total_dirty"),
                writeback_bytes: total("total_writeback"),
                hierarchical_limit: total("hierarchical_memory_limit").map(parse::limit_v1_of),
            },
            counters: LevelCounters {
                failcnt: self.number("memory.failcnt"),
                memsw_failcnt: self.number("memory.memsw.failcnt"),
                local: MemoryEvents {
                    oom_kill: flat_keyed::get(&oom_control, "oom_kill"),
                    ..MemoryEvents::all(&Reading::Absent)
                },
                subtree: MemoryEvents::all(&Reading::Absent),
            },
            oom_kill_disable: flag("oom_kill_disable"),
            under_oom: flag("under_oom"),
            oom_group: Reading::Absent,
            pressure: Reading::Absent,
            members: self.parsed(EVERYWHERE, parse::members),
        }
    }

    fn v2(&self, folder: &LevelFolder, local_events: bool) -> CgroupLevel {
        let limit = |name: &str| -> Reading<Limit> { self.parsed(name, parse::limit_v2) };
        let stat = self.keyed("memory.stat");
        let part = |key: &str| flat_keyed::get(&stat, key);
        CgroupLevel {
            path: folder.path.clone(),
            folder: folder.folder.to_string_lossy().into_owned(),
            limit: limit("memory.max"),
            high: limit("memory.high"),
            memsw_limit: Reading::Absent,
            swap_limit: limit("memory.swap.max"),
            usage_bytes: self.number("memory.current"),
            peak_bytes: self.number("memory.peak"),
            swap_bytes: self.number("memory.swap.current"),
            stat: MemoryStat {
                anon_bytes: part("anon"),
                shmem_bytes: part("shmem"),
                active_file_bytes: part("active_file"),
                inactive_file_bytes: part("inactive_file"),
                dirty_bytes: part("file_dirty"),
                writeback_bytes: part("file_writeback"),
                hierarchical_limit: Reading::Absent,
            },
            counters: self.v2_counters(local_events),
            oom_kill_disable: Reading::Absent,
            under_oom: Reading::Absent,
            oom_group: self.parsed("memory.oom.group", parse::flag),
            pressure: self.parsed("memory.pressure", pressure::parse),
            members: self.parsed(EVERYWHERE, parse::members),
        }
    }

    fn v2_counters(&self, local_events: bool) -> LevelCounters {
        let subtree = events(&self.keyed("memory.events"));
        let (local, subtree) = match local_events {
            true => (subtree, MemoryEvents::all(&Reading::Absent)),
            false => (events(&self.keyed("memory.events.local")), subtree),
        };
        LevelCounters { failcnt: Reading::Absent, memsw_failcnt: Reading::Absent, local, subtree }
    }
}

fn events(file: &Reading<FlatKeyed>) -> MemoryEvents {
    let get = |key: &str| flat_keyed::get(file, key);
    MemoryEvents {
        high: get("high"),
        max: get("max"),
        oom: get("oom"),
        oom_kill: get("oom_kill"),
        oom_group_kill: get("oom_group_kill"),
    }
}
