//! Where in the tree a cgroup of a run's own would be.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::PathBuf;

use sexton_host::cgroup::{LevelFolder, MemoryHierarchy, locate};
use sexton_host::files::Files;
use sexton_host::task::Tasks;
use sexton_model::cgroup::CgroupVersion;
use sexton_model::reading::Reading;
use sexton_process::cgroup::{self, Cgroup};

use super::Refusal;

/// The supervisor's own place, and the parent that was asked for.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) version: CgroupVersion,
    /// The cgroup that the supervisor is in.
    pub(super) own: Level,
    /// The one above it, where this host shows one.
    pub(super) above: Option<Level>,
    /// As configured: the levels from the top of the mount to it, the top first.
    pub(super) asked: Option<Vec<Level>>,
}

/// A cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) path: String,
    pub(super) folder: PathBuf,
}

/// Where the run's cgroup is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) version: CgroupVersion,
    pub(super) path: String,
    pub(super) folder: PathBuf,
    /// Folders to be made first, the parent itself last.
    pub(super) to_make: Vec<PathBuf>,
    /// v2: cgroups that pass the memory controller on to their children, from the top down.
    pub(super) pass_on: Vec<PathBuf>,
    /// v2: a process that moves below it from ours has to be allowed to here.
    pub(super) common: PathBuf,
}

/// Finds it, without changing anything.
pub(super) fn find(parent: Option<&str>) -> Result<Place, Refusal> {
    let none = |why: String| Refusal::new(why, sexton_process::ENOENT);
    let lines = match Tasks::system().cgroups(std::process::id() as i32) {
        Reading::Value(lines) => lines,
        Reading::Absent => return Err(none("/proc/self/cgroup is not there".to_owned())),
        Reading::Unreadable(obstacle) => return Err(none(obstacle.to_string())),
    };
    match locate(&Files::system(), &lines) {
        Reading::Value(hierarchy) => of(&hierarchy, parent),
        Reading::Absent => Err(none("this host has no memory controller".to_owned())),
        Reading::Unreadable(obstacle) => Err(none(obstacle.to_string())),
    }
}

fn of(hierarchy: &MemoryHierarchy, parent: Option<&str>) -> Result<Place, Refusal> {
    let level = |level: &LevelFolder| Level { path: level.path.clone(), folder: level.folder.clone() };
    let own = level(hierarchy.process_level());
    let top = hierarchy.levels().last().map(level).unwrap_or_else(|| own.clone());
    let above = (own.folder != top.folder).then(|| own.above()).flatten();
    let asked = parent.map(|parent| levels_to(&top, parent)).transpose()?;
    Ok(Place { version: hierarchy.version(), own, above, asked })
}

impl Level {
    fn above(&self) -> Option<Self> {
        let path = self.path.rsplit_once('/').map(|(above, _)| above)?;
        let path = if path.is_empty() { "/" } else { path };
        Some(Self { path: path.to_owned(), folder: self.folder.parent()?.to_owned() })
    }

    fn below(&self, name: &str) -> Self {
        Self { path: format!("{}/{name}", self.path.trim_end_matches('/')), folder: self.folder.join(name) }
    }
}

fn levels_to(top: &Level, parent: &str) -> Result<Vec<Level>, Refusal> {
    let mut levels = vec![top.clone()];
    for name in parent.split('/').filter(|name| !name.is_empty()) {
        // A cgroup's own files are in the folder too: `cgroup.procs` is no name for one.
        if matches!(name, "." | "..") || name.contains('\n') {
            return Err(Refusal::new(
                format!("cgroup.parent = \"{parent}\": give a path without \".\" and \"..\""),
                sexton_process::EINVAL,
            ));
        }
        levels.push(levels[levels.len() - 1].below(name));
    }
    Ok(levels)
}

impl Place {
    /// The configured parent.
    pub(super) fn asked_parent(&self) -> Option<Parent> {
        let levels = self.asked.as_ref()?;
        let parent = levels.last()?;
        let missing = levels.iter().filter(|level| !level.folder.exists());
        let shared = levels.iter().rfind(|level| self.own.folder.starts_with(&level.folder));
        Some(Parent {
            version: self.version,
            path: parent.path.clone(),
            folder: parent.folder.clone(),
            to_make: missing.map(|level| level.folder.clone()).collect(),
            pass_on: levels.iter().map(|level| level.folder.clone()).collect(),
            common: shared.unwrap_or(parent).folder.clone(),
        })
    }

    /// Our own cgroup, or the one above it, as the parent.
    pub(super) fn parent_at(&self, level: &Level) -> Parent {
        Parent {
            version: self.version,
            path: level.path.clone(),
            folder: level.folder.clone(),
            to_make: Vec::new(),
            pass_on: vec![level.folder.clone()],
            common: level.folder.clone(),
        }
    }
}

impl Parent {
    /// Makes what of it is missing.
    pub(super) fn make(&self) -> Result<(), Refusal> {
        for folder in &self.to_make {
            match Cgroup::make(self.version, folder.clone()) {
                // Another supervisor of this host, at the same moment.
                Err(error) if error.source.kind() == ErrorKind::AlreadyExists => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// v2: has its children counted and limited.
    pub(super) fn pass_memory_on(&self) -> Result<(), Refusal> {
        if self.version == CgroupVersion::V2 {
            self.pass_on.iter().try_for_each(|folder| cgroup::pass_memory_on(folder))?;
        }
        Ok(())
    }

    /// v2 lets a process move only where the mover may write to `cgroup.procs` of the lowest cgroup that is above both
    /// ends (cgroup-v2.rst, "Delegation Containment"). Asked before: a child that cannot join cannot start.
    pub(super) fn check_joinable(&self) -> Result<(), Refusal> {
        if self.version == CgroupVersion::V1 {
            return Ok(());
        }
        let procs = self.common.join("cgroup.procs");
        match OpenOptions::new().write(true).open(&procs) {
            Ok(_) => Ok(()),
            Err(error) => Err(Refusal::new(
                format!("{}: {error}: processes cannot be moved below it", procs.display()),
                error.raw_os_error().unwrap_or(sexton_process::EIO),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(path: &str, folder: &str) -> Level {
        Level { path: path.to_owned(), folder: folder.into() }
    }

    #[test]
    fn a_configured_parent_is_found_from_the_top_and_stays_below_it() {
        let top = level("/", "/sys/fs/cgroup");
        let levels = levels_to(&top, "/a//b/").unwrap();
        assert_eq!(
            levels,
            [top.clone(), level("/a", "/sys/fs/cgroup/a"), level("/a/b", "/sys/fs/cgroup/a/b")]
        );
        assert_eq!(levels_to(&top, "/").unwrap(), std::slice::from_ref(&top));
        for outside in ["../x", "/a/../../x", "."] {
            assert!(levels_to(&top, outside).unwrap_err().why.contains(outside));
        }
    }

    #[test]
    fn the_common_cgroup_is_the_lowest_above_both() {
        let own = level("/a/we", "/nowhere/a/we");
        let place = |parent| Place {
            version: CgroupVersion::V2,
            above: own.above(),
            own: own.clone(),
            asked: Some(levels_to(&level("/", "/nowhere"), parent).unwrap()),
        };
        assert_eq!(place("/a/runs").asked_parent().unwrap().common, PathBuf::from("/nowhere/a"));
        assert_eq!(place("/b").asked_parent().unwrap().common, PathBuf::from("/nowhere"));
        assert_eq!(own.above(), Some(level("/a", "/nowhere/a")));
        assert_eq!(level("/a", "/nowhere/a").above(), Some(level("/", "/nowhere")));
    }
}
