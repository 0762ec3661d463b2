//! Which ended runs are kept.
//!
//! A run's folder goes as a whole: it is renamed first, to a name that no run has, so that whoever lists runs sees all of
//! it or nothing, and what is cut off in the middle is finished the next time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_model::Timestamp;

use super::{descendants, own_cgroup};
use crate::config::sections as config;
use crate::runs::{self, RunDir, RunError};

/// What folders are called that are being removed.
const DOOMED: &str = ".removed-";

/// The `[log]` section, as far as it is about runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// So many ended runs; 0: no bound. The last one is always kept.
    pub runs: usize,
    /// So long after their end; zero: no bound.
    pub age: Duration,
}

impl Retention {
    /// From sexton.toml.
    pub fn of(config: &config::Log) -> Self {
        Self { runs: config.keep_runs as usize, age: config.keep_runs_for }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { runs: 100, age: Duration::ZERO }
    }
}

/// What was done.
#[derive(Debug, Default)]
pub struct Pruned {
    /// Runs that were removed, oldest first.
    pub removed: Vec<String>,
    /// Runs whose removal failed: they may be there in part, under another name, and are tried again.
    pub failed: Vec<(String, io::Error)>,
}

/// Removes the ended runs below `runs` that are not to be kept at `now`.
///
/// Never: a run without an exit record (it lives, or nobody has judged it), the last ended one, and one of which
/// processes go on or whose cgroup is still there.
///
/// # Errors
/// Where the folder cannot be listed.
pub fn prune(runs: &Path, retention: Retention, now: Timestamp) -> Result<Pruned, RunError> {
    let mut pruned = Pruned::default();
    for doomed in left_from_before(runs) {
        remove(&doomed, name_of(&doomed), &mut pruned);
    }
    let mut ended: Vec<(Timestamp, RunDir)> =
        runs::list(runs)?.into_iter().filter_map(|dir| Some((ended_at(&dir)?, dir))).collect();
    // By their ending, not by their beginning: the last one to end explains what the operator sees.
    ended.sort();
    let count = ended.len();
    for (index, (at, dir)) in ended.into_iter().enumerate() {
        let newer = count - index - 1;
        let too_many = retention.runs > 0 && newer >= retention.runs;
        let too_old = retention.age > Duration::ZERO && is_older(at, now, retention.age);
        if newer > 0 && (too_many || too_old) && !goes_on(&dir) {
            doom(runs, &dir, &mut pruned);
        }
    }
    Ok(pruned)
}

/// When it ended: when its exit record was written, which spares reading a hundred of them at every ending.
fn ended_at(dir: &RunDir) -> Option<Timestamp> {
    let written = fs::metadata(dir.exit_file()).and_then(|meta| meta.modified()).ok()?;
    Timestamp::try_from(written).ok()
}

fn is_older(at: Timestamp, now: Timestamp, age: Duration) -> bool {
    Duration::try_from(now.duration_since(at)).is_ok_and(|passed| passed > age)
}

fn goes_on(dir: &RunDir) -> bool {
    own_cgroup::is_left_over(dir) || descendants::any_lives(dir)
}

fn doom(runs: &Path, dir: &RunDir, pruned: &mut Pruned) {
    let doomed = runs.join(format!("{DOOMED}{}", dir.run_id()));
    match fs::rename(dir.path(), &doomed) {
        Ok(()) => remove(&doomed, dir.run_id(), pruned),
        Err(error) => pruned.failed.push((dir.run_id(), error)),
    }
}

fn remove(doomed: &Path, run_id: String, pruned: &mut Pruned) {
    match fs::remove_dir_all(doomed) {
        Ok(()) => pruned.removed.push(run_id),
        Err(error) => pruned.failed.push((run_id, error)),
    }
}

fn left_from_before(runs: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(runs).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).filter(|path| path.is_dir() && is_doomed(path)).collect()
}

fn is_doomed(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix(DOOMED).is_some_and(runs::is_id)
}

