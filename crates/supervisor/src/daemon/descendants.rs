//! Processes that a run left behind: they go on, and hold what they hold, after it ended.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sexton_host::task::Tasks;
use sexton_model::event::EventKind;
use sexton_model::run::ProcessIdentity;
use sexton_model::status::Descendant;

use super::Daemon;
use super::tree::{Tree, living};
use crate::runs::{self, RunDir};

/// How many are named at most.
pub const MOST: usize = 32;

/// One of them, so that it is known again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Left {
    identity: ProcessIdentity,
    name: String,
}

impl Left {
    fn now(pid: i32, name: &str) -> Option<Self> {
        Some(Self { identity: sexton_process::identity(pid).ok()?, name: name.to_owned() })
    }

    fn lives(&self) -> bool {
        let pid = self.identity.pid;
        sexton_process::identity(pid).is_ok_and(|now| now == self.identity)
            && living(&Tasks::system(), pid).is_some()
    }
}

/// What the ended runs of this supervisor have left behind.
#[derive(Debug, Default)]
pub(super) struct LeftBehind(Vec<Left>);

impl LeftBehind {
    /// Those that live still, by PID.
    pub(super) fn living(&mut self) -> Vec<Descendant> {
        self.0.retain(Left::lives);
        self.0.sort_by_key(|left| left.identity.pid);
        self.0.iter().map(|left| Descendant { pid: left.identity.pid, name: left.name.clone() }).collect()
    }
}

fn note_of(dir: &RunDir) -> PathBuf {
    dir.path().join("descendants.json")
}

/// Notes in its folder which processes the run left behind.
///
/// # Errors
/// The file system's.
pub(super) fn note(dir: &RunDir, pids: &[i32]) -> io::Result<()> {
    let left: Vec<Left> = pids.iter().filter_map(|pid| Left::now(*pid, "")).collect();
    crate::durable::write_json(&note_of(dir), &left)
}

/// Whether any process lives that the run left behind when it ended.
pub(super) fn any_lives(dir: &RunDir) -> bool {
    let noted = runs::read_json::<Vec<Left>>(note_of(dir));
    noted.ok().flatten().is_some_and(|left| left.iter().any(Left::lives))
}

impl Daemon {
    /// Tells what an ended run has left behind.
    pub(super) fn name_descendants(&mut self, run_id: &str) {
        let dir = RunDir::new(&self.settings.place.runs_dir(), run_id);
        let Ok(Some(record)) = dir.record() else { return };
        let keeper = self.link.as_ref().map(|link| link.state.keeper_pid);
        // Of earlier runs: they are below the keeper too.
        let known = self.left_behind.living();
        let mut new = Tree::of(&record, keeper).others();
        new.retain(|process| !known.iter().any(|known| known.pid == process.pid));
        new.truncate(MOST);
        if new.is_empty() {
            return;
        }
        self.left_behind.0.extend(new.iter().filter_map(|process| Left::now(process.pid, &process.name)));
        let pids: Vec<i32> = new.iter().map(|process| process.pid).collect();
        if let Err(error) = note(&dir, &pids) {
            self.say(&format!("cannot write {}: {error}", note_of(&dir).display()));
        }
        self.say(&format!("of run {run_id} these go on: {}", named(&new)));
        self.log(EventKind::DescendantsLeft, Some(run_id), json!({"descendants": new}));
    }
}

/// `sleep (pid 7), worker (pid 9)`.
pub fn named<'a>(descendants: impl IntoIterator<Item = &'a Descendant>) -> String {
    let names: Vec<String> = descendants.into_iter().map(Descendant::to_string).collect();
    names.join(", ")
}
