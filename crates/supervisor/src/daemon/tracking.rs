//! Follows a living run: its cgroups with their counters at the beginning, its threads, and kills of its members.
//!
//! A run may move itself to another cgroup, and at its death a v1 kernel shows `/` for wherever it was; a kernel line may
//! name any of its threads. So both are looked at while it lives: its cgroup often, since a counter that nobody had a
//! baseline of proves nothing, the rest once a second.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sexton_diagnosis::death::{Membership, Tasks as RunTasks};
use sexton_diagnosis::process_state::classify;
use sexton_host::cgroup::{self, MemoryHierarchy};
use sexton_host::files::Files;
use sexton_host::kernel_log::KernelLog;
use sexton_host::memory;
use sexton_host::task::Tasks;
use sexton_model::Timestamp;
use sexton_model::baseline::{CgroupBaseline, difference};
use sexton_model::kernel::LogMark;
use sexton_model::process_state::ProcessState;
use sexton_model::reading::Reading;
use sexton_model::run::CgroupPath;
use sexton_model::task::SIGKILL_BIT;
use tokio::time::Instant;

use super::footprint::Footprint;

/// A young run moves and forks; an old one hardly ever does.
const YOUNG: Duration = Duration::from_secs(5);
const LOOK_INTERVAL_YOUNG: Duration = Duration::from_millis(20);
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How often threads and counters are read.
const FULL_INTERVAL: Duration = Duration::from_secs(1);
/// How often its children are looked at: a listing for each of its threads.
const CHILDREN_INTERVAL: Duration = Duration::from_secs(3);
/// Threads that are remembered; those of a prover are some hundred.
const THREADS_MAX: usize = 16_384;

/// The inode of the kernel's first PID namespace (`PROC_PID_INIT_INO`).
pub(crate) const INITIAL_PID_NAMESPACE: u64 = 0xeffffffc;

/// The PID, inside its own namespace, of the process that the namespace ends with.
const NAMESPACE_INIT: i32 = 1;

/// A cgroup that the run was in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stay {
    /// `/proc/PID/cgroup` at the time.
    pub lines: Vec<CgroupPath>,
    /// Counters when it came.
    pub baseline: Reading<CgroupBaseline>,
    /// OOM kills that it has lived through here, which hit others.
    #[serde(default)]
    pub kills_survived: u64,
}

/// `tracking.json`: what is known of a run besides its record, for whoever judges its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tracked {
    /// Its cgroups, the present one last.
    pub stays: Vec<Stay>,
    /// Ids of its threads so far, with the names that they had.
    pub threads: BTreeMap<i32, String>,
    /// The end of the kernel log when it began.
    pub log_mark: Reading<LogMark>,
    /// `/proc/vmstat oom_kill` when it began.
    pub vmstat_oom_kill: Reading<u64>,
    /// When its cgroup was last looked at.
    pub looked_at: Timestamp,
    /// What it takes.
    #[serde(default = "Footprint::midway")]
    pub footprint: Footprint,
}

/// What a look found.
#[derive(Debug, Default)]
pub struct Found {
    /// The files to record at its death are others now.
    pub files: Option<Vec<OsString>>,
    /// So many members of its cgroup were OOM-killed since the last look, and it lives.
    pub members_killed: u64,
    /// Whether it sleeps in a cgroup that is out of memory and must not kill; on a change only.
    pub stalled: Option<bool>,
    /// `tracking.json` is to be written.
    pub changed: bool,
    /// Children of the run's main process that ended and that it did not reap between two looks.
    pub unreaped: Vec<Unreaped>,
    /// Its leader is dead and other threads of it are not, for more than a moment; told once.
    pub leader_died: bool,
}

/// A dead process that its living parent does not wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreaped {
    /// Its PID.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// How it ended, in words; `null` where that is not readable.
    pub status: Option<String>,
    /// Who must wait for it: the run's main process.
    pub parent_pid: i32,
    /// Its name.
    pub parent_name: String,
}

