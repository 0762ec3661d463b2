//! What a run takes while it lives: what must come back when it has ended, and what the next one will need.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sexton_diagnosis::drain::{Figures, Start};
use sexton_host::cgroup::{self, MemoryHierarchy};
use sexton_host::files::Files;
use sexton_host::memory;
use sexton_host::task::Tasks;
use sexton_model::gate::PeakMeasure;
use sexton_model::reading::{ObstacleKind, Reading};
use sexton_model::task::SharedFile;

use super::tracking::Stay;

/// Of how many looks one lists processes and descriptors: a listing for each thread, a link for each descriptor.
const LISTING_EVERY: u32 = 10;

/// Memory of one run, followed from its start. It is kept in a file beside the other things that are tracked, so that an
/// adopted run has it too.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Footprint {
    /// Of the host, before the run's first instruction; `null` where nobody looked then. The charge of its cgroups then is
    /// in [`Stay::baseline`].
    baseline: Option<HostFigures>,
    /// At the last look while it lived.
    alive: Figures,
    /// Anonymous and shared memory of the run's processes at that look.
    resident_bytes: Option<u64>,
    /// Shared-memory files that it had open.
    shared: Vec<SharedFile>,
    /// Most that was charged above the baseline in cgroups of its own.
    peak_charge_bytes: Option<u64>,
    /// Most that was resident.
    peak_resident_bytes: Option<u64>,
    #[serde(skip)]
    looks: u32,
    /// Main process and descendants, as last listed.
    #[serde(skip)]
    processes: Vec<i32>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct HostFigures {
    shmem_bytes: Reading<u64>,
    available_bytes: Reading<u64>,
}

impl HostFigures {
    fn read(files: &Files) -> Self {
        let meminfo = memory::meminfo(files);
        Self {
            shmem_bytes: meminfo.clone().and_then(|meminfo| meminfo.shmem_bytes),
            available_bytes: meminfo.and_then(|meminfo| meminfo.available_bytes),
        }
    }
}

impl Footprint {
    /// Before the run's first instruction.
    pub fn at_spawn() -> Self {
        let now = HostFigures::read(&Files::system());
        Self { baseline: Some(now.clone()), ..Self::beginning(now) }
    }

    /// Of a run that has lived for a while: what was there before it is not known, only what it takes.
    pub fn midway() -> Self {
        Self::beginning(HostFigures::read(&Files::system()))
    }

    fn beginning(now: HostFigures) -> Self {
        let alive = Figures {
            charge_bytes: Reading::Absent,
            shmem_bytes: now.shmem_bytes,
            available_bytes: now.available_bytes,
        };
        Self {
            baseline: None,
            alive,
            resident_bytes: None,
            shared: Vec::new(),
            peak_charge_bytes: None,
            peak_resident_bytes: None,
            looks: 0,
            processes: Vec::new(),
        }
    }

    /// Looks at the living run; to be called about once a second, with the stays that are tracked. A process that has begun
    /// to end changes nothing: what it held is what counts.
    pub fn look(&mut self, pid: i32, stays: &[Stay]) {
        let tasks = Tasks::system();
        let Reading::Value(_) = tasks.resident(pid) else { return };
        if self.looks.is_multiple_of(LISTING_EVERY) {
            self.processes = tasks.descendants(pid).into_value().unwrap_or_default();
            self.processes.insert(0, pid);
            if let Reading::Value(files) = tasks.shared_files(pid) {
                self.shared = files;
            }
        }
        self.looks = self.looks.wrapping_add(1);
        // Memory that several of them map is in the figures of each: the largest share counts, once.
        let (mut anonymous, mut shared) = (0_u64, 0_u64);
        for memory in self.processes.iter().filter_map(|pid| tasks.resident(*pid).into_value()) {
            let of_files = memory.file_bytes.unwrap_or(0);
            let own = memory.anonymous_bytes.unwrap_or(memory.total_bytes.saturating_sub(of_files));
            anonymous = anonymous.saturating_add(own);
            shared = shared.max(memory.shared_bytes.unwrap_or(0));
        }
        let resident = anonymous.saturating_add(shared);
        self.resident_bytes = Some(resident);
        self.peak_resident_bytes = self.peak_resident_bytes.max(Some(resident));
        let charges = Charges::of(stays);
        self.alive = charges.figures();
        if self.baseline.is_some()
            && charges.exclusive == Reading::Value(true)
            && let (Reading::Value(charge), Reading::Value(baseline)) =
                (&self.alive.charge_bytes, charges.baseline())
        {
            self.peak_charge_bytes = self.peak_charge_bytes.max(Some(charge.saturating_sub(baseline)));
        }
    }

    /// The most that the run took, and how that is known: its charge where its cgroups are its own, else what it mapped,
    /// else `max_rss_bytes`, the usage that its parent was told.
    pub fn peak(&self, max_rss_bytes: Option<u64>) -> Option<(u64, PeakMeasure)> {
        let charge = self.peak_charge_bytes.map(|bytes| (bytes, PeakMeasure::Charge));
        let resident = self.peak_resident_bytes.map(|bytes| (bytes, PeakMeasure::Resident));
        charge.or(resident).or(max_rss_bytes.map(|bytes| (bytes, PeakMeasure::MaxRss)))
    }

