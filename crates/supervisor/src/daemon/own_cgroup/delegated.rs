//! v2: room for a run's cgroup beside the supervisor's.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sexton_host::task::Tasks;
use sexton_model::cgroup::CgroupVersion;
use sexton_model::reading::Reading;
use sexton_process::cgroup::{self, Cgroup};

use super::Refusal;
use super::place::{Parent, Place};

/// The supervisor's own leaf, as our systemd unit has it made (`DelegateSubgroup=`).
const LEAF: &str = "supervisor";

/// Rounds of moving processes: one that forks while it is moved leaves a child behind.
const ROUNDS: usize = 20;

/// A leaf that we made and moved into.
#[derive(Debug)]
pub(super) struct Leaf {
    parent: PathBuf,
    folder: PathBuf,
}

/// Chooses the parent for a run's cgroup, without changing anything. With it the supervisor's own leaf, where that has to
/// be made first.
pub(super) fn choose(place: &Place) -> Result<(Parent, Option<PathBuf>), Refusal> {
    if let Some(parent) = place.asked_parent() {
        return Ok((parent, None));
    }
    let own = &place.own.folder;
    // The root is exempt from the rule that processes are in leaves only, and alone lacks this file.
    if place.version == CgroupVersion::V1 || !own.join("cgroup.type").exists() {
        return Ok((place.parent_at(&place.own), None));
    }
    if own.file_name().is_some_and(|name| name == LEAF)
        && let Some(above) = &place.above
    {
        return Ok((place.parent_at(above), None));
    }
    if own.extension().is_some_and(|extension| extension == "service") {
        // systemd could not put the next supervisor into it (EBUSY) as long as this one's prover lives.
        return Err(Refusal::new(
            format!(
                "{} is the cgroup of a systemd unit: give that DelegateSubgroup={LEAF} (systemd 254 or later) and \
                 Delegate=yes, or set cgroup.parent",
                place.own.path
            ),
            sexton_process::EBUSY,
        ));
    }
    Ok((place.parent_at(&place.own), Some(own.join(LEAF))))
}

impl Leaf {
    /// Moves everybody in `parent`, who must all be ours, into `folder` below it.
    pub(super) fn make(parent: &Path, folder: PathBuf, own_pids: &[i32]) -> Result<Self, Refusal> {
        let ours = with_descendants(own_pids);
        if let Some(stranger) = processes(parent)?.into_iter().find(|pid| !ours.contains(pid)) {
            let why = format!("{} is shared with {}", parent.display(), named(stranger));
            return Err(Refusal::new(why, sexton_process::EBUSY));
        }
        match Cgroup::make(CgroupVersion::V2, folder.clone()) {
            // An earlier supervisor's, killed before it could undo that.
            Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {}
            other => drop(other?),
        }
        let leaf = Self { parent: parent.to_owned(), folder };
        match move_all(parent, &leaf.folder).and_then(|()| Ok(cgroup::pass_memory_on(parent)?)) {
            Ok(()) => Ok(leaf),
            Err(refusal) => {
                leaf.dissolve();
                Err(refusal)
            }
        }
    }

    /// Moves everybody back and removes the leaf. Where that does not work, everything stays as it is: somebody else has
    /// begun to use the arrangement.
    pub(super) fn dissolve(self) {
        let _ = cgroup::keep_memory(&self.parent);
        if move_all(&self.folder, &self.parent).is_ok() {
            let _ = cgroup::remove(&self.folder);
        }
    }
}

fn move_all(from: &Path, to: &Path) -> Result<(), Refusal> {
    for _ in 0..ROUNDS {
        let pids = processes(from)?;
        if pids.is_empty() {
            return Ok(());
        }
        for pid in pids {
            // Ended meanwhile.
            let gone =
                |error: &cgroup::CgroupError| error.source.raw_os_error() == Some(sexton_process::ESRCH);
            match cgroup::move_process(to, pid) {
                Err(error) if !gone(&error) => return Err(error.into()),
                _ => {}
            }
        }
    }
    Err(Refusal::new(format!("{} does not get empty", from.display()), sexton_process::EBUSY))
}

fn processes(folder: &Path) -> Result<Vec<i32>, Refusal> {
    let path = folder.join("cgroup.procs");
    let text = fs::read_to_string(&path).map_err(|error| {
        let errno = error.raw_os_error().unwrap_or(sexton_process::EIO);
        Refusal::new(format!("{}: {error}", path.display()), errno)
    })?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

fn with_descendants(pids: &[i32]) -> BTreeSet<i32> {
    let tasks = Tasks::system();
    let below = pids.iter().filter_map(|pid| tasks.descendants(*pid).into_value()).flatten();
    pids.iter().copied().chain(below).collect()
}

fn named(pid: i32) -> String {
    match Tasks::system().process(pid) {
        Reading::Value(process) => format!("{} (pid {pid})", process.leader.comm),
        _ if pid == 0 => "a process outside our PID namespace".to_owned(),
        _ => format!("pid {pid}"),
    }
}
