//! A run as the supervisor knows it: in a cgroup of its own, tracked from its start.

use std::time::Duration;

use sexton_diagnosis::drain::Settings;
use sexton_model::drain::{DrainPhase, DrainReport};
use sexton_supervisor::daemon::drain::{DrainWatch, Drained};
use sexton_supervisor::daemon::footprint::Footprint;
use sexton_supervisor::daemon::tracking::Tracker;
use sexton_tests::{DEADLINE, Fixture, Skip, V1Cgroup, read_process, wait_for};

pub(crate) const MIB: u64 = 1 << 20;

/// A silence that a test can wait for.
pub(crate) const IMPATIENT: Settings = Settings { stall_after: Duration::from_millis(400), kept_bytes: 0 };

/// A fixture under observation. Dropped, it ends before its cgroup.
pub(crate) struct Run {
    pub(crate) fixture: Fixture,
    pub(crate) tracker: Tracker,
    pub(crate) footprint: Footprint,
    start_ticks: u64,
    pub(crate) cgroup: V1Cgroup,
}

impl Run {
    /// Starts a fixture and moves it into a memory cgroup of its own. What it takes from now on is charged there.
    ///
    /// # Errors
    /// [`Skip`] where there is no v1 memory controller.
    #[track_caller]
    pub(crate) fn start(arguments: &[&str]) -> Result<Self, Skip> {
        let cgroup = V1Cgroup::new("memory")?;
        let footprint = Footprint::at_spawn();
        let fixture = Fixture::spawn(arguments);
        cgroup.add_process(fixture.pid());
        let start_ticks = read_process(fixture.pid()).start_ticks;
        let mut tracker = Tracker::new(fixture.pid(), vec![own_pid()]);
        tracker.look();
        assert_eq!(tracker.tracked.stays.len(), 1);
        Ok(Self { fixture, tracker, footprint, start_ticks, cgroup })
    }

    /// As [`Self::start`], with `mib` MiB of its own memory, looked at.
    #[track_caller]
    pub(crate) fn holding(mib: u64) -> Result<Self, Skip> {
        let mut run = Self::start(&["hold-memory", "1"])?;
        run.fixture.ask(&format!("take {mib}"));
        run.look();
        Ok(run)
    }

    /// Looks as the supervisor does once a second.
    pub(crate) fn look(&mut self) {
        self.footprint.look(self.fixture.pid(), &self.tracker.tracked.stays);
    }

    pub(crate) fn watch(&self, settings: Settings) -> DrainWatch {
        let drained = Drained {
            pid: self.fixture.pid(),
            start_ticks: self.start_ticks,
            stays: &self.tracker.tracked.stays,
            footprint: &self.footprint,
            own_pids: vec![own_pid()],
        };
        DrainWatch::begin(drained, settings, Vec::new())
    }
}

pub(crate) fn own_pid() -> i32 {
    i32::try_from(std::process::id()).expect("pids are below 2^22")
}

#[track_caller]
pub(crate) fn held(report: &DrainReport) -> u64 {
    *report.held_bytes.value().unwrap_or_else(|| panic!("{:?}", report.held_bytes))
}

/// Looks until a report is as wanted.
#[track_caller]
pub(crate) fn wait_for_report(
    watch: &mut DrainWatch,
    what: &str,
    wanted: impl Fn(&DrainReport) -> bool,
) -> DrainReport {
    wait_for(DEADLINE, what, || Some(watch.sample()).filter(&wanted))
}

#[track_caller]
pub(crate) fn wait_for_release(watch: &mut DrainWatch) -> DrainReport {
    wait_for_report(watch, "the memory is back", |report| report.phase == DrainPhase::Released)
}
