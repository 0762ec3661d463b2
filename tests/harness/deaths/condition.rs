//! What bears on what can be known of a death.

use std::fmt;
use std::process::{Command, Stdio};

use crate::Skip;

/// Whether the supervisor can read the kernel log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelLog {
    /// As root can.
    Readable,
    /// The supervisor lacks CAP_SYSLOG, and `kernel.dmesg_restrict` is 1: as in most containers.
    Unreadable,
}

impl KernelLog {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Readable, Self::Unreadable];

    /// Words before the command line of a supervisor for which it is so.
    ///
    /// # Errors
    /// Where this machine cannot make it so.
    pub fn prefix(self) -> Result<Vec<String>, Skip> {
        let without = ["setpriv", "--bounding-set", "-syslog", "--"];
        let prefix: &[&str] = match self {
            Self::Readable => &[],
            Self::Unreadable => &without,
        };
        let readable = can_read_kernel_log(prefix)?;
        if readable != (self == Self::Readable) {
            return Err(Skip(format!("the kernel log cannot be made {self} (kernel.dmesg_restrict?)")));
        }
        Ok(prefix.iter().map(ToString::to_string).collect())
    }
}

/// Through either door: /dev/kmsg, and syslog(2), by which `dmesg --syslog` reads.
fn can_read_kernel_log(prefix: &[&str]) -> Result<bool, Skip> {
    let script = "dd if=/dev/kmsg of=/dev/null bs=8192 count=1 iflag=nonblock || dmesg --syslog";
    let words = [prefix, &["sh", "-c", script]].concat();
    let quiet = || Stdio::null();
    let ended = Command::new(words[0]).args(&words[1..]).stdout(quiet()).stderr(quiet()).status();
    ended.map(|status| status.success()).map_err(|error| Skip::because(words[0], error))
}

/// Who else is in the prover's cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Company {
    /// Nobody but its supervisor and its keeper.
    Exclusive,
    /// A neighbour.
    Shared,
    /// Nobody: the prover moved itself into a cgroup of its own after its start.
    Moved,
}

impl Company {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Exclusive, Self::Shared, Self::Moved];
}

impl fmt::Display for KernelLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Readable => "readable",
            Self::Unreadable => "unreadable",
        })
    }
}

impl fmt::Display for Company {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
            Self::Moved => "moved",
        })
    }
}
