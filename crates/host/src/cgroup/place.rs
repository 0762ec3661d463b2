//! From the lines of `/proc/PID/cgroup` and the mounts to folders. Pure.

use std::path::PathBuf;

use sexton_model::cgroup::CgroupVersion;
use sexton_model::run::CgroupPath;

use crate::mounts::{Mount, Mounts};

/// A cgroup and those above it, seen through one mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) version: CgroupVersion,
    /// What the mount shows at its mount point.
    root: String,
    /// v2: `memory.events` is about the cgroup alone, as `memory.events.local` always is.
    pub(super) local_events: bool,
    /// v2: the process' cgroup and those above it that do without the memory controller, up to `own`. What happens there
    /// is counted in `own`.
    pub(super) without_memory: Vec<LevelFolder>,
    /// The cgroup that the process' memory is charged to.
    pub(super) own: LevelFolder,
    /// Its parent, and so on up to the root of the mount.
    above: Vec<LevelFolder>,
}

/// One cgroup by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelFolder {
    /// As `/proc/PID/cgroup` would show it.
    pub path: String,
    /// Its folder on this host.
    pub folder: PathBuf,
}

impl Place {
    /// The root of the mount.
    pub(super) fn top(&self) -> &LevelFolder {
        self.above.last().unwrap_or(&self.own)
    }

    /// Own first, the root of the mount last.
    pub(super) fn levels(&self) -> impl Iterator<Item = &LevelFolder> {
        std::iter::once(&self.own).chain(&self.above)
    }

    /// The same place, begun at the first level that `has_memory`; at the last one where none has.
    pub(super) fn begun_where(mut self, has_memory: impl Fn(&LevelFolder) -> bool) -> Self {
        while !self.above.is_empty() && !has_memory(&self.own) {
            let parent = self.above.remove(0);
            self.without_memory.push(std::mem::replace(&mut self.own, parent));
        }
        self
    }

    /// Whether the mount shows less than the reader's cgroup namespace.
    pub(super) fn is_below_root(&self) -> bool {
        components(&self.root).next().is_some_and(|first| first != "..")
    }
}

/// The line of the hierarchy that owns `memory`. A v1 line that names it settles that; only without one the unified
/// hierarchy can own it, wherever its line stands.
pub(super) fn owner(lines: &[CgroupPath]) -> Option<(CgroupVersion, &CgroupPath)> {
    let v1 = lines.iter().find(|line| line.controllers.split(',').any(|name| name == "memory"));
    let v2 = || lines.iter().find(|line| line.hierarchy == 0 && line.controllers.is_empty());
    v1.map(|line| (CgroupVersion::V1, line)).or_else(|| v2().map(|line| (CgroupVersion::V2, line)))
}

/// Every way to the cgroup at `path`; first the one that shows most of what is above it. At least one.
pub(super) fn candidates(version: CgroupVersion, path: &str, mounts: &Mounts) -> Result<Vec<Place>, String> {
    let of_hierarchy: Vec<&Mount> = mounts.uncovered().filter(|mount| is_of(version, mount)).collect();
    let mut places: Vec<Place> =
        of_hierarchy.iter().filter_map(|mount| place(version, path, mount)).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.above.len()));
    if !places.is_empty() {
        return Ok(places);
    }
    let name = match version {
        CgroupVersion::V1 => "cgroup v1 memory hierarchy",
        CgroupVersion::V2 => "unified cgroup hierarchy",
    };
    let roots: Vec<&str> = of_hierarchy.iter().map(|mount| mount.root.as_str()).collect();
    Err(match (roots.as_slice(), mounts.not_understood) {
        ([], 0) => format!("the {name} is not mounted here, which {path} is in"),
        ([], lines) => {
            format!("no mount of the {name} found, and {lines} lines of mountinfo were not understood")
        }
        (roots, _) => {
            format!("cgroup {path} is outside of what is mounted of the {name}: {}", roots.join(", "))
        }
    })
}

fn is_of(version: CgroupVersion, mount: &Mount) -> bool {
    match version {
        CgroupVersion::V1 => mount.file_system == "cgroup" && mount.has_super_option("memory"),
        CgroupVersion::V2 => mount.file_system == "cgroup2",
    }
}

/// Path and root are compared by their parts, `..` included: `/../x` is below `/..`. Where only the root goes up, the
/// names on the way down again are not known.
fn place(version: CgroupVersion, path: &str, mount: &Mount) -> Option<Place> {
    let (root, path): (Vec<_>, Vec<_>) = (components(&mount.root).collect(), components(path).collect());
    let below = path.strip_prefix(root.as_slice())?;
    if below.contains(&"..") {
        return None;
    }
    let level = |depth: usize| {
        let (above, below) = (root.iter(), below.iter().take(depth));
        LevelFolder {
            path: format!("/{}", above.chain(below.clone()).copied().collect::<Vec<_>>().join("/")),
            folder: below.fold(mount.mount_point.clone(), |folder, name| folder.join(name)),
        }
    };
    Some(Place {
        version,
        root: mount.root.clone(),
        local_events: mount.has_super_option("memory_localevents"),
        without_memory: Vec::new(),
        own: level(below.len()),
        above: (0..below.len()).rev().map(level).collect(),
    })
}

fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(hierarchy: u32, controllers: &str, path: &str) -> CgroupPath {
        CgroupPath { hierarchy, controllers: controllers.to_owned(), path: path.to_owned() }
    }

    fn folders(version: CgroupVersion, path: &str, mountinfo: &str) -> Result<Vec<String>, String> {
        let places = candidates(version, path, &Mounts::parse(mountinfo.as_bytes()))?;
        Ok(places[0].levels().map(|level| format!("{} = {}", level.path, level.folder.display())).collect())
    }

    #[test]
    fn sysinfo_1669_in_a_hybrid_the_hierarchy_with_memory_counts_not_the_first_line() {
        let unified = line(0, "", "/");
        let memory = line(4, "cpu,memory", "/a");
        for lines in [[unified.clone(), memory.clone()], [memory.clone(), unified.clone()]] {
            assert_eq!(owner(&lines), Some((CgroupVersion::V1, &memory)));
        }
        let named = line(1, "name=memory", "/b");
        assert_eq!(owner(&[named.clone(), unified.clone()]), Some((CgroupVersion::V2, &unified)));
        assert_eq!(owner(&[named]), None);
    }

    #[test]
    fn all_levels_up_to_the_root_of_the_mount() {
        let found =
            folders(CgroupVersion::V2, "/a/b", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        assert_eq!(
            found.unwrap(),
            ["/a/b = /sys/fs/cgroup/a/b", "/a = /sys/fs/cgroup/a", "/ = /sys/fs/cgroup"]
        );
    }

    #[test]
    fn docker_a_bind_mount_of_the_own_cgroup_is_its_folder() {
        let mountinfo = "45 40 0:32 /docker/4f2a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let found = folders(CgroupVersion::V1, "/docker/4f2a", mountinfo);
        assert_eq!(found.unwrap(), ["/docker/4f2a = /sys/fs/cgroup/memory"]);
        let error = folders(CgroupVersion::V1, "/docker/4f", mountinfo).unwrap_err();
        assert!(error.contains("/docker/4f is outside"), "a name that begins alike is another one: {error}");
    }

    #[test]
    fn of_several_mounts_the_one_that_shows_most_comes_first() {
        let mountinfo = "1 9 0:3 /a/b /small rw - cgroup cgroup rw,memory\n\
                         2 9 0:3 / /large rw - cgroup cgroup rw,memory\n\
                         3 9 0:4 / /other rw - cgroup cgroup rw,cpu\n";
        let found = folders(CgroupVersion::V1, "/a/b", mountinfo).unwrap();
        assert_eq!(found, ["/a/b = /large/a/b", "/a = /large/a", "/ = /large"]);
    }

    #[test]
    fn what_is_above_a_namespace_is_found_only_where_its_name_is_known() {
        let above = "1 9 0:3 /.. /cg rw - cgroup2 cgroup2 rw\n";
        assert_eq!(folders(CgroupVersion::V2, "/../x", above).unwrap(), ["/../x = /cg/x", "/.. = /cg"]);
        assert!(folders(CgroupVersion::V2, "/", above).is_err());
        let inside = "1 9 0:3 / /cg rw - cgroup2 cgroup2 rw\n";
        assert!(folders(CgroupVersion::V2, "/../x", inside).is_err());
    }

    #[test]
    fn a_missing_mount_and_an_odd_mountinfo_are_said() {
        let error = folders(CgroupVersion::V1, "/a", "1 9 0:3 / /cg rw - cgroup2 cgroup2 rw\n").unwrap_err();
        assert!(error.contains("not mounted here"), "{error}");
        let error = folders(CgroupVersion::V1, "/a", "garbage\n").unwrap_err();
        assert!(error.contains("not understood"), "{error}");
    }

    proptest! {
        #[test]
        fn no_path_panics_or_leaves_its_mount(path in "(/?[a.]{0,3}){0,5}", root in "(/?[a.]{0,3}){0,5}") {
            let mounts = Mounts::parse(format!("1 9 0:3 /{root} /cg rw - cgroup2 x rw\n").as_bytes());
            for place in candidates(CgroupVersion::V2, &path, &mounts).unwrap_or_default() {
                for level in place.levels() {
                    prop_assert!(level.folder.starts_with("/cg"));
                    prop_assert!(level.folder.components().all(|part| part.as_os_str() != ".."));
                }
            }
        }
    }
}
