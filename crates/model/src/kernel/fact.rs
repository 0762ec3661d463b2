//! What one record of the kernel log states.
//!
//! Fields that a kernel version does not print, that were cut off, or that a hostile name makes ambiguous, are None.
//! Sizes are bytes, addresses and error codes numbers. `comm` is the name of a *thread* (at most 15 bytes, chosen by
//! itself), and a `pid` in these lines can be that of a thread.
//!
//! Sources: `mm/oom_kill.c`, `mm/memcontrol.c`, `mm/memcontrol-v1.c`, `arch/x86/mm/fault.c`, `arch/x86/kernel/traps.c`,
//! `kernel/hung_task.c`, `kernel/watchdog.c` of Linux 3.10 to 6.18; NVIDIA's Xid documentation.

use serde::{Deserialize, Serialize};

/// A statement of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum KernelFact {
    /// `NAME invoked oom-killer: …`: whose allocation found no memory. It need not be the victim.
    OomInvoked(OomInvoked),
    /// `oom-kill:constraint=…`: limit and victim in one line (Linux ≥ 5.0).
    OomContext(OomContext),
    /// `… Killed process N (NAME) …`.
    OomKilled(OomKilled),
    /// `… Kill process N (NAME) score M or sacrifice child`: chosen, and it or a child will be killed (Linux ≤ 5.0).
    OomChosen(OomChosen),
    /// `Task in /x killed as a result of limit of /y` (Linux ≤ 4.20).
    OomLimit(OomLimit),
    /// `Tasks in /x are going to be killed due to memory.oom.group set`.
    OomGroup(OomGroup),
    /// `oom_reaper: reaped process N (NAME), …`: the victim's memory was taken before it ended.
    OomReaped(Named),
    /// `oom_reaper: unable to reap pid:N (NAME)`: the victim does not let go.
    OomUnreapable(Named),
    /// `memory: usage …kB, limit …kB, failcnt …`, part of an OOM report.
    MemcgUsage(MemcgUsage),
    /// `Memory cgroup stats for /x:`, part of an OOM report: the cgroup whose limit it is.
    MemcgStats(OomGroup),
    /// `NAME[N]: segfault at …`.
    Segfault(Segfault),
    /// `traps: NAME[N] trap divide error …`, general protection fault, invalid opcode, int3, ….
    Trap(Trap),
    /// `NVRM: Xid (PCI:…): CODE, …`.
    Xid(Xid),
    /// `NVRM: GPU at PCI:…: GPU-…`: which GPU has that PCI address. Follows the first Xid of a GPU.
    GpuIdentity(GpuIdentity),
    /// `… has fallen off the bus …`: several lines, and often no Xid.
    GpuLost(GpuLost),
    /// `INFO: task NAME:N blocked for more than M seconds.`
    HungTask(Stuck),
    /// `watchdog: BUG: soft lockup - CPU#C stuck for Ms! [NAME:N]`
    SoftLockup(Stuck),
    /// `FUNCTION: N callbacks suppressed`: lines were left out here, so that a missing one proves nothing.
    Suppressed(Suppressed),
}

impl KernelFact {
    /// The process (or thread) that it is about. For [`Self::OomInvoked`] none is printed.
    pub fn pid(&self) -> Option<i32> {
        match self {
            Self::OomContext(context) => context.pid,
            Self::OomKilled(killed) => Some(killed.victim.pid),
            Self::OomChosen(chosen) => Some(chosen.chosen.pid),
            Self::OomReaped(task) | Self::OomUnreapable(task) => Some(task.pid),
            Self::Segfault(fault) => Some(fault.task.pid),
            Self::Trap(trap) => Some(trap.task.pid),
            Self::Xid(xid) => xid.pid,
            Self::HungTask(stuck) | Self::SoftLockup(stuck) => Some(stuck.task.pid),
            Self::OomInvoked(_)
            | Self::OomLimit(_)
            | Self::OomGroup(_)
            | Self::MemcgUsage(_)
            | Self::MemcgStats(_)
            | Self::GpuIdentity(_)
            | Self::GpuLost(_)
            | Self::Suppressed(_) => None,
        }
    }
}

/// A task as the kernel log names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its process or thread id in the initial PID namespace.
    pub pid: i32,
    /// Its name.
    pub comm: String,
}

/// Of [`KernelFact::OomInvoked`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomInvoked {
    /// Name of the task that allocated.
    pub comm: String,
    /// Its score adjustment, -1000 to 1000.
    pub oom_score_adj: Option<i32>,
}

/// Whose memory ran out, as far as the line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OomScope {
    /// A memory cgroup reached its limit.
    Memcg,
    /// The host, a cpuset or a memory policy ran out of memory.
    Host,
}

