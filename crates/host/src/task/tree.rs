//! Who was forked by whom.

use std::collections::{BTreeSet, VecDeque};

use sexton_model::reading::{Missing, ObstacleKind, Reading};

use super::Tasks;
use super::folder::{TaskFolder, numbered_entries};
use super::parse;

impl Tasks {
    /// Children of process `pid` that are not reaped, zombies included, in ascending order. What double-forked away
    /// from it is a child of the nearest subreaper instead.
    ///
    /// `task/TID/children` may omit a child while a sibling of it exits (proc(5)): call again for certainty.
    pub fn children(&self, pid: i32) -> Reading<Vec<i32>> {
        self.listed_children(pid).into()
    }

    /// All processes below `pid`, without it: children first, then theirs.
    pub fn descendants(&self, pid: i32) -> Reading<Vec<i32>> {
        self.children(pid).map(|children| {
            let mut queue = VecDeque::from(children);
            let mut found = Vec::new();
            let mut seen = BTreeSet::from([pid]);
            while let Some(next) = queue.pop_front() {
                if seen.insert(next) {
                    found.push(next);
                    queue.extend(self.children(next).into_value().unwrap_or_default());
                }
            }
            found
        })
    }

    fn listed_children(&self, pid: i32) -> Result<Vec<i32>, Missing> {
        let tasks = self.path_of(pid).join("task");
        let mut children = BTreeSet::new();
        for tid in numbered_entries(&tasks).required()? {
            let folder = TaskFolder::open(&tasks.join(tid.to_string()));
            match folder.and_then(|folder| folder.parsed("children", parse::children)) {
                Reading::Value(pids) => children.extend(pids),
                Reading::Unreadable(obstacle) if obstacle.kind == ObstacleKind::Vanished => {}
                // Only kernels with CONFIG_PROC_CHILDREN list them.
                Reading::Absent | Reading::Unreadable(_) => return self.children_by_scan(pid),
            }
        }
        Ok(children.into_iter().collect())
    }

    /// Every process tells its parent.
    fn children_by_scan(&self, pid: i32) -> Result<Vec<i32>, Missing> {
        let parent_of = |pid: i32| {
            let stat = TaskFolder::open(&self.path_of(pid)).and_then(|folder| folder.stat());
            stat.into_value().map(|stat| stat.ppid)
        };
        let mut pids = numbered_entries(&self.root).required()?;
        pids.retain(|candidate| parent_of(*candidate) == Some(pid));
        pids.sort_unstable();
        Ok(pids)
    }
}
