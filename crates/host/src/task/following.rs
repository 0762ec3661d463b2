//! What a supervisor looks at again and again while a run lives: cheap, and never more than it needs.

use std::path::Path;

use sexton_model::reading::Reading;
use sexton_model::run::CgroupPath;
use sexton_model::task::ResidentMemory;

use super::folder::{TaskFolder, numbered_entries};
use super::{Tasks, parse, thread};
use crate::files::{parsed, unreadable};

impl Tasks {
    /// Ids of the living threads of `pid`: one listing of a folder.
    pub fn thread_ids(&self, pid: i32) -> Reading<Vec<i32>> {
        numbered_entries(&self.path_of(pid).join("task"))
    }

    /// Name of thread `tid` of `pid`, of up to 15 bytes, lossy UTF-8.
    pub fn thread_name(&self, pid: i32, tid: i32) -> Reading<String> {
        let path = self.path_of(pid).join("task").join(tid.to_string()).join("comm");
        match std::fs::read(&path) {
            // The kernel ends it with a newline; the name itself may hold others.
            Ok(bytes) => Reading::Value(
                String::from_utf8_lossy(bytes.strip_suffix(b"\n").unwrap_or(&bytes)).into_owned(),
            ),
            Err(error) => unreadable(&path, &error),
        }
    }

    /// `/proc/PID/cgroup`. The v1 lines of a zombie read `/`, whatever they were in life.
    pub fn cgroups(&self, pid: i32) -> Reading<Vec<CgroupPath>> {
        read_cgroups(&self.path_of(pid).join("cgroup"))
    }

    /// `/proc/PID/task/TID/cgroup`: where the leader is dead, its own file says `/` under v1.
    pub fn thread_cgroups(&self, pid: i32, tid: i32) -> Reading<Vec<CgroupPath>> {
        read_cgroups(&self.path_of(pid).join(format!("task/{tid}/cgroup")))
    }

    /// Memory that process `pid` maps: its `status` alone. Absent where its leader maps none, as a dead one does.
    pub fn resident(&self, pid: i32) -> Reading<ResidentMemory> {
        let status = TaskFolder::open(&self.path_of(pid)).and_then(|folder| folder.status());
        status.map(thread::status).and_then(|status| status.memory.map_or(Reading::Absent, Reading::Value))
    }
}

fn read_cgroups(path: &Path) -> Reading<Vec<CgroupPath>> {
    match std::fs::read(path) {
        Ok(bytes) => parsed(path, parse::cgroups(&bytes)),
        Err(error) => unreadable(path, &error),
    }
}
