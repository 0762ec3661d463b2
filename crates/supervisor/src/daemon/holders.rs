//! Who holds memory that outlives the process it belonged to?
//!
//! Asked only when memory does not come back, since it means a look at every descriptor of the host; and in a thread of its
//! own, with bounds, since a host may have many.

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use sexton_host::task::Tasks;
use sexton_model::drain::{Hold, Holder};
use sexton_model::reading::Reading;
use sexton_model::task::SharedFile;

/// Holders that are named at most.
const MOST: usize = 32;
/// Longest look.
const PATIENCE: Duration = Duration::from_secs(5);
/// Least that a file must hold to be suspected where the run's own files are not known.
const SUSPECT_LEAST: u64 = 16 << 20;

/// What is asked.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// The run's main process, which is gone.
    pub(super) pid: i32,
    /// Shared-memory files that the run had open. Empty: not known, or none.
    pub(super) shared: Vec<SharedFile>,
    /// Members of the run's own cgroups.
    pub(super) members: Vec<i32>,
    /// Our own processes, which are members without being left over.
    pub(super) own_pids: Vec<i32>,
    /// Bytes that do not come back.
    pub(super) held_bytes: u64,
}

/// A look that is under way.
#[derive(Debug)]
pub(super) struct Search(Receiver<Vec<Holder>>);

impl Search {
    /// None where no thread can be made for it.
    pub(super) fn start(question: Question) -> Option<Self> {
        let (answer, answered) = mpsc::sync_channel(1);
        // Nobody listens any more when the drain is over before.
        let work = move || drop(answer.send(find(&Tasks::system(), &question)));
        let thread = thread::Builder::new().name("holders".to_owned()).stack_size(256 << 10).spawn(work);
        thread.ok().map(|_| Self(answered))
    }

    /// What it has found; none while it looks.
    pub(super) fn answer(&self) -> Option<Vec<Holder>> {
        match self.0.try_recv() {
            Ok(holders) => Some(holders),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Vec::new()),
        }
    }
}

fn find(tasks: &Tasks, question: &Question) -> Vec<Holder> {
    let deadline = Instant::now() + PATIENCE;
    let mut found: Vec<Holder> = members(tasks, question).collect();
    let pids = tasks.all().into_value().unwrap_or_default();
    let mut suspects = Vec::new();
    for pid in pids {
        if found.len() >= MOST || Instant::now() >= deadline {
            break;
        }
        let Reading::Value(files) = tasks.shared_files(pid) else { continue };
        for file in files {
            let known = question.shared.iter().any(|of_run| same(of_run, &file));
            if known {
                found.push(holder(tasks, pid, Hold::SharedMemory, &file));
            } else if file.bytes >= SUSPECT_LEAST.max(question.held_bytes / 16) {
                suspects.push((pid, file));
            }
        }
    }
    // Where nobody is known to hold it, those are named who could.
    if found.is_empty() {
        suspects.sort_by_key(|(_, file)| std::cmp::Reverse(file.bytes));
        let suspects = suspects.iter().take(MOST);
        found = suspects.map(|(pid, file)| holder(tasks, *pid, Hold::PerhapsSharedMemory, file)).collect();
    }
    found.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    found.truncate(MOST);
    found
}

fn same(one: &SharedFile, other: &SharedFile) -> bool {
    (one.device, one.inode) == (other.device, other.inode)
}

fn members<'a>(tasks: &'a Tasks, question: &'a Question) -> impl Iterator<Item = Holder> + 'a {
    let left =
        question.members.iter().filter(|pid| **pid != question.pid && !question.own_pids.contains(pid));
    left.take(MOST).map(|pid| Holder {
        pid: *pid,
        name: tasks.name(*pid).into_value().unwrap_or_default(),
        what: Hold::CgroupMember,
        object: None,
        bytes: tasks
            .resident(*pid)
            .into_value()
            .map(|memory| memory.total_bytes.saturating_sub(memory.file_bytes.unwrap_or(0))),
    })
}

fn holder(tasks: &Tasks, pid: i32, what: Hold, file: &SharedFile) -> Holder {
    Holder {
        pid,
        name: tasks.name(pid).into_value().unwrap_or_default(),
        what,
        object: Some(file.name.clone()),
        bytes: Some(file.bytes),
    }
}