/// Follows one run.
#[derive(Debug)]
pub struct Tracker {
    pid: i32,
    own_pids: Vec<i32>,
    files: Files,
    /// What has been found.
    pub tracked: Tracked,
    hierarchy: Reading<MemoryHierarchy>,
    /// OOM kills of its present cgroup, as counted at the last look.
    counted_kills: u64,
    stalled: bool,
    /// So many looks in a row found its leader dead.
    leader_dead: u32,
    began: Instant,
    next_look: Instant,
    next_full: Instant,
    next_children: Instant,
    /// Dead children seen at the last look, and whether they were reported.
    dead_children: BTreeMap<i32, bool>,
}

/// Where the kernel log is read.
pub fn kernel_log() -> KernelLog {
    KernelLog::system().or_syslog(sexton_process::klog::read_kernel_log)
}

impl Tracker {
    /// Begins with a child that does not run yet. `own_pids`: our own processes, which are no strangers in its cgroup.
    pub fn new(pid: i32, own_pids: Vec<i32>) -> Self {
        Self::beginning(pid, own_pids, Footprint::at_spawn())
    }

    /// Begins with a process that has lived for a while, of which nothing was tracked.
    pub fn midway(pid: i32, own_pids: Vec<i32>) -> Self {
        Self::beginning(pid, own_pids, Footprint::midway())
    }

    fn beginning(pid: i32, own_pids: Vec<i32>, footprint: Footprint) -> Self {
        let files = Files::system();
        let tracked = Tracked {
            stays: Vec::new(),
            threads: BTreeMap::new(),
            log_mark: kernel_log().mark(),
            vmstat_oom_kill: memory::vmstat(&files).and_then(|vmstat| vmstat.oom_kill),
            looked_at: Timestamp::now(),
            footprint,
        };
        Self::with(pid, own_pids, tracked)
    }

    /// Goes on with what an earlier supervisor tracked.
    pub fn with(pid: i32, own_pids: Vec<i32>, tracked: Tracked) -> Self {
        let now = Instant::now();
        let files = Files::system();
        let hierarchy = match tracked.stays.last() {
            Some(stay) => cgroup::locate(&files, &stay.lines),
            None => Reading::Absent,
        };
        Self {
            pid,
            own_pids,
            files,
            tracked,
            hierarchy,
            counted_kills: 0,
            stalled: false,
            leader_dead: 0,
            began: now,
            next_look: now,
            next_full: now,
            next_children: now,
            dead_children: BTreeMap::new(),
        }
    }

    /// When [`Self::look`] is due.
    pub fn due(&self) -> Instant {
        self.next_look.min(self.next_full)
    }

    /// Looks at what is due.
    pub fn look(&mut self) -> Found {
        let now = Instant::now();
        let young = now.duration_since(self.began) < YOUNG;
        let mut found = Found::default();
        self.next_look = now + if young { LOOK_INTERVAL_YOUNG } else { LOOK_INTERVAL };
        self.follow_cgroup(&mut found);
        if now >= self.next_full {
            self.next_full = now + FULL_INTERVAL;
            found.changed |= self.follow_threads();
            self.follow_counters(&mut found);
            self.tracked.footprint.look(self.pid, &self.tracked.stays);
            found.leader_died = self.follow_leader();
        }
        if now >= self.next_children {
            self.next_children = now + CHILDREN_INTERVAL;
            self.follow_children(&mut found);
        }
        found
    }

    fn follow_cgroup(&mut self, found: &mut Found) {
        let Some(lines) = self.cgroups_now() else { return };
        self.tracked.looked_at = Timestamp::now();
        if self.tracked.stays.last().is_some_and(|stay| stay.lines == lines) {
            return;
        }
        self.hierarchy = cgroup::locate(&self.files, &lines);
        let pids: Vec<i32> = self.no_strangers().collect();
        let baseline =
            self.hierarchy.clone().map(|hierarchy| CgroupBaseline::of(&hierarchy.read(&self.files), &pids));
        self.counted_kills = 0;
        self.tracked.stays.push(Stay { lines, baseline, kills_survived: 0 });
        found.files = Some(self.evidence_files());
        found.changed = true;
    }

