//! Reads Linux. Every reader takes its root; every field can be absent or unreadable.
//!
//! First stage of the flow: **reader** → `model` → `diagnosis` → record, metrics, screen, JSON. A reader answers with
//! [`sexton_model::reading::Reading`]s and concludes nothing. It never reads `cmdline`, `environ`, `maps` or `smaps*`
//! of another process: these take that process' memory lock, and behind a hung driver the reader would hang with it.
//!
//! | module | reads |
//! |---|---|
//! | [`files`] | bytes: from this host, from a tree like it, or from what was recorded |
//! | [`cgroup`] | the memory controller: v1, v2 and hybrid, own cgroup and those above it |
//! | [`memory`] | memory of the whole host, and the settings for its shortage |
//! | [`numa`] | memory of NUMA nodes, and which of them a process may use |
//! | [`process_limits`] | resource limits of a process that bound its memory |
//! | [`pressure`] | pressure stall information |
//! | [`mounts`] | what is mounted where |
//! | [`kernel_log`] | `/dev/kmsg` and `syslog(2)`: OOM kills, faults, GPU errors |
//! | [`tracefs`] | who sent a SIGKILL |
//! | [`userspace_killers`] | marks of systemd-oomd |
//! | [`task`] | one process with its threads; children and descendants |

pub mod cgroup;
pub mod files;
mod flat_keyed;
pub mod kernel_log;
pub mod memory;
pub mod mounts;
pub mod numa;
pub mod pressure;
pub mod process_limits;
pub mod task;
pub mod tracefs;
pub mod userspace_killers;
