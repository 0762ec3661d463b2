//! Resource limits of a process that bound its memory.

use serde::{Deserialize, Serialize};

use crate::cgroup::Limit;
use crate::reading::Reading;

/// Soft limits, as `/proc/PID/limits` shows them; a child inherits them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// RLIMIT_AS: the whole address space.
    pub address_space: Reading<Limit>,
    /// RLIMIT_DATA: since Linux 4.7 all private writable mappings.
    pub data: Reading<Limit>,
}
