//! A cgroup for each run, where that is possible: its memory is then charged and limited apart from everybody else's, its
//! counters are its own, and the whole run can be ended by it.
//!
//! ```text
//! v1                     v2, of our own (delegated)     v2, root           configured parent
//! OURS                   DELEGATED                      /                  /PARENT
//! ├── we                 ├── supervisor   we            ├── sexton-…       └── sexton-NAME-RUN
//! └── sexton-NAME-RUN    └── sexton-NAME-RUN            └── …
//! ```
//!
//! In v2 only the leaves of the tree may hold processes once a controller is passed on, so the supervisor needs a leaf
//! of its own beside the run: it is there where systemd made it (`DelegateSubgroup=supervisor`), and is made where the
//! cgroup is ours alone. Everything that is made is written down in the run's folder first, so that a supervisor that
//! is killed at any point leaves nothing that a later one does not find; nothing else is ever removed.

mod delegated;
mod left_over;
mod place;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sexton_model::run::MadeCgroup;
use sexton_model::units::Bytes;
use sexton_process::cgroup::{Cgroup, CgroupError, MemoryLimits};

use crate::config::sections as config;
use crate::config::values::CgroupCreate;
use crate::runs::RunDir;
use delegated::Leaf;
use left_over::Made;
use place::Parent;

pub use left_over::{is_left_over, remove, remove_all};

/// Whether a run gets a cgroup of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Create {
    /// Where possible; else it runs without, and that is said.
    Auto,
    /// Where it is not possible, the start fails.
    Always,
    /// No.
    #[default]
    Never,
}

/// The `[cgroup]` section, as far as it is about the cgroup itself.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Whether.
    pub create: Create,
    /// Below which cgroup, as a path from the top of what this host shows of the tree. It is made where it is not there.
    /// Else: below, or in v2 beside, our own.
    pub parent: Option<String>,
    /// Its limits.
    pub limits: MemoryLimits,
}

impl Settings {
    /// From sexton.toml.
    pub fn of(config: &config::Cgroup) -> Self {
        let create = match config.create {
            CgroupCreate::Auto => Create::Auto,
            CgroupCreate::Always => Create::Always,
            CgroupCreate::Never => Create::Never,
        };
        let bytes = |size: Option<Bytes>| size.map(|Bytes(bytes)| bytes);
        let limits = MemoryLimits { max: bytes(config.memory_max), high: bytes(config.memory_high) };
        Self { create, parent: config.parent.clone(), limits }
    }
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// In words, with the path.
    pub why: String,
    /// The kernel's answer nearest to it.
    pub errno: i32,
}

impl Refusal {
    fn new(why: impl Into<String>, errno: i32) -> Self {
        Self { why: why.into(), errno }
    }
}

impl From<CgroupError> for Refusal {
    fn from(error: CgroupError) -> Self {
        let errno = error.source.raw_os_error().unwrap_or(sexton_process::EIO);
        Self::new(error.to_string(), errno)
    }
}

/// What came of the wish for one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The cgroup, for the run's record.
    pub made: Option<MadeCgroup>,
    /// What is to be said of it: why there is none, which limit it does not have.
    pub notes: Vec<String>,
}

/// The file that a child writes itself into to be in it.
pub fn procs_file(made: &MadeCgroup) -> OsString {
    Cgroup::made_before(made.version, PathBuf::from(&made.folder)).procs_file().into_os_string()
}

/// Makes the cgroups of the runs of one supervisor.
#[derive(Debug)]
pub struct OwnCgroups {
    settings: Settings,
    name: String,
    leaf: Option<Leaf>,
    /// Cgroups above a run's that were made with one, from the top down.
    parents: Vec<PathBuf>,
    /// Of ended runs, and not empty yet.
    left_over: Vec<RunDir>,
    said: Vec<String>,
}

impl OwnCgroups {
    /// For the supervisor of this name.
    pub fn new(settings: Settings, name: &str) -> Self {
        Self {
            settings,
            name: name.to_owned(),
            leaf: None,
            parents: Vec::new(),
            left_over: Vec::new(),
            said: Vec::new(),
        }
    }

