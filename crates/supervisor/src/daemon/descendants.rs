//! Processes that a run left behind: they go on, and hold what they hold, after it ended.

use std::collections::BTreeSet;

use serde_json::json;
use sexton_host::task::Tasks;
use sexton_model::event::EventKind;
use sexton_model::reading::Reading;
use sexton_model::status::Descendant;

use super::Daemon;

/// How many are named at most.
pub const MOST: usize = 32;

impl Daemon {
    /// Tells what an ended run has left behind: nobody stops that.
    pub(super) fn name_descendants(&mut self, run_id: &str) {
        let known = std::mem::take(&mut self.descendants);
        self.descendants = self.left_behind();
        let new: Vec<_> = self.descendants.iter().filter(|process| !known.contains(process)).collect();
        if !new.is_empty() {
            let details = json!({"descendants": new});
            self.say(&format!("of run {run_id} these go on: {}", named(new)));
            self.log(EventKind::DescendantsLeft, Some(run_id), details);
        }
    }

    /// Those that have ended since they were named.
    pub(super) fn forget_ended_descendants(&mut self) {
        if !self.descendants.is_empty() {
            let living = self.left_behind();
            self.descendants.retain(|process| living.contains(process));
        }
    }

    fn left_behind(&self) -> Vec<Descendant> {
        let prover = self.live.as_ref().map(|live| live.pid);
        left_behind(&Tasks::system(), &self.own_pids(), prover)
    }
}

/// The living processes below `roots` (keeper and supervisor, which inherit orphans), without these, and without `prover`
/// and what is below it. At most [`MOST`].
fn left_behind(tasks: &Tasks, roots: &[i32], prover: Option<i32>) -> Vec<Descendant> {
    let mut seen: BTreeSet<i32> = prover.into_iter().chain(roots.iter().copied()).collect();
    let mut queue: Vec<i32> = roots.to_vec();
    let mut found = Vec::new();
    while let Some(parent) = queue.pop() {
        for pid in tasks.children(parent).into_value().unwrap_or_default() {
            if !seen.insert(pid) {
                continue;
            }
            queue.push(pid);
            if let Reading::Value(process) = tasks.process(pid)
                && !process.threads().all(|thread| thread.state.is_dead())
            {
                found.push(Descendant { pid, name: process.leader.comm });
            }
        }
    }
    found.sort_by_key(|process| process.pid);
    found.truncate(MOST);
    found
}

/// `sleep (pid 7), worker (pid 9)`.
pub fn named<'a>(descendants: impl IntoIterator<Item = &'a Descendant>) -> String {
    let names: Vec<String> = descendants.into_iter().map(Descendant::to_string).collect();
    names.join(", ")
}
