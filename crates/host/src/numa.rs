//! NUMA nodes: `/sys/devices/system/node`, and which of them a process may use.

use std::path::{Path, PathBuf};

use sexton_model::numa::{MemoryNodes, NodeMemory};
use sexton_model::reading::{ObstacleKind, Reading};

use crate::files::Files;
use crate::flat_keyed::number;

const NODES: &str = "/sys/devices/system/node";
/// The nodes of a v2 cgroup, all above it considered. Empty or missing without the cpuset controller.
const CGROUP_NODES: &str = "cpuset.mems.effective";

/// Reads all nodes, and those that a child of the reader may use; `cgroup`, where it is going to be in one of v2, narrows
/// them.
pub fn read(files: &Files, cgroup: Option<&Path>) -> MemoryNodes {
    MemoryNodes { allowed: allowed(files, cgroup), nodes: nodes(files) }
}

fn allowed(files: &Files, cgroup: Option<&Path>) -> Reading<Vec<u32>> {
    let of_cgroup = cgroup.map(|folder| files.parsed(&folder.join(CGROUP_NODES), list));
    match of_cgroup {
        Some(Reading::Value(nodes)) if !nodes.is_empty() => Reading::Value(nodes),
        _ => files
            .parsed(Path::new("/proc/self/status"), |bytes| {
                let text = String::from_utf8_lossy(bytes);
                let line = text.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"));
                line.map(|line| list(line.as_bytes())).transpose()
            })
            .and_then(|nodes| nodes.map_or(Reading::Absent, Reading::Value)),
    }
}

fn nodes(files: &Files) -> Reading<Vec<NodeMemory>> {
    let with_memory = files.parsed(&PathBuf::from(NODES).join("has_memory"), list);
    with_memory.map(|numbers| numbers.into_iter().map(|number| node(files, number)).collect())
}

fn node(files: &Files, node: u32) -> NodeMemory {
    let path = format!("{NODES}/node{node}/meminfo");
    let bytes = files.bytes(Path::new(&path));
    let get = |key: &str| {
        bytes.clone().and_then(|bytes| match kib(&bytes, key) {
            None => Reading::Absent,
            Some(Ok(kib)) => Reading::Value(kib.saturating_mul(1024)),
            Some(Err(why)) => Reading::unreadable(ObstacleKind::Malformed, format!("{path}: {why}")),
        })
    };
    NodeMemory {
        node,
        total_bytes: get("MemTotal"),
        free_bytes: get("MemFree"),
        active_file_bytes: get("Active(file)"),
        inactive_file_bytes: get("Inactive(file)"),
        dirty_bytes: get("Dirty"),
        writeback_bytes: get("Writeback"),
        slab_reclaimable_bytes: get("SReclaimable"),
    }
}

/// `Node 0 MemTotal:       24683656 kB`
fn kib(bytes: &[u8], key: &str) -> Option<Result<u64, String>> {
    let text = String::from_utf8_lossy(bytes);
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.split_whitespace().last() == Some(key)).then(|| value.trim().to_owned())
    })?;
    let number = value.strip_suffix("kB").and_then(|kib| number(kib.trim_end()));
    Some(number.ok_or_else(|| format!("{key} is {value:?}, not what it should be")))
}

/// `0-1,4`. Ranges are bounded by what Linux can have.
fn list(bytes: &[u8]) -> Result<Vec<u32>, String> {
    const NODES_MAX: u32 = 1024;
    let text = String::from_utf8_lossy(bytes);
    let mut nodes = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
            return Err(format!("{range:?} is no range of nodes"));
        };
        if last < first || last >= NODES_MAX {
            return Err(format!("{range:?} is no range of nodes"));
        }
        nodes.extend(first..=last);
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Snapshot;

    #[test]
    fn lists_of_nodes() {
        assert_eq!(list(b"0-1,4\n"), Ok(vec![0, 1, 4]));
        assert_eq!(list(b"\n"), Ok(Vec::new()));
        for bad in ["a", "1-", "3-1", "0-4000000000", "-1"] {
            assert!(list(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    fn host(cgroup_nodes: &str) -> Files {
        let mut snapshot = Snapshot::default();
        let status = "Name:\tx\nMems_allowed_list:\t0-1\n";
        let node = "Node 1 MemTotal:  64 kB\nNode 1 MemFree:  7 kB\nNode 1 Active(file): x kB\n";
        for (path, text) in [
            ("/proc/self/status", status),
            ("/sys/devices/system/node/has_memory", "0-1\n"),
            ("/sys/devices/system/node/node1/meminfo", node),
            ("/cg/cpuset.mems.effective", cgroup_nodes),
        ] {
            snapshot.insert(path, Ok(text.as_bytes().to_vec()));
        }
        Files::Snapshot(snapshot)
    }

    #[test]
    fn nodes_and_those_that_are_allowed() {
        let found = read(&host("1\n"), Some(Path::new("/cg")));
        assert_eq!(found.allowed, Reading::Value(vec![1]));
        let nodes = found.nodes.into_value().unwrap();
        assert_eq!((nodes[1].node, &nodes[1].free_bytes), (1, &Reading::Value(7 << 10)));
        assert!(nodes[1].active_file_bytes.obstacle().is_some());
        assert_eq!(nodes[1].dirty_bytes, Reading::Absent);
        assert!(nodes[0].free_bytes.obstacle().is_some(), "not recorded is not absent");
    }

    #[test]
    fn a_cgroup_without_the_cpuset_controller_narrows_nothing() {
        assert_eq!(read(&host("\n"), Some(Path::new("/cg"))).allowed, Reading::Value(vec![0, 1]));
        assert_eq!(read(&host("1\n"), None).allowed, Reading::Value(vec![0, 1]));
    }

    #[test]
    fn this_host_answers() {
        let found = read(&Files::system(), None);
        assert!(found.allowed.value().is_some_and(|nodes| !nodes.is_empty()));
    }
}
