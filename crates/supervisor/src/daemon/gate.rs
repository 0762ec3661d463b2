//! The start gate: reads what there is, and asks [`sexton_diagnosis::gate`] whether the next run fits.
//!
//! ```text
//! let gate = Gate::system();
//! let report = gate.check(need, reserve, &gate.own_lines(), releasing);   // status.gate
//! ```

use sexton_diagnosis::headroom::{Circumstances, headroom};
use sexton_diagnosis::{gate, need};
use sexton_host::cgroup::{self, MemoryHierarchy};
use sexton_host::files::Files;
use sexton_host::task::Tasks;
use sexton_host::{memory, numa, process_limits};
use sexton_model::cgroup::Limit;
use sexton_model::drain::{DrainPhase, DrainReport};
use sexton_model::gate::{GateReport, Need, NeedSource, Observation};
use sexton_model::headroom::Headroom;
use sexton_model::reading::Reading;
use sexton_model::run::CgroupPath;

/// Reads for the gate.
#[derive(Debug, Clone)]
pub struct Gate {
    files: Files,
    /// Limit of a cgroup that is going to be made for the run, below the one whose lines are given.
    pub own_cgroup_limit: Option<u64>,
    /// Address space that the run is going to be allowed (RLIMIT_AS), where that is configured; else it inherits ours.
    pub address_space: Option<Limit>,
    /// NUMA nodes that the run is going to be bound to, where that is configured.
    pub nodes: Option<Vec<u32>>,
}

impl Gate {
    /// Reads this host.
    pub fn system() -> Self {
        Self { files: Files::system(), own_cgroup_limit: None, address_space: None, nodes: None }
    }

    /// The cgroups that a child of ours is born into: for a run that is given no cgroup of its own, or one below ours.
    pub fn own_lines(&self) -> Vec<CgroupPath> {
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        Tasks::system().cgroups(pid).into_value().unwrap_or_default()
    }

    /// Whether a run that needs so much may start where `lines` (of a `/proc/PID/cgroup`) say; `reserve` bytes are to stay
    /// free. `releasing`: the last report of the drain of the run before.
    pub fn check(
        &self,
        need: Option<Need>,
        reserve: u64,
        lines: &[CgroupPath],
        releasing: Option<&DrainReport>,
    ) -> GateReport {
        gate::decide(need, reserve, self.headroom(lines, releasing), releasing)
    }

    /// The largest of `steps` (budgets in bytes) that is not below `floor` and fits now, with what the prover takes besides
    /// its budget and `reserve` left free.
    pub fn largest_that_fits(
        &self,
        steps: &[u64],
        floor: u64,
        overhead: u64,
        reserve: u64,
        lines: &[CgroupPath],
    ) -> Option<u64> {
        gate::largest_that_fits(steps, floor, overhead, reserve, &self.headroom(lines, None))
    }

    /// What a new process may take there.
    pub fn headroom(&self, lines: &[CgroupPath], releasing: Option<&DrainReport>) -> Headroom {
        let hierarchy = match lines {
            // Not read: that is no proof that there is no memory controller.
            [] => Reading::unreadable(
                sexton_model::reading::ObstacleKind::Failed,
                "/proc/self/cgroup: the cgroup of the new process is not known",
            ),
            lines => cgroup::locate(&self.files, lines),
        };
        let folder = hierarchy.value().map(MemoryHierarchy::own_folder);
        let mut nodes = numa::read(&self.files, folder);
        if let Some(bound) = &self.nodes {
            nodes.allowed = Reading::Value(bound.clone());
        }
        let mut process = process_limits::read(&self.files, None);
        if let Some(limit) = self.address_space {
            process.address_space = Reading::Value(limit);
        }
        let being_released = releasing.filter(|drain| drain.phase != DrainPhase::Released);
        headroom(&Circumstances {
            meminfo: &memory::meminfo(&self.files),
            overcommit: &memory::policy(&self.files).overcommit,
            cgroup: &hierarchy.map(|hierarchy| hierarchy.read(&self.files)),
            process: &process,
            nodes: &nodes,
            own_cgroup_limit: self.own_cgroup_limit,
            being_released_bytes: being_released
                .and_then(|drain| drain.held_bytes.value().copied())
                .unwrap_or(0),
        })
    }
}

/// What the next run needs: as configured, else as learned, else at least its budget. None: nothing is known.
pub fn need_of(
    configured: Option<u64>,
    observations: &[Observation],
    command: &[String],
    budget: Option<u64>,
) -> Option<Need> {
    let configured = configured.map(|bytes| Need { bytes, source: NeedSource::Configured });
    let learned = || need::learned(observations, command, budget);
    let at_least = || budget.map(|bytes| Need { bytes, source: NeedSource::Budget });
    configured.or_else(learned).or_else(at_least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_headroom_and_something_binds() {
        let gate = Gate::system();
        let lines = gate.own_lines();
        let headroom = gate.headroom(&lines, None);
        assert!(headroom.binding_limit.is_some(), "{headroom:?}");
        let report = gate.check(Some(Need { bytes: 1, source: NeedSource::Configured }), 0, &lines, None);
        assert!(report.open, "{}", report.summary);
        let report =
            gate.check(Some(Need { bytes: u64::MAX, source: NeedSource::Configured }), 1, &lines, None);
        assert!(!report.open && report.short_by_bytes > 0, "{}", report.summary);
    }

    #[test]
    fn a_limit_that_is_going_to_be_set_binds() {
        let gate = Gate { own_cgroup_limit: Some(4096), ..Gate::system() };
        assert_eq!(gate.headroom(&gate.own_lines(), None).bytes, Reading::Value(4096));
        let gate = Gate { address_space: Some(Limit::Bytes(8192)), ..Gate::system() };
        assert_eq!(gate.headroom(&gate.own_lines(), None).bytes, Reading::Value(8192));
        assert_eq!(gate.largest_that_fits(&[9000, 4000, 100], 0, 10, 10, &gate.own_lines()), Some(4000));
    }

    #[test]
    fn the_cgroup_of_the_new_process_that_is_not_known_is_said() {
        let headroom = Gate::system().headroom(&[], None);
        assert!(
            headroom.obstacles.iter().any(|obstacle| obstacle.detail.contains("not known")),
            "{headroom:?}"
        );
    }

    #[test]
    fn a_need_as_configured_then_learned_then_the_budget() {
        let source = |need: Option<Need>| need.map(|need| need.source);
        assert_eq!(source(need_of(Some(1), &[], &[], Some(2))), Some(NeedSource::Configured));
        assert_eq!(source(need_of(None, &[], &[], Some(2))), Some(NeedSource::Budget));
        assert_eq!(source(need_of(None, &[], &[], None)), None);
    }
}
