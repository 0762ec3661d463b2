//! The memory controller: where a process stands under it, and what it says there.
//!
//! ```text
//! /proc/PID/cgroup ┐
//!                  ├─ locate ─► MemoryHierarchy ─ files ─► what to record at a death
//! mountinfo        ┘                  └───────── read ──► model::cgroup::MemoryCgroup
//! ```
//!
//! Three arrangements occur: v1, v2 ("unified"), and hybrid hosts that mount both and leave `memory` to v1. In all of
//! them a process may see only a part of the tree: through a bind mount of a folder of it, or in a cgroup namespace.

mod level;
mod parse;
mod place;

use std::path::{Path, PathBuf};

use sexton_model::cgroup::{CgroupVersion, MemoryCgroup};
use sexton_model::reading::{ObstacleKind, Reading};
use sexton_model::run::CgroupPath;

use crate::files::Files;
use crate::mounts::{MOUNTINFO, Mounts};

use crate::task::parse::cgroups;
use place::Place;

pub use place::LevelFolder;

/// The cgroup that a process' memory is charged to and those above it, as folders of this host. In v2 that need not be
/// the cgroup that the process is in: one that does without the memory controller leaves it to its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryHierarchy {
    place: Place,
}

/// Finds the memory cgroup of process `pid` and those above it.
///
/// The lines of a zombie read `/` in v1, whatever they were in life: take [`locate`] with those that were recorded then.
/// Absent: no such process, or as there.
pub fn locate_process(files: &Files, pid: i32) -> Reading<MemoryHierarchy> {
    let path = PathBuf::from(format!("/proc/{pid}/cgroup"));
    files.parsed(&path, cgroups).and_then(|lines| locate(files, &lines))
}

/// Finds the memory cgroup that `lines` of a `/proc/PID/cgroup` name and those above it, through the mounts of the
/// reader.
///
/// Absent: this kernel has no memory controller, or has it disabled. Unreadable: it has one, but this cgroup is not to
/// be seen from here.
pub fn locate(files: &Files, lines: &[CgroupPath]) -> Reading<MemoryHierarchy> {
    let Some((version, line)) = place::owner(lines) else { return Reading::Absent };
    let mounts = match Mounts::read(files) {
        Reading::Value(mounts) => mounts,
        Reading::Absent => return failed(format!("{MOUNTINFO}: not there: is /proc mounted?")),
        Reading::Unreadable(obstacle) => return Reading::Unreadable(obstacle),
    };
    let places = match place::candidates(version, &line.path, &mounts) {
        Ok(places) => places,
        Err(why) => return failed(why),
    };
    // Of several mounts of one hierarchy, the one that shows most and really leads to the cgroup.
    let leads_there = |place: &Place| files.read(&place.own.folder.join(level::EVERYWHERE)).is_ok();
    let chosen = places.iter().find(|place| leads_there(place)).or_else(|| places.first());
    let Some(place) = chosen.cloned() else { return Reading::Absent };
    match version {
        CgroupVersion::V1 => Reading::Value(MemoryHierarchy { place }),
        CgroupVersion::V2 => with_memory(files, MemoryHierarchy { place }),
    }
}

/// `hierarchy`, where it is v2's that owns `memory`: every host with a unified hierarchy has the line `0::/…`, also if
/// the controller is disabled, or was not passed on to the part of the tree that can be seen.
fn with_memory(files: &Files, hierarchy: MemoryHierarchy) -> Reading<MemoryHierarchy> {
    let path = hierarchy.place.top().folder.join(level::CONTROLLERS);
    let has_memory = files.parsed(&path, |bytes| Ok(parse::words(bytes).any(|name| name == "memory")));
    match (has_memory, hierarchy.hidden_ancestors(files)) {
        (Reading::Value(false), Reading::Value(false)) => Reading::Absent,
        (Reading::Value(false), _) => failed(format!(
            "{}: no memory controller here, and cgroups above that are not shown may have it",
            path.display()
        )),
        // Not known: the files of the levels will tell.
        _ => Reading::Value(MemoryHierarchy {
            place: hierarchy.place.begun_where(|level| !does_without_memory(files, level)),
        }),
    }
}

