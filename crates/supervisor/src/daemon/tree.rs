//! Every process of a run: what is stopped when the run is.
//!
//! Where a cgroup was made for the run, its members. Besides, and where none was, what descends from the run: below its
//! main process, below the keeper, a subreaper that has no other offspring, and, where the keeper has died, those that fell
//! to the supervisor and are of the run's session. Never the members of a cgroup that others may be in.
//!
//! | | members | each signal |
//! |---|---|---|
//! | own cgroup | `cgroup.procs` at every depth | SIGKILL in v2 at once by `cgroup.kill` |
//! | descendants | `children` of each thread | one by one |
//!
//! One by one means: a pidfd is opened for each number, all are looked up once more, and what is still a member is
//! signalled by its pidfd: a number that changed hands in between is not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use sexton_diagnosis::process_state::{classify, explain};
use sexton_host::task::Tasks;
use sexton_model::reading::Reading;
use sexton_model::run::RunRecord;
use sexton_model::status::Descendant;
use sexton_process::cgroup::Cgroup;
use sexton_process::{Pidfd, SIGKILL, SIGTERM};
use tokio::time::{Instant, sleep};

/// Rounds of signalling those that were not there a round ago. A fork bomb outruns any number.
const ROUNDS: usize = 100;

/// Between two looks at processes that were told to end.
const PAUSE: Duration = Duration::from_millis(20);

/// The processes of one run.
#[derive(Debug, Clone)]
pub struct Tree {
    cgroup: Option<Cgroup>,
    /// The main process; `None` where its number means nothing here (another boot, another PID namespace).
    main: Option<Main>,
    keeper: Option<i32>,
}

#[derive(Debug, Clone, Copy)]
struct Main {
    pid: i32,
    start_ticks: u64,
}

/// A process that is still there after SIGKILL, or that no signal reaches.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Stuck {
    /// PID; 0 where our PID namespace does not show it.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// What keeps it, in words.
    pub why: String,
}

/// What came of stopping a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Who got SIGTERM, as far as they were found.
    pub terminated: Vec<Descendant>,
    /// Who was left after its time and got SIGKILL.
    pub killed: Vec<Descendant>,
    /// Who is there still.
    pub stuck: Vec<Stuck>,
}

impl Tree {
    /// Of the run with this record. `keeper`: the process that forked it, where that lives; all that is below it counts
    /// as the run's.
    pub fn of(record: &RunRecord, keeper: Option<i32>) -> Self {
        let here = record.identity.as_ref().filter(|identity| {
            sexton_process::identity(std::process::id() as i32).is_ok_and(|us| {
                (&us.boot_id, us.pid_namespace) == (&identity.boot_id, identity.pid_namespace)
            })
        });
        let main = here.map(|identity| Main { pid: identity.pid, start_ticks: identity.start_ticks });
        let made = record.made_cgroup.as_ref().filter(|_| here.is_some());
        Self {
            cgroup: made.map(|made| Cgroup::made_before(made.version, PathBuf::from(&made.folder))),
            main,
            keeper,
        }
    }

    /// Those of its processes that are not over, the main one included, by PID.
    pub fn members(&self) -> Vec<Descendant> {
        let tasks = Tasks::system();
        self.pids().into_iter().filter_map(|pid| living(&tasks, pid)).collect()
    }

    /// As [`Self::members`], without the main process.
    pub fn others(&self) -> Vec<Descendant> {
        let main = self.main_pid();
        self.members().into_iter().filter(|member| Some(member.pid) != main).collect()
    }

    /// Sends `signal` to every member, and for SIGKILL to what those start meanwhile. Returns whom it was sent to.
    pub fn signal(&self, signal: i32) -> Vec<Descendant> {
        let members = self.members();
        if signal == SIGKILL && self.kill_cgroup() {
            // What descends from the run without being in its cgroup is left.
            self.signal_one_by_one(signal);
            return members;
        }
        let reached = self.signal_one_by_one(signal);
        members.into_iter().filter(|member| reached.contains(&member.pid)).collect()
    }

    /// SIGTERM to everybody, SIGKILL to who is there after `grace`, and no more than `patience` for what comes of that.
    ///
    /// To be awaited to its end, or dropped: then nothing more is sent.
    pub async fn stop(&self, grace: Duration, patience: Duration) -> Stopped {
        let mut stopped = Stopped { terminated: self.signal(SIGTERM), ..Default::default() };
        if self.wait_until_empty(grace).await {
            return stopped;
        }
        stopped.killed = self.signal(SIGKILL);
        if !self.wait_until_empty(patience).await {
            stopped.stuck = self.stuck();
        }
        stopped
    }

    /// Who is there still, with what keeps them.
    pub fn stuck(&self) -> Vec<Stuck> {
        let tasks = Tasks::system();
        self.pids().into_iter().filter_map(|pid| stuck(&tasks, pid)).collect()
    }

