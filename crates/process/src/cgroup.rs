//! Cgroups of our own: made, limited, emptied, removed.
//!
//! This module acts on folders that it is given; which ones may be made, and where, the supervisor decides. Sources:
//! `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/memory.rst`.

mod tree;

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sexton_model::cgroup::CgroupVersion;

/// A cgroup in one hierarchy, by its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    version: CgroupVersion,
    folder: PathBuf,
}

/// A step on the way to a cgroup that did not work.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}{}", path.display(), hint(.path, .source))]
pub struct CgroupError {
    /// The file or folder.
    pub path: PathBuf,
    /// The kernel's answer.
    pub source: io::Error,
}

/// What the kernel's terse answers mean here.
fn hint(path: &Path, error: &io::Error) -> &'static str {
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match (file, error.raw_os_error()) {
        ("cgroup.subtree_control", Some(libc::EBUSY)) => {
            " (processes are in this cgroup itself: v2 allows them in its children only)"
        }
        ("cgroup.subtree_control", Some(libc::ENOENT)) => {
            " (its parent does not pass the memory controller on)"
        }
        ("memory.limit_in_bytes" | "memory.memsw.limit_in_bytes", Some(libc::EINVAL)) => {
            " (the limit with swap may not be below the limit without)"
        }
        (_, Some(libc::EROFS)) => " (the cgroup tree is mounted read-only here)",
        _ => "",
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    |source| CgroupError { path: path.to_owned(), source }
}

/// Limits on memory. `None` leaves what is there, which is no limit in a new cgroup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryLimits {
    /// `memory.max`, or `memory.limit_in_bytes`: beyond it, the OOM killer. No swap comes on top of it. Bytes.
    pub max: Option<u64>,
    /// `memory.high`: beyond it, reclaim and throttling. v2 only. Bytes.
    pub high: Option<u64>,
}

/// What came of an attempt to remove a cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is not there any more.
    Gone,
    /// Processes are in it, dying ones perhaps: to be tried again.
    Busy,
}

/// Has the children of `parent` (v2) counted and limited by the memory controller. Nothing to do where that is so.
///
/// # Errors
/// [`CgroupError`]: `EBUSY` where processes are in `parent` itself, `ENOENT` where it does not have the controller, and
/// for want of permission.
pub fn pass_memory_on(parent: &Path) -> Result<(), CgroupError> {
    let path = parent.join("cgroup.subtree_control");
    let passed = fs::read_to_string(&path).map_err(at(&path))?;
    if passed.split_ascii_whitespace().any(|name| name == "memory") {
        return Ok(());
    }
    write(&path, "+memory")
}

/// Takes back [`pass_memory_on`]. Processes may be in `parent` again afterwards.
///
/// # Errors
/// [`CgroupError`].
pub fn keep_memory(parent: &Path) -> Result<(), CgroupError> {
    write(&parent.join("cgroup.subtree_control"), "-memory")
}

/// Moves process `pid` with all its threads into the cgroup whose folder is `folder`.
///
/// # Errors
/// [`CgroupError`]: `ESRCH`, or for want of permission.
pub fn move_process(folder: &Path, pid: i32) -> Result<(), CgroupError> {
    write(&folder.join("cgroup.procs"), &pid.to_string())
}

/// One write, without making the file where it is not there: a cgroup's files come from the kernel.
fn write(path: &Path, text: &str) -> Result<(), CgroupError> {
    let mut file = fs::OpenOptions::new().write(true).open(path).map_err(at(path))?;
    file.write_all(text.as_bytes()).map_err(at(path))
}

impl Cgroup {
    /// Makes the cgroup; its parent must be there.
    ///
    /// # Errors
    /// [`CgroupError`]: `EEXIST` where somebody else made it, `EROFS`, `EACCES`, ….
    pub fn make(version: CgroupVersion, folder: PathBuf) -> Result<Self, CgroupError> {
        DirBuilder::new().create(&folder).map_err(at(&folder))?;
        Ok(Self { version, folder })
    }

