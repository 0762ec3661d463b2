//! Marks of a killer in user space.

use serde::{Deserialize, Serialize};

use crate::reading::Reading;

/// What systemd-oomd wrote to a cgroup v2 folder. The counters only grow, as long as the folder lives.
///
/// Absent: it never acted there, or another killer did. Source: systemd, `src/oom/oomd-util.c`, systemd-oomd.service(8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomdMarks {
    /// `user.oomd_ooms`: how often it decided to kill here.
    pub ooms: Reading<u64>,
    /// `user.oomd_kill`: how many processes it killed here.
    pub kills: Reading<u64>,
}
