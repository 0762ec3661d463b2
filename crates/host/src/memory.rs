//! Memory of the whole host: `/proc/meminfo`, `/proc/vmstat`, and the settings that decide what want of memory leads to.

use std::collections::BTreeMap;
use std::path::Path;

use sexton_model::memory::{Meminfo, MemoryPolicy, OvercommitMode, PanicOnOom, Vmstat};
use sexton_model::reading::{ObstacleKind, Reading};

use crate::files::Files;
use crate::flat_keyed::{FlatKeyed, number};

/// Figures of the moment.
pub const MEMINFO: &str = "/proc/meminfo";
/// Counts since boot.
pub const VMSTAT: &str = "/proc/vmstat";

const OVERCOMMIT_MEMORY: &str = "/proc/sys/vm/overcommit_memory";
const PANIC_ON_OOM: &str = "/proc/sys/vm/panic_on_oom";
const OOM_KILL_ALLOCATING_TASK: &str = "/proc/sys/vm/oom_kill_allocating_task";

/// Every file that this module reads: what to record at a death.
pub const FILES: [&str; 5] = [MEMINFO, VMSTAT, OVERCOMMIT_MEMORY, PANIC_ON_OOM, OOM_KILL_ALLOCATING_TASK];

/// Reads `/proc/meminfo`. Lines of other kernels are passed over; a line that this one lacks is absent.
pub fn meminfo(files: &Files) -> Reading<Meminfo> {
    files.parsed(Path::new(MEMINFO), Lines::parse).map(|lines| {
        let bytes = |key| lines.get(key, Unit::Bytes);
        let pages = |key| lines.get(key, Unit::Pages);
        Meminfo {
            total_bytes: bytes("MemTotal"),
            free_bytes: bytes("MemFree"),
            available_bytes: bytes("MemAvailable"),
            buffers_bytes: bytes("Buffers"),
            cached_bytes: bytes("Cached"),
            active_file_bytes: bytes("Active(file)"),
            inactive_file_bytes: bytes("Inactive(file)"),
            unevictable_bytes: bytes("Unevictable"),
            mlocked_bytes: bytes("Mlocked"),
            dirty_bytes: bytes("Dirty"),
            writeback_bytes: bytes("Writeback"),
            anon_bytes: bytes("AnonPages"),
            mapped_bytes: bytes("Mapped"),
            shmem_bytes: bytes("Shmem"),
            slab_reclaimable_bytes: bytes("SReclaimable"),
            slab_unreclaimable_bytes: bytes("SUnreclaim"),
            kernel_stack_bytes: bytes("KernelStack"),
            page_tables_bytes: bytes("PageTables"),
            secondary_page_tables_bytes: bytes("SecPageTables"),
            percpu_bytes: bytes("Percpu"),
            swap_total_bytes: bytes("SwapTotal"),
            swap_free_bytes: bytes("SwapFree"),
            swap_cached_bytes: bytes("SwapCached"),
            commit_limit_bytes: bytes("CommitLimit"),
            committed_bytes: bytes("Committed_AS"),
            anon_huge_bytes: bytes("AnonHugePages"),
            shmem_huge_bytes: bytes("ShmemHugePages"),
            file_huge_bytes: bytes("FileHugePages"),
            huge_pages_total: pages("HugePages_Total"),
            huge_pages_free: pages("HugePages_Free"),
            huge_pages_reserved: pages("HugePages_Rsvd"),
            huge_pages_surplus: pages("HugePages_Surp"),
            huge_page_size_bytes: bytes("Hugepagesize"),
            hugetlb_bytes: bytes("Hugetlb"),
            balloon_bytes: bytes("Balloon"),
        }
    })
}

/// Reads `/proc/vmstat`.
pub fn vmstat(files: &Files) -> Reading<Vmstat> {
    FlatKeyed::read(files, Path::new(VMSTAT)).map(|file| Vmstat {
        oom_kill: file.get("oom_kill"),
        scanned_background: file.get("pgscan_kswapd"),
        scanned_direct: file.get("pgscan_direct"),
        reclaimed_background: file.get("pgsteal_kswapd"),
        reclaimed_direct: file.get("pgsteal_direct"),
        swapped_in: file.get("pswpin"),
        swapped_out: file.get("pswpout"),
    })
}

/// Reads `vm.overcommit_memory`, `vm.panic_on_oom` and `vm.oom_kill_allocating_task`.
pub fn policy(files: &Files) -> MemoryPolicy {
    MemoryPolicy {
        overcommit: setting(files, OVERCOMMIT_MEMORY, |number| match number {
            0 => Some(OvercommitMode::Heuristic),
            1 => Some(OvercommitMode::Always),
            2 => Some(OvercommitMode::Never),
            _ => None,
        }),
        panic_on_oom: setting(files, PANIC_ON_OOM, |number| match number {
            0 => Some(PanicOnOom::Never),
            1 => Some(PanicOnOom::HostOnly),
            2 => Some(PanicOnOom::Always),
            _ => None,
        }),
        // Any number but 0 switches it on.
        oom_kill_allocating_task: setting(files, OOM_KILL_ALLOCATING_TASK, |number| Some(number != 0)),
    }
}