fn name_of(doomed: &Path) -> String {
    let name = doomed.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix(DOOMED).unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    struct Place {
        folder: tempfile::TempDir,
        now: SystemTime,
    }

    impl Place {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), now: SystemTime::now() }
        }

        /// A run that ended so many hours ago; `None`: not yet.
        fn run(&self, serial: u32, hours_ago: Option<u32>) -> RunDir {
            let dir = RunDir::new(self.folder.path(), &format!("20260101T000000.000Z-{serial:04}"));
            fs::create_dir(dir.path()).unwrap();
            fs::write(dir.output_file(), "words").unwrap();
            if let Some(hours) = hours_ago {
                fs::write(dir.exit_file(), "{}").unwrap();
                let file = fs::File::options().write(true).open(dir.exit_file()).unwrap();
                file.set_modified(self.now - HOUR * hours).unwrap();
            }
            dir
        }

        fn prune(&self, runs: usize, age: Duration) -> Vec<u32> {
            let now = Timestamp::try_from(self.now).unwrap();
            let pruned = prune(self.folder.path(), Retention { runs, age }, now).unwrap();
            assert!(pruned.failed.is_empty(), "{pruned:?}");
            pruned.removed.iter().map(|id| id[id.len() - 4..].parse().unwrap()).collect()
        }
    }

    #[test]
    fn the_oldest_endings_beyond_the_number_go() {
        let place = Place::new();
        // The first to begin was the last to end.
        for (serial, hours) in [(1, 1), (2, 5), (3, 4), (4, 3)] {
            place.run(serial, Some(hours));
        }
        assert_eq!(place.prune(0, Duration::ZERO), [0; 0]);
        assert_eq!(place.prune(2, Duration::ZERO), [2, 3]);
        assert_eq!(place.prune(2, Duration::ZERO), [0; 0]);
        assert_eq!(place.prune(1, Duration::ZERO), [4]);
        assert_eq!(runs::list(place.folder.path()).unwrap().len(), 1);
        assert_eq!(fs::read_dir(place.folder.path()).unwrap().count(), 1, "nothing half removed");
    }

    #[test]
    fn endings_that_are_too_old_go_but_never_the_last() {
        let place = Place::new();
        for (serial, hours) in [(1, 50), (2, 30), (3, 26)] {
            place.run(serial, Some(hours));
        }
        assert_eq!(place.prune(0, HOUR * 48), [1]);
        assert_eq!(place.prune(0, HOUR), [2]);
        assert_eq!(place.prune(1, HOUR), [0; 0]);
    }

    #[test]
    fn what_lives_or_was_never_judged_stays() {
        let place = Place::new();
        let living = place.run(1, None);
        for serial in 2..=4 {
            place.run(serial, Some(10 - serial));
        }
        assert_eq!(place.prune(1, HOUR), [2, 3]);
        assert!(living.output_file().exists());
    }

    #[test]
    fn one_whose_cgroup_is_there_or_whose_processes_go_on_stays() {
        let place = Place::new();
        let (with_cgroup, with_process) = (place.run(1, Some(9)), place.run(2, Some(8)));
        place.run(3, Some(7));
        fs::write(with_cgroup.path().join("cgroup.json"), "{}").unwrap();
        descendants::note(&with_process, &[std::process::id() as i32]).unwrap();
        assert_eq!(place.prune(1, Duration::ZERO), [0; 0]);
        fs::remove_file(with_cgroup.path().join("cgroup.json")).unwrap();
        assert_eq!(place.prune(1, Duration::ZERO), [1]);
        // Of a process that was there once.
        descendants::note(&with_process, &[]).unwrap();
        assert_eq!(place.prune(1, Duration::ZERO), [2]);
    }

    #[test]
    fn a_removal_that_was_cut_off_is_finished() {
        let place = Place::new();
        place.run(1, Some(3));
        let half = place.folder.path().join(format!("{DOOMED}20260101T000000.000Z-0009"));
        fs::create_dir(&half).unwrap();
        fs::write(half.join("output.log"), "rest").unwrap();
        let others = place.folder.path().join(format!("{DOOMED}by-somebody-else"));
        fs::create_dir(&others).unwrap();
        assert_eq!(place.prune(5, Duration::ZERO), [9]);
        assert!(others.exists());
    }
}