/// Of [`KernelFact::OomContext`]. A long line may arrive in pieces: each gives what it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomContext {
    /// `CONSTRAINT_NONE`, `CONSTRAINT_CPUSET`, `CONSTRAINT_MEMORY_POLICY` or `CONSTRAINT_MEMCG`.
    pub constraint: Option<String>,
    /// Name of the cpuset of the task that allocated.
    pub cpuset: Option<String>,
    /// Memory nodes it may use: `0-1,3`.
    pub mems_allowed: Option<String>,
    /// The cgroup at whose limit this happened.
    pub oom_memcg: Option<String>,
    /// Whether it was the host that ran out (`global_oom`).
    pub global_oom: bool,
    /// The cgroup of the victim.
    pub task_memcg: Option<String>,
    /// Name of the victim.
    pub comm: Option<String>,
    /// Process id of the victim.
    pub pid: Option<i32>,
    /// User of the victim.
    pub uid: Option<u32>,
}

/// Of [`KernelFact::OomKilled`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomKilled {
    /// Who was killed. If the leader was dead already, a thread of it.
    #[serde(flatten)]
    pub victim: Named,
    /// Whose memory ran out. Linux ≤ 5.0 does not say it in this line.
    pub scope: Option<OomScope>,
    /// User of the victim.
    pub uid: Option<u32>,
    /// Its score adjustment, -1000 to 1000.
    pub oom_score_adj: Option<i32>,
    /// Its address space.
    pub total_vm_bytes: Option<u64>,
    /// Its anonymous memory.
    pub anon_bytes: Option<u64>,
    /// Its mapped files.
    pub file_bytes: Option<u64>,
    /// Its shared memory, with what `cuMemHostAlloc` pinned.
    pub shmem_bytes: Option<u64>,
    /// Its page tables.
    pub pgtables_bytes: Option<u64>,
}

/// Of [`KernelFact::OomChosen`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomChosen {
    /// Who was chosen.
    #[serde(flatten)]
    pub chosen: Named,
    /// Whose memory ran out.
    pub scope: Option<OomScope>,
    /// Its badness.
    pub score: Option<u64>,
}

/// Of [`KernelFact::OomLimit`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomLimit {
    /// The cgroup of the victim.
    pub task_memcg: String,
    /// The cgroup whose limit was reached.
    pub oom_memcg: String,
}

/// Of [`KernelFact::OomGroup`] and [`KernelFact::MemcgStats`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomGroup {
    /// The cgroup.
    pub memcg: String,
}

/// Of [`KernelFact::MemcgUsage`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemcgUsage {
    /// `memory`, `memory+swap`, `swap` or `kmem`.
    pub counter: String,
    /// In use.
    pub usage_bytes: u64,
    /// Its limit; on v1 9223372036854771712 is "none".
    pub limit_bytes: u64,
    /// How often the limit was met. Stays 0 on v1 where both limits are equal.
    pub failcnt: u64,
}

/// Of [`KernelFact::Segfault`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segfault {
    /// The thread that faulted.
    #[serde(flatten)]
    pub task: Named,
    /// The address that it used.
    pub address: u64,
    /// The instruction.
    pub ip: u64,
    /// The stack pointer.
    pub sp: Option<u64>,
    /// Page fault error code: 1 protection, 2 write, 4 user, 16 instruction fetch.
    pub error: Option<u64>,
    /// File that the instruction is in, with its place there: `prover[118a,564a6b0c1000+1000]`.
    pub mapping: Option<String>,
}

/// Of [`KernelFact::Trap`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trap {
    /// The thread that was trapped.
    #[serde(flatten)]
    pub task: Named,
    /// `divide error`, `invalid opcode`, `general protection fault`, `int3`, ….
    pub name: String,
    /// The instruction.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The processor's error code.
    pub error: u64,
    /// As [`Segfault::mapping`].
    pub mapping: Option<String>,
}

/// Of [`KernelFact::Xid`]. What a code means: [`super::xid::meaning`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xid {
    /// PCI address of the GPU: `0000:01:00`, of newer drivers `0000:01:00.0`.
    pub pci: String,
    /// MIG: number of the GPU instance.
    pub gpu_instance: Option<u32>,
    /// MIG: number of the compute instance.
    pub compute_instance: Option<u32>,
    /// The code.
    pub code: u32,
    /// Whose work it was, where the driver knows.
    pub pid: Option<i32>,
    /// Its name, up to the first ", " if it holds one.
    pub name: Option<String>,
    /// All that follows.
    pub text: String,
}

/// Of [`KernelFact::GpuIdentity`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuIdentity {
    /// As [`Xid::pci`].
    pub pci: String,
    /// `GPU-…`.
    pub uuid: String,
}

/// Of [`KernelFact::GpuLost`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuLost {
    /// PCI address, where the line (or the one before it) has it.
    pub pci: Option<String>,
}

/// Of [`KernelFact::HungTask`] and [`KernelFact::SoftLockup`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// The task that stands or runs there.
    #[serde(flatten)]
    pub task: Named,
    /// For how long at least.
    pub seconds: u64,
}

/// Of [`KernelFact::Suppressed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppressed {
    /// Which message: the kernel function that prints it (`show_signal_msg` for segmentation faults).
    pub function: String,
    /// How many were left out.
    pub count: u64,
}
