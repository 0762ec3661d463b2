//! What state a process is in, as far as its end is concerned: the conclusion that `diagnosis::process_state` draws
//! from a [`crate::task::ProcessReading`].

use serde::{Deserialize, Serialize};

use crate::reading::{Obstacle, Reading};
use crate::task::{ProcessRef, ResidentMemory, ThreadReading};
use crate::wait::WaitStatus;

/// The states of a process that call for different actions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProcessState {
    /// It lives. Threads in a sleep that no signal ends are listed: one that stays there is no better than dead.
    Running {
        /// Threads in state D.
        blocked: Vec<LiveThread>,
    },
    /// Stopped by a signal; goes on at SIGCONT.
    Stopped,
    /// A tracer has stopped threads of it, while its leader lives.
    StoppedByTracer {
        /// `null` when it is outside our PID namespace.
        tracer: Option<ProcessRef>,
        /// Threads that are stopped.
        threads: Vec<i32>,
    },
    /// A core dump is being written; a SIGKILL now cuts it short.
    DumpingCore {
        /// What the process holds until the dump is written.
        memory: HeldMemory,
    },
    /// It was told to die and cannot, since threads of it sleep where no signal reaches; its leader is not dead yet.
    KilledButStuck {
        /// The threads that keep it.
        threads: Vec<LiveThread>,
        /// What it holds.
        memory: HeldMemory,
    },
    /// Its leader is dead or exiting, and the process is not over: no parent can reap it yet (`Zl` in `ps`).
    Exiting {
        /// Whether the leader has become a zombie; else it is still on its way out.
        leader_dead: bool,
        /// Threads that are not dead. May be empty for an instant, when the last one left during the reading.
        threads: Vec<LiveThread>,
        /// What it holds. The leader's RSS of 0 says nothing.
        memory: HeldMemory,
    },
    /// Its leader is dead, and a tracer keeps the process from being reaped.
    HeldByTracer {
        /// `null` when it is outside our PID namespace.
        tracer: Option<ProcessRef>,
        /// Threads that the tracer has stopped. Empty when all are dead and only the tracer has not waited.
        stopped: Vec<LiveThread>,
        /// What it holds.
        memory: HeldMemory,
    },
    /// All of it is over and its memory is given up; only the status waits for the parent.
    Unreaped {
        /// Who must wait. `null` when that process is outside our PID namespace.
        parent: Option<ProcessRef>,
        /// What the parent will be told.
        status: Reading<WaitStatus>,
    },
    /// There is no such process.
    Gone,
    /// It could not be read.
    Unknown {
        /// Why.
        obstacle: Obstacle,
    },
}

/// A thread that is not dead, in a process whose end is in question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveThread {
    /// As it was read.
    #[serde(flatten)]
    pub thread: ThreadReading,
    /// Whether it will end.
    pub fate: ThreadFate,
    /// What it waits for.
    pub place: WaitPlace,
}

/// How far a thread is on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadFate {
    /// Nothing told it to end: the leader left alone, by `pthread_exit`, and the process lives on in this thread.
    RunsOn,
    /// A fatal signal is pending; it ends as soon as it can take it.
    ToldToDie,
    /// A fatal signal is pending and it sleeps in state D: it cannot take the signal until that sleep ends.
    CannotDie,
    /// It is inside `do_exit()`, giving back what it holds. No signal speeds that up.
    Leaving,
}

/// What a sleeping thread waits for, as its kernel functions tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WaitPlace {
    /// A frozen cgroup.
    Freezer,
    /// Its tracer.
    Tracer,
    /// A GPU driver: `nvidia`, `nvidia_uvm`, `amdgpu`, ….
    GpuDriver {
        /// The kernel module.
        module: String,
    },
    /// The end of a core dump that another thread writes.
    CoreDump,
    /// Memory, in a cgroup at its limit where the OOM killer is disabled.
    CgroupOutOfMemory,
    /// A disk.
    Disk,
    /// A file server.
    NetworkFileSystem,
    /// Something else in the kernel.
    Other {
        /// Kernel function.
        function: String,
    },
    /// It does not sleep.
    Nowhere,
    /// Not to be known: the kernel hides it from this user.
    Hidden,
}

/// Memory of a process whose leader may show none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HeldMemory {
    /// A living thread still maps it.
    Mapped {
        /// The thread that it was read from.
        tid: i32,
        /// All that the process maps, not only this thread.
        #[serde(flatten)]
        memory: ResidentMemory,
    },
    /// No thread maps any. It is given back, or being given back by a task in the kernel or a driver: that shows only
    /// in the charge of its cgroup and in the host's available memory.
    Unmapped,
    /// No thread that could be read maps any, and some could not be read.
    Unknown,
}