/// Whether a v2 cgroup exists and lacks the files of the memory controller. Of one that cannot be read, that is not said.
fn does_without_memory(files: &Files, level: &LevelFolder) -> bool {
    let absent = |name| files.bytes(&level.folder.join(name)) == Reading::Absent;
    absent(level::WITH_MEMORY) && !absent(level::EVERYWHERE)
}

fn failed<T>(why: String) -> Reading<T> {
    Reading::unreadable(ObstacleKind::Failed, why)
}

impl MemoryHierarchy {
    /// The interface.
    pub fn version(&self) -> CgroupVersion {
        self.place.version
    }

    /// The cgroup that is charged first, the root of the mount last. Never empty.
    pub fn levels(&self) -> impl Iterator<Item = &LevelFolder> {
        self.place.levels()
    }

    /// The cgroup that the process is in: the one that is charged, or in v2 one below it that does without the memory
    /// controller.
    pub fn process_level(&self) -> &LevelFolder {
        self.place.without_memory.first().unwrap_or(&self.place.own)
    }

    /// Folder of the cgroup that is charged.
    pub fn own_folder(&self) -> &Path {
        &self.place.own.folder
    }

    /// Every file that [`Self::read`] reads, and those that [`locate`] reads to come to the same levels again: what to
    /// record at a death. Own level first, so that a recorder that runs out of room has the nearest.
    pub fn files(&self) -> Vec<PathBuf> {
        let names = level::files(self.version());
        let of_levels = self.levels().flat_map(|level| names.iter().map(|name| level.folder.join(name)));
        let top = &self.place.top().folder;
        let below = self.place.without_memory.iter();
        let below = below
            .flat_map(|level| [level::WITH_MEMORY, level::EVERYWHERE].map(|name| level.folder.join(name)));
        let of_top = [level::root_marker(self.version()), level::CONTROLLERS].map(|name| top.join(name));
        of_levels.chain(below).chain(of_top).chain([PathBuf::from(MOUNTINFO)]).collect()
    }

    /// Reads all levels.
    pub fn read(&self, files: &Files) -> MemoryCgroup {
        let mut levels: Vec<_> =
            self.levels().map(|folder| level::read(files, &self.place, folder)).collect();
        if let (Some(own), Some(below)) = (levels.first_mut(), self.place.without_memory.first()) {
            let why = format!("{}: charged to {}, with all others below that", below.path, own.path);
            own.members = Reading::unreadable(ObstacleKind::Failed, why);
        }
        MemoryCgroup { version: self.version(), hidden_ancestors: self.hidden_ancestors(files), levels }
    }

    /// Whether the top level is not the root of the hierarchy. The path alone does not tell, since in a cgroup namespace
    /// every path begins at `/`; but some files exist at the root only (v1), or everywhere else (v2).
    fn hidden_ancestors(&self, files: &Files) -> Reading<bool> {
        if self.place.is_below_root() {
            return Reading::Value(true);
        }
        let top = &self.place.top().folder;
        if let Reading::Absent = files.bytes(&top.join(level::EVERYWHERE)) {
            return Reading::unreadable(ObstacleKind::Vanished, format!("{}: no such cgroup", top.display()));
        }
        let marker = files.bytes(&top.join(level::root_marker(self.version())));
        let there = match marker {
            Reading::Value(_) => true,
            Reading::Absent => false,
            Reading::Unreadable(obstacle) => return Reading::Unreadable(obstacle),
        };
        Reading::Value(match self.version() {
            CgroupVersion::V1 => !there,
            CgroupVersion::V2 => there,
        })
    }
}