    /// Shared-memory files that it had open.
    pub fn shared(&self) -> &[SharedFile] {
        &self.shared
    }

    pub(super) fn start(&self, charges: &Charges) -> Start {
        // A baseline from the middle of its life has its own memory in it.
        let baseline = match &self.baseline {
            Some(host) => Figures {
                charge_bytes: charges.baseline(),
                shmem_bytes: host.shmem_bytes.clone(),
                available_bytes: host.available_bytes.clone(),
            },
            None => Figures {
                charge_bytes: Reading::Absent,
                shmem_bytes: Reading::Absent,
                available_bytes: Reading::Absent,
            },
        };
        let exclusive = match &self.baseline {
            Some(_) => charges.exclusive.clone(),
            None => Reading::Absent,
        };
        Start { baseline, exclusive, alive: self.alive.clone(), resident_bytes: self.resident_bytes }
    }
}

/// The cgroups that a run's memory is charged to. What it took in one stays there when it moves to another.
#[derive(Debug)]
pub(super) struct Charges {
    cgroups: Vec<Charged>,
    /// Whether nobody but the run was in any of them.
    pub(super) exclusive: Reading<bool>,
}

#[derive(Debug)]
struct Charged {
    hierarchy: MemoryHierarchy,
    baseline: Reading<u64>,
}

impl Charges {
    pub(super) fn of(stays: &[Stay]) -> Self {
        let files = Files::system();
        let mut cgroups: Vec<Charged> = Vec::new();
        let mut exclusive = Reading::Absent;
        for stay in stays {
            let own = stay.baseline.clone().and_then(|baseline| {
                baseline.levels.into_iter().next().map_or(Reading::Absent, Reading::Value)
            });
            exclusive = both(exclusive, own.clone().and_then(|own| own.exclusive));
            let Reading::Value(hierarchy) = cgroup::locate(&files, &stay.lines) else { continue };
            cgroups.push(Charged { hierarchy, baseline: own.and_then(|own| own.charge_bytes) });
        }
        // Usage counts what is below: of a cgroup and one inside of it the outer one tells all. Of two stays in one cgroup
        // the first one's baseline counts.
        let folders: Vec<PathBuf> =
            cgroups.iter().map(|charged| charged.hierarchy.own_folder().to_owned()).collect();
        let is_inside = |index: usize| {
            let folder = &folders[index];
            folders.iter().enumerate().any(|(other, outer)| {
                (other < index && outer == folder) || (outer != folder && folder.starts_with(outer))
            })
        };
        let inside: Vec<bool> = (0..folders.len()).map(is_inside).collect();
        let mut inside = inside.into_iter();
        cgroups.retain(|_| !inside.next().unwrap_or(false));
        Self { cgroups, exclusive }
    }

    fn baseline(&self) -> Reading<u64> {
        sum(self.cgroups.iter().map(|charged| charged.baseline.clone()))
    }

    /// The present figures.
    pub(super) fn figures(&self) -> Figures {
        let files = Files::system();
        let charge = |charged: &Charged| match charged.hierarchy.read(&files).own() {
            Some(own) => own.charge_bytes(),
            None => Reading::Absent,
        };
        let HostFigures { shmem_bytes, available_bytes } = HostFigures::read(&files);
        Figures { charge_bytes: sum(self.cgroups.iter().map(charge)), shmem_bytes, available_bytes }
    }

    /// Members of the cgroups, where these are the run's own: whoever else is in one has nothing to do with it.
    pub(super) fn members(&self) -> Vec<i32> {
        if self.exclusive != Reading::Value(true) {
            return Vec::new();
        }
        let files = Files::system();
        let members = |charged: &Charged| {
            let own = charged.hierarchy.read(&files).levels.into_iter().next();
            own.and_then(|own| own.members.into_value()).unwrap_or_default().pids
        };
        self.cgroups.iter().flat_map(members).collect()
    }
}

/// Of several cgroups one that is gone holds nothing; that the only one is gone is not the same as nothing held, since
/// the kernel charges what was left to its parent.
fn sum(readings: impl Iterator<Item = Reading<u64>>) -> Reading<u64> {
    let mut total = Reading::Absent;
    let mut gone = None;
    for reading in readings {
        match reading {
            Reading::Value(bytes) => {
                let before = total.value().copied().unwrap_or(0_u64);
                total = Reading::Value(before.saturating_add(bytes));
            }
            Reading::Absent => return Reading::Absent,
            Reading::Unreadable(obstacle) if obstacle.kind == ObstacleKind::Vanished => gone = Some(obstacle),
            Reading::Unreadable(obstacle) => return Reading::Unreadable(obstacle),
        }
    }
    match (total, gone) {
        (Reading::Absent, Some(obstacle)) => Reading::Unreadable(obstacle),
        (total, _) => total,
    }
}

/// Whether both are; what is not known leaves it open, and `Absent` is nothing said yet.
fn both(before: Reading<bool>, now: Reading<bool>) -> Reading<bool> {
    match (before, now) {
        (Reading::Value(false), _) | (_, Reading::Value(false)) => Reading::Value(false),
        (Reading::Unreadable(obstacle), _) | (_, Reading::Unreadable(obstacle)) => {
            Reading::Unreadable(obstacle)
        }
        (Reading::Absent, now) => now,
        (before, _) => before,
    }
}