fn setting<T>(files: &Files, path: &str, meaning: impl FnOnce(u64) -> Option<T>) -> Reading<T> {
    files.parsed(Path::new(path), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let value = text.trim_end();
        number(value).and_then(meaning).ok_or_else(|| format!("{value:?} is no setting known here"))
    })
}

#[derive(Debug, Clone, Copy)]
enum Unit {
    Bytes,
    Pages,
}

/// `KEY: NUMBER kB`, or without a unit for numbers of pages.
struct Lines(BTreeMap<String, String>);

impl Lines {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let lines: BTreeMap<_, _> =
            lines.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect();
        if lines.is_empty() { Err("has no line KEY: NUMBER".to_owned()) } else { Ok(Self(lines)) }
    }

    /// kB are KiB here. What does not fit is `u64::MAX`.
    fn get(&self, key: &str, unit: Unit) -> Reading<u64> {
        let Some(value) = self.0.get(key) else { return Reading::Absent };
        let found = match unit {
            Unit::Bytes => value
                .strip_suffix("kB")
                .and_then(|kib| number(kib.trim_end()))
                .map(|kib| kib.saturating_mul(1024)),
            Unit::Pages => number(value),
        };
        match found {
            Some(found) => Reading::Value(found),
            None => {
                let detail = format!("{MEMINFO}: {key} is {value:?}, not what it should be");
                Reading::unreadable(ObstacleKind::Malformed, detail)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::files::Snapshot;

    fn holding(path: &str, contents: &[u8]) -> Files {
        let mut snapshot = Snapshot::default();
        snapshot.insert(path, Ok(contents.to_vec()));
        Files::Snapshot(snapshot)
    }

    #[test]
    fn lxcfs_values_that_wrapped_around_saturate_and_are_called_contradictions() {
        let text = b"MemTotal: 8388608 kB\nMemAvailable: 9000000 kB\nSwapTotal: 0 kB\nSwapFree: 18446744073709551360 kB\n";
        let meminfo = meminfo(&holding(MEMINFO, text)).into_value().unwrap();
        assert_eq!(meminfo.swap_free_bytes, Reading::Value(u64::MAX));
        assert_eq!(meminfo.swap_used_bytes(), Reading::Value(0));
        assert_eq!(meminfo.contradictions(), ["MemAvailable > MemTotal", "SwapFree > SwapTotal"]);
    }

    #[test]
    fn unknown_missing_and_bad_lines_spoil_only_themselves() {
        let text = b"MemTotal:       24684084 kB\nNewInLinux9: 3 pages\nno colon\nCached: many kB\nShmem: 7\nHugePages_Total:       2\n";
        let meminfo = meminfo(&holding(MEMINFO, text)).into_value().unwrap();
        assert_eq!(meminfo.total_bytes, Reading::Value(24_684_084 << 10));
        assert_eq!(meminfo.available_bytes, Reading::Absent);
        assert!(meminfo.cached_bytes.obstacle().is_some(), "not a number");
        assert!(meminfo.shmem_bytes.obstacle().is_some(), "7 of what?");
        assert_eq!(meminfo.huge_pages_total, Reading::Value(2));
        assert!(meminfo.contradictions().is_empty());
    }

    #[test]
    fn an_empty_meminfo_is_malformed_not_absent() {
        let reading = meminfo(&holding(MEMINFO, b""));
        assert_eq!(reading.obstacle().map(|obstacle| obstacle.kind), Some(ObstacleKind::Malformed));
    }

    #[test]
    fn this_host_answers_everything() {
        let files = Files::system();
        let meminfo = meminfo(&files).into_value().unwrap();
        assert!(meminfo.available_bytes.value() <= meminfo.total_bytes.value());
        assert!(meminfo.contradictions().is_empty());
        assert!(vmstat(&files).into_value().unwrap().oom_kill.value().is_some());
        assert!(policy(&files).overcommit.value().is_some());
        let recorded = Files::Snapshot(files.record(FILES));
        assert_eq!(policy(&recorded), policy(&files));
    }

    #[test]
    fn settings_have_names_and_an_unknown_one_is_not_guessed() {
        let read = |path, text: &[u8]| policy(&holding(path, text));
        assert_eq!(read(OVERCOMMIT_MEMORY, b"2\n").overcommit, Reading::Value(OvercommitMode::Never));
        assert!(read(OVERCOMMIT_MEMORY, b"3\n").overcommit.obstacle().is_some());
        assert_eq!(read(PANIC_ON_OOM, b"1\n").panic_on_oom, Reading::Value(PanicOnOom::HostOnly));
        let allocating = read(OOM_KILL_ALLOCATING_TASK, b"1\n").oom_kill_allocating_task;
        assert_eq!(allocating, Reading::Value(true));
        let elsewhere = read(PANIC_ON_OOM, b"1\n").overcommit;
        assert!(elsewhere.obstacle().is_some(), "what was not recorded is not the default");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (meminfo(&holding(MEMINFO, &bytes)), vmstat(&holding(VMSTAT, &bytes)));
            let _ = policy(&holding(PANIC_ON_OOM, &bytes));
        }
    }
}