    /// Processes that may share the prover's cgroup without being taken for it. The first one of our PID namespace is
    /// among them: when that is killed, the kernel takes everybody with it, and nobody is left to judge.
    fn no_strangers(&self) -> impl Iterator<Item = i32> + '_ {
        self.own_pids.iter().copied().chain([self.pid, NAMESPACE_INIT])
    }

    /// Its cgroups, from its leader or, where that is ending, from any other thread. A thread that is ending shows other
    /// paths, or none: the last ones count.
    fn cgroups_now(&self) -> Option<Vec<CgroupPath>> {
        let tasks = Tasks::system();
        let lines = tasks.cgroups(self.pid).into_value();
        if !self.is_ending() {
            return lines;
        }
        let others = tasks.thread_ids(self.pid).into_value().unwrap_or_default();
        others.into_iter().rev().filter(|tid| *tid != self.pid).find_map(|tid| {
            let lines = tasks.thread_cgroups(self.pid, tid).into_value()?;
            (!is_ending(&format!("/proc/{}/task/{tid}/stat", self.pid))).then_some(lines)
        })
    }

    /// Whether its leader is dead or inside `do_exit()`: a v1 kernel shows `/` for it then, whatever its cgroup was.
    fn is_ending(&self) -> bool {
        is_ending(&format!("/proc/{}/stat", self.pid))
    }

    /// Whether it has been told to die and has not begun: a thread in a driver may take long to see it.
    fn is_doomed(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let pending = status.lines().filter_map(|line| {
            let mask = line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        });
        pending.into_iter().any(|mask| mask & SIGKILL_BIT != 0)
    }

    /// Whether its leader has been dead, and others of its threads alive, for three looks: in an ordinary exit the
    /// leader is often the first to go, and the others follow within milliseconds.
    fn follow_leader(&mut self) -> bool {
        const LOOKS: u32 = 3;
        let state = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let is_dead = state.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
        let others = || Tasks::system().thread_ids(self.pid).into_value().unwrap_or_default();
        self.leader_dead = if is_dead && others().iter().any(|tid| *tid != self.pid) {
            self.leader_dead.saturating_add(1)
        } else {
            0
        };
        self.leader_dead == LOOKS
    }

    fn follow_threads(&mut self) -> bool {
        let tasks = Tasks::system();
        let Reading::Value(ids) = tasks.thread_ids(self.pid) else { return false };
        let known = self.tracked.threads.len();
        let new: Vec<i32> = ids.into_iter().filter(|id| !self.tracked.threads.contains_key(id)).collect();
        for id in new {
            if self.tracked.threads.len() < THREADS_MAX
                && let Reading::Value(name) = tasks.thread_name(self.pid, id)
            {
                self.tracked.threads.insert(id, name);
            }
        }
        // The leader takes its program's name after `exec`.
        if let Reading::Value(name) = tasks.thread_name(self.pid, self.pid) {
            self.tracked.threads.insert(self.pid, name);
        }
        self.tracked.threads.len() != known
    }

    fn follow_counters(&mut self, found: &mut Found) {
        let Reading::Value(hierarchy) = &self.hierarchy else { return };
        let now = hierarchy.read(&self.files);
        let Some(own) = now.own() else { return };
        let stalled = own.under_oom == Reading::Value(true) && own.oom_kill_disable == Reading::Value(true);
        if std::mem::replace(&mut self.stalled, stalled) != stalled {
            found.stalled = Some(stalled);
        }
        let strangers = match &own.members {
            Reading::Value(members) => members.foreign > 0 || self.has_strangers(&members.pids),
            _ => false,
        };
        let Some(Reading::Value(baseline)) = self.tracked.stays.last_mut().map(|stay| &mut stay.baseline)
        else {
            return;
        };
        if let Some(own) = baseline.levels.first_mut()
            && strangers
            && own.exclusive == Reading::Value(true)
        {
            own.exclusive = Reading::Value(false);
            found.changed = true;
        }
        let gained = difference(baseline, &now).into_iter().next().map(|own| own.gained.local.oom_kill);
        if let Some(Reading::Value(kills)) = gained {
            // The kernel counts before it kills: only what was counted at the look before, and did not end the prover,
            // hit somebody else.
            let counted = std::mem::replace(&mut self.counted_kills, kills);
            let lives = !self.is_ending() && !self.is_doomed();
            if let Some(stay) = self.tracked.stays.last_mut()
                && counted > stay.kills_survived
                && lives
            {
                found.members_killed = counted - stay.kills_survived;
                stay.kills_survived = counted;
                found.changed = true;
            }
        }
    }

    /// A shell that starts the prover and never waits for it goes on living when that is dead: to everybody who looks at
    /// the shell, all is well.
    fn follow_children(&mut self, found: &mut Found) {
        let tasks = Tasks::system();
        let Reading::Value(children) = tasks.children(self.pid) else { return };
        let before = std::mem::take(&mut self.dead_children);
        for pid in children {
            let reading = tasks.process(pid);
            let ProcessState::Unreaped { status, .. } = classify(&reading) else { continue };
            let Reading::Value(process) = reading else { continue };
            let reported = before.get(&pid).copied();
            // Once is what every parent looks like between a death and its wait.
            if reported == Some(false) {
                let parent_name = self.tracked.threads.get(&self.pid).cloned().unwrap_or_default();
                let status = status.value().map(ToString::to_string);
                let name = process.leader.comm;
                found.unreaped.push(Unreaped { pid, name, status, parent_pid: self.pid, parent_name });
            }
            self.dead_children.insert(pid, reported.is_some());
        }
    }

    fn has_strangers(&self, members: &[i32]) -> bool {
        let known: BTreeSet<i32> = self.no_strangers().collect();
        if members.iter().all(|pid| known.contains(pid)) {
            return false;
        }
        let family: BTreeSet<i32> = self
            .own_pids
            .iter()
            .filter_map(|pid| Tasks::system().descendants(*pid).into_value())
            .flatten()
            .collect();
        members.iter().any(|pid| !known.contains(pid) && !family.contains(pid))
    }

    /// What the keeper is to record at the death: for every cgroup so far, the last one first, and the host's.
    pub fn evidence_files(&self) -> Vec<OsString> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for stay in self.tracked.stays.iter().rev() {
            if let Reading::Value(hierarchy) = cgroup::locate(&self.files, &stay.lines) {
                paths.extend(
                    hierarchy.files().into_iter().filter(|path| !paths.contains(path)).collect::<Vec<_>>(),
                );
            }
        }
        paths.extend(memory::FILES.iter().map(PathBuf::from));
        paths.push(PathBuf::from("/proc/pressure/memory"));
        paths.into_iter().map(PathBuf::into_os_string).collect()
    }
}