    /// One that was made earlier.
    pub fn made_before(version: CgroupVersion, folder: PathBuf) -> Self {
        Self { version, folder }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its interface.
    pub fn version(&self) -> CgroupVersion {
        self.version
    }

    /// The file that a process writes itself into to join.
    pub fn procs_file(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Sets limits, of living cgroups too. Returns what of them this host has no file for.
    ///
    /// # Errors
    /// [`CgroupError`].
    pub fn limit(&self, limits: MemoryLimits) -> Result<Vec<&'static str>, CgroupError> {
        let mut without = Vec::new();
        match self.version {
            CgroupVersion::V1 => {
                if let Some(max) = limits.max {
                    self.limit_v1(max)?;
                }
                if limits.high.is_some() {
                    without.push("memory.high");
                }
            }
            CgroupVersion::V2 => {
                // The softer one first: a living cgroup is throttled before it is killed.
                if let Some(high) = limits.high {
                    write(&self.folder.join("memory.high"), &high.to_string())?;
                }
                if let Some(max) = limits.max {
                    self.write_where_there("memory.swap.max", 0)?;
                    write(&self.folder.join("memory.max"), &max.to_string())?;
                }
            }
        }
        Ok(without)
    }

    /// The limit without swap may never be above the one with it, on the way either: which comes first depends on
    /// whether they rise or fall.
    fn limit_v1(&self, max: u64) -> Result<(), CgroupError> {
        let path = self.folder.join("memory.limit_in_bytes");
        match write(&path, &max.to_string()) {
            Ok(()) => self.write_where_there("memory.memsw.limit_in_bytes", max),
            Err(error) if error.source.raw_os_error() == Some(libc::EINVAL) => {
                self.write_where_there("memory.memsw.limit_in_bytes", max)?;
                write(&path, &max.to_string())
            }
            Err(error) => Err(error),
        }
    }

    /// Files about swap are not there where the kernel does not account for it.
    fn write_where_there(&self, file: &str, value: u64) -> Result<(), CgroupError> {
        match write(&self.folder.join(file), &value.to_string()) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// The processes in it and in the cgroups below it, each once; without those that are over but for their reaping.
    /// One that this PID namespace does not show is listed as 0.
    ///
    /// # Errors
    /// [`CgroupError`]; a cgroup that is gone has none.
    pub fn members(&self) -> Result<Vec<i32>, CgroupError> {
        let mut pids = Vec::new();
        for folder in tree::folders(&self.folder).map_err(at(&self.folder))? {
            let path = folder.join("cgroup.procs");
            match fs::read_to_string(&path) {
                Ok(text) => pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok())),
                // EOPNOTSUPP: a threaded one, whose processes its parent lists.
                Err(error) if tree::is_gone(&error) || error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
                Err(error) => return Err(at(&path)(error)),
            }
        }
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    /// SIGKILL to all members at once, forks under way included (`cgroup.kill`, v2, Linux ≥ 5.14). Whether this kernel
    /// can; where it cannot, members are to be killed one by one.
    ///
    /// # Errors
    /// [`CgroupError`].
    pub fn kill(&self) -> Result<bool, CgroupError> {
        if self.version == CgroupVersion::V1 {
            return Ok(false);
        }
        match write(&self.folder.join("cgroup.kill"), "1") {
            Ok(()) => Ok(true),
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes it with the cgroups below it, where no process is in any of them.
    ///
    /// # Errors
    /// [`CgroupError`].
    pub fn remove(&self) -> Result<Removal, CgroupError> {
        // Children before parents.
        for folder in tree::folders(&self.folder).map_err(at(&self.folder))?.into_iter().rev() {
            if remove(&folder)? == Removal::Busy {
                return Ok(Removal::Busy);
            }
        }
        Ok(Removal::Gone)
    }
}

/// Removes one cgroup, without those below it: with some it is busy.
///
/// # Errors
/// [`CgroupError`].
pub fn remove(folder: &Path) -> Result<Removal, CgroupError> {
    match fs::remove_dir(folder) {
        Ok(()) => Ok(Removal::Gone),
        Err(error) if tree::is_gone(&error) => Ok(Removal::Gone),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::ENOTEMPTY)) => {
            Ok(Removal::Busy)
        }
        Err(error) => Err(at(folder)(error)),
    }
}

#[cfg(test)]
mod tests;
