//! `cgroup.json` in a run's folder: what was made for it and is not removed yet. Written before anything is made, removed
//! after everything is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sexton_model::run::MadeCgroup;
use sexton_process::cgroup::{self, Cgroup, CgroupError, Removal};

use crate::runs::{self, RunDir};

/// `cgroup.json`
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Made {
    /// The run's cgroup.
    pub(super) cgroup: MadeCgroup,
    /// Folders that were made with it: above it, the lowest last, or the supervisor's own. Others may use them by now:
    /// they go when they are empty.
    pub(super) others: Vec<PathBuf>,
}

fn note_of(dir: &RunDir) -> PathBuf {
    dir.path().join("cgroup.json")
}

impl Made {
    /// Not durably: what is lost with the machine, the cgroup is lost with too.
    pub(super) fn note(&self, dir: &RunDir) -> io::Result<()> {
        fs::write(note_of(dir), serde_json::to_vec_pretty(self)?)
    }
}

/// Whether the cgroup of this run may still be there.
pub fn is_left_over(dir: &RunDir) -> bool {
    note_of(dir).exists()
}

/// Removes what was made for the run of `dir`, which must have ended. [`Removal::Busy`]: processes are in it.
///
/// # Errors
/// [`CgroupError`]; a damaged note is as good as none.
pub fn remove(dir: &RunDir) -> Result<Removal, CgroupError> {
    let note = note_of(dir);
    if let Ok(Some(made)) = runs::read_json::<Made>(note.clone()) {
        let own = Cgroup::made_before(made.cgroup.version, PathBuf::from(&made.cgroup.folder));
        if own.remove()? == Removal::Busy {
            return Ok(Removal::Busy);
        }
        for other in made.others.iter().rev() {
            if !matches!(cgroup::remove(other), Ok(Removal::Gone)) {
                break;
            }
        }
    }
    // Where it stays, it is found to be removed once more.
    let _ = fs::remove_file(note);
    Ok(Removal::Gone)
}

/// Removes those of all runs but `living`, and returns the runs whose cgroups could not be removed yet.
pub fn remove_all(runs: &Path, living: Option<&str>) -> Vec<RunDir> {
    let mut left = runs::list(runs).unwrap_or_default();
    left.retain(|dir| {
        living != Some(dir.run_id().as_str())
            && is_left_over(dir)
            && !matches!(remove(dir), Ok(Removal::Gone))
    });
    left
}