    /// From the next run on.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Makes one for the run of `dir`, whose folder must be there. `own_pids`: supervisor and keeper.
    ///
    /// # Errors
    /// Why there is none, where there must be one.
    pub fn make(&mut self, dir: &RunDir, own_pids: &[i32]) -> Result<Outcome, Refusal> {
        if self.settings.create == Create::Never {
            return Ok(Outcome::default());
        }
        match self.try_make(dir, own_pids) {
            Ok(outcome) => Ok(outcome),
            Err(refusal) if self.settings.create == Create::Always => Err(refusal),
            Err(Refusal { why, .. }) => {
                Ok(Outcome { made: None, notes: vec![format!("no cgroup of its own: {why}")] })
            }
        }
    }

    /// Those of `notes` that were not said before: the same reason holds start after start.
    pub fn news(&mut self, notes: &[String]) -> Vec<String> {
        let new: Vec<String> = notes.iter().filter(|note| !self.said.contains(note)).cloned().collect();
        self.said = notes.to_vec();
        new
    }

    fn try_make(&mut self, dir: &RunDir, own_pids: &[i32]) -> Result<Outcome, Refusal> {
        let place = place::find(self.settings.parent.as_deref())?;
        let (parent, leaf) = delegated::choose(&place)?;
        let name = format!("sexton-{}-{}", self.name, dir.run_id());
        let folder = parent.folder.join(&name);
        let made = Made {
            cgroup: MadeCgroup {
                version: place.version,
                path: format!("{}/{name}", parent.path.trim_end_matches('/')),
                folder: folder.to_string_lossy().into_owned(),
            },
            others: self.others_with(&parent, leaf.as_deref()),
        };
        made.note(dir).map_err(|error| {
            Refusal::new(error.to_string(), error.raw_os_error().unwrap_or(sexton_process::EIO))
        })?;
        match self.make_noted(&parent, leaf, folder, own_pids) {
            Ok(notes) => Ok(Outcome { made: Some(made.cgroup), notes }),
            Err(refusal) => {
                // Whatever of it was made. What cannot be removed is tried again with the left-overs.
                let _ = remove(dir);
                Err(refusal)
            }
        }
    }

    /// What is made with it, and what was made with an earlier run's that is above this one's too: the last one to go takes
    /// it along.
    fn others_with(&mut self, parent: &Parent, leaf: Option<&Path>) -> Vec<PathBuf> {
        self.parents.retain(|made| parent.folder.starts_with(made) && !parent.to_make.contains(made));
        self.parents.extend(parent.to_make.iter().cloned());
        self.parents.iter().cloned().chain(leaf.map(Path::to_owned)).collect()
    }

    fn make_noted(
        &mut self,
        parent: &Parent,
        leaf: Option<PathBuf>,
        folder: PathBuf,
        own_pids: &[i32],
    ) -> Result<Vec<String>, Refusal> {
        parent.make()?;
        if let Some(leaf) = leaf {
            self.leaf = Some(Leaf::make(&parent.folder, leaf, own_pids)?);
        }
        parent.pass_memory_on()?;
        parent.check_joinable()?;
        let cgroup = Cgroup::make(parent.version, folder)?;
        let without = cgroup.limit(self.settings.limits)?;
        Ok(without
            .into_iter()
            .map(|file| format!("its cgroup has no {file}: this host does not know it"))
            .collect())
    }

    /// A run has ended: its cgroup, where one was made, is to be removed. To be called once the memory that it counts is
    /// back, since it counts no more afterwards.
    pub fn ended(&mut self, dir: &RunDir) {
        if is_left_over(dir) && !self.left_over.contains(dir) {
            self.left_over.push(dir.clone());
        }
        self.retry();
    }

    /// Tries again to remove those of ended runs. Returns the runs whose cgroups still have processes, or cannot be
    /// removed.
    pub fn retry(&mut self) -> &[RunDir] {
        self.left_over.retain(|dir| !matches!(remove(dir), Ok(sexton_process::cgroup::Removal::Gone)));
        &self.left_over
    }

    /// Removes those that dead runs of earlier supervisors left. `living` is spared.
    pub fn take_over(&mut self, runs: &Path, living: Option<&str>) {
        self.left_over = remove_all(runs, living);
    }

    /// The supervisor leaves: whatever of its own arrangement is not needed any more is undone.
    pub fn leave(&mut self) {
        self.retry();
        if self.left_over.is_empty()
            && let Some(leaf) = self.leaf.take()
        {
            leaf.dissolve();
        }
    }
}

#[cfg(test)]
mod tests;
