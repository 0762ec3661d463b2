//! What the kernel said: records of its log, the facts in them, and who sent a SIGKILL.
//!
//! Filled in by `host::kernel_log` and `host::tracefs`, judged by `diagnosis::death`. Process ids in here are those of
//! the *initial* PID namespace; inside a container they are not those that `getpid(2)` answers.
//!
//! | module | noun |
//! |---|---|
//! | [`fact`] | what one record states: killed by the OOM killer, segmentation fault, Xid, … |
//! | [`xid`] | classes of Xid codes and what a restart would be worth |
//! | [`trace`] | events of tracefs: a SIGKILL with its sender, an OOM victim |

pub mod fact;
pub mod trace;
pub mod xid;

use serde::{Deserialize, Serialize};

pub use fact::KernelFact;

/// One record of the kernel log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRecord {
    /// Its number: records are numbered from 0 at boot, without holes. None through `syslog(2)`.
    pub seq: Option<u64>,
    /// Time since boot in µs, by the clock of the kernel log (`local_clock()`, which stands still in suspend).
    /// 0 where the kernel is told to log without times (`printk.time=0`).
    pub at_us: u64,
    /// Level + 8 × facility. Only the kernel itself can write facility 0.
    pub priority: u32,
    /// The text, unescaped. It may hold newlines: of the kernel, or of a process that is named so.
    pub text: String,
    /// `KEY=VALUE` lines of the record, in their order: `SUBSYSTEM`, `DEVICE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
}

impl KernelRecord {
    /// Whether the kernel wrote it. What a process writes to `/dev/kmsg` arrives with facility 1 or above, whatever it
    /// asked for (`devkmsg_write()`: "facility 0 is reserved"), so that nobody can fake a kernel line.
    pub fn is_from_kernel(&self) -> bool {
        self.priority < 8
    }
}

/// By which door the log was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// `/dev/kmsg`: one record a read, numbered.
    Kmsg,
    /// `syslog(2)`: lines with times, as `dmesg -S` reads them.
    Syslog,
}

/// A place in the log: all that is written from now on comes after it.
///
/// It works through either door, also when it was taken through the other one. It is worthless after a reboot. A record
/// that does not end with a newline is shown when the next one is written, and then comes after a mark taken before that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMark {
    /// Number of the record to be written next. None if taken through `syslog(2)`.
    pub next_seq: Option<u64>,
    /// Time of the last record, in µs as in [`KernelRecord::at_us`].
    pub at_us: u64,
    /// Last line of the last record; empty if there was none.
    pub last_line: String,
}

/// All that the kernel wrote after a mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelWindow {
    /// Records that the kernel wrote, oldest first.
    pub records: Vec<KernelRecord>,
    /// Records that processes wrote; not shown, since they may say anything.
    pub refused: u64,
    /// Places where records are missing: the ring buffer went round, or a record could not be read.
    pub gaps: u64,
    /// How many records are missing there, as far as numbers tell. 0 through `syslog(2)`.
    pub lost: u64,
    /// Number of the first record read, refused ones included.
    pub from_seq: Option<u64>,
    /// Number of the last record read, refused ones included.
    pub to_seq: Option<u64>,
    /// Where it comes from.
    pub door: Door,
}

impl KernelWindow {
    /// One without records.
    pub fn empty(door: Door) -> Self {
        Self { records: Vec::new(), refused: 0, gaps: 0, lost: 0, from_seq: None, to_seq: None, door }
    }

    /// Whether nothing is missing: only then does "no such line" mean "did not happen".
    pub fn is_whole(&self) -> bool {
        self.gaps == 0
    }
}

/// A fact with its place in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelEvent {
    /// As [`KernelRecord::seq`].
    pub seq: Option<u64>,
    /// As [`KernelRecord::at_us`].
    pub at_us: u64,
    /// What was stated.
    #[serde(flatten)]
    pub fact: KernelFact,
}