fn is_ending(stat: &str) -> bool {
    const PF_EXITING: u64 = 0x4;
    let stat = std::fs::read_to_string(stat).unwrap_or_default();
    // The state follows the name, which may hold anything; flags are the seventh field after it.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return true };
    let flags = rest.split(' ').nth(6).and_then(|flags| flags.parse::<u64>().ok());
    rest.starts_with(['Z', 'X']) || flags.is_none_or(|flags| flags & PF_EXITING != 0)
}

impl Tracked {
    /// The run's tasks, as the judgement wants them.
    pub fn tasks(&self, pid: Option<i32>, pid_namespace: Option<u64>) -> RunTasks {
        let names: BTreeSet<String> = self.threads.values().cloned().collect();
        RunTasks {
            pid,
            thread_ids: self.threads.keys().copied().collect(),
            names: names.into_iter().collect(),
            numbers_are_global: pid_namespace == Some(INITIAL_PID_NAMESPACE),
        }
    }

    /// Its cgroups, the last one first, with what `at_death` recorded of them.
    pub fn memberships(&self, at_death: &Files) -> Vec<Membership> {
        let of = |stay: &Stay| Membership {
            baseline: stay.baseline.clone(),
            at_death: cgroup::locate(at_death, &stay.lines).map(|hierarchy| hierarchy.read(at_death)),
            kills_survived: stay.kills_survived,
        };
        self.stays.iter().rev().map(of).collect()
    }
}