    async fn wait_until_empty(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if self.members().is_empty() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            sleep(PAUSE).await;
        }
    }

    /// The main process' PID while it means that process.
    fn main_pid(&self) -> Option<i32> {
        let main = self.main?;
        sexton_process::start_ticks(main.pid).is_ok_and(|ticks| ticks == main.start_ticks).then_some(main.pid)
    }

    /// Everybody, the dead included that are not reaped.
    fn pids(&self) -> BTreeSet<i32> {
        let tasks = Tasks::system();
        let mut pids: BTreeSet<i32> = self.cgroup_members().into_iter().collect();
        if let Some(main) = self.main_pid() {
            pids.insert(main);
            pids.extend(below(&tasks, main));
        }
        pids.extend(self.keeper.into_iter().flat_map(|keeper| below(&tasks, keeper)));
        pids.extend(self.fallen_to_us(&tasks));
        self.ours().iter().for_each(|pid| {
            pids.remove(pid);
        });
        pids
    }

    fn cgroup_members(&self) -> Vec<i32> {
        // One that cannot be read has no members that anybody could signal.
        self.cgroup.as_ref().and_then(|cgroup| cgroup.members().ok()).unwrap_or_default()
    }

    /// Children of the supervisor that the dead keeper left: those of the main process' session, which it leads. Others
    /// are helpers of ours, or orphans that a first process inherits from anybody.
    fn fallen_to_us(&self, tasks: &Tasks) -> Vec<i32> {
        let (Some(main), None) = (self.main, self.keeper) else { return Vec::new() };
        // A session keeps the number of its leader from being used again, as long as anybody is in it. So only the
        // leader itself can be another one by now: then all of them are gone.
        if sexton_process::start_ticks(main.pid).is_ok_and(|ticks| ticks != main.start_ticks) {
            return Vec::new();
        }
        let children = sexton_process::children().unwrap_or_default();
        let mine = children.into_iter().filter(|pid| session_of(*pid) == Some(main.pid));
        mine.flat_map(|pid| std::iter::once(pid).chain(below(tasks, pid))).collect()
    }

    fn ours(&self) -> Vec<i32> {
        self.keeper.into_iter().chain([std::process::id() as i32]).collect()
    }

    /// Whether that was possible: nobody of us may be in there, wherever somebody has moved us.
    fn kill_cgroup(&self) -> bool {
        let Some(cgroup) = &self.cgroup else { return false };
        let ours = self.ours();
        !self.cgroup_members().iter().any(|pid| ours.contains(pid)) && cgroup.kill().unwrap_or(false)
    }

    fn signal_one_by_one(&self, signal: i32) -> BTreeSet<i32> {
        let mut reached: BTreeMap<i32, Pidfd> = BTreeMap::new();
        for _ in 0..ROUNDS {
            let new = self.pids().into_iter().filter(|pid| *pid > 0 && !reached.contains_key(pid));
            // ESRCH, EINVAL: it ended.
            let opened: Vec<(i32, Pidfd)> =
                new.filter_map(|pid| Some((pid, Pidfd::open(pid).ok()?))).collect();
            if opened.is_empty() {
                break;
            }
            let still = self.pids();
            for (pid, pidfd) in opened {
                if still.contains(&pid) && pidfd.signal(signal).is_ok() {
                    reached.insert(pid, pidfd);
                }
            }
            if signal != SIGKILL {
                break;
            }
        }
        reached.into_keys().collect()
    }
}

/// Everything below `pid`, without it.
pub(super) fn below(tasks: &Tasks, pid: i32) -> Vec<i32> {
    tasks.descendants(pid).into_value().unwrap_or_default()
}

/// Process `pid` by name, unless all of it is over.
pub(super) fn living(tasks: &Tasks, pid: i32) -> Option<Descendant> {
    match tasks.process(pid) {
        Reading::Value(process) if process.threads().all(|thread| thread.state.is_dead()) => None,
        Reading::Value(process) => Some(Descendant { pid, name: process.leader.comm }),
        Reading::Absent if pid > 0 => None,
        // It is there, whoever it is.
        Reading::Absent | Reading::Unreadable(_) => Some(Descendant { pid, name: "?".to_owned() }),
    }
}

fn stuck(tasks: &Tasks, pid: i32) -> Option<Stuck> {
    let Descendant { pid, name } = living(tasks, pid)?;
    if pid == 0 {
        return Some(Stuck { pid, name, why: "it is outside our PID namespace".to_owned() });
    }
    Some(Stuck { pid, name, why: explain(pid, &classify(&tasks.process(pid))).sentence })
}

/// Field 6 of `/proc/PID/stat`.
fn session_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold spaces and parentheses.
    stat.rsplit_once(") ")?.1.split(' ').nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests;
