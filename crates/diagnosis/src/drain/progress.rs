//! Does anything move?

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use sexton_model::drain::DrainPhase;
use sexton_model::process_state::{ProcessState, ThreadFate};

use super::{Sample, functions, threads_of};

const MIB: u64 = 1 << 20;

/// The charge moves by stocks of 64 pages a CPU without anybody's doing; page cache and usage are not read at one
/// instant.
const CHARGE_STEP: u64 = MIB;

/// Stacks that are remembered in one silence. A thread that has shown so many different ones moves.
const STACKS_MAX: usize = 1024;

/// CPU time that counts as work on a core dump, seconds: some clock ticks.
const CPU_STEP: f64 = 0.05;

/// How much must come back, at best since the last progress, before it counts: figures of the host are moved by others
/// by some MiB all the time. At 1/256 of what was held, once in a stall time of a minute, the rest would take four hours:
/// what is slower is a stall to whoever waits.
fn host_step(held_at_start: u64) -> u64 {
    (held_at_start / 256).clamp(16 * MIB, 256 * MIB)
}

/// What has been seen to move, and when it last did.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    stage: Option<(DrainPhase, bool)>,
    at: Duration,
    /// Lowest so far in this stage.
    threads: Option<u64>,
    charge: Option<u64>,
    shmem: Option<u64>,
    /// `u64::MAX − MemAvailable`, so that here too less is better.
    unavailable: Option<u64>,
    /// Hashes of the stacks seen since the last other progress.
    stacks: BTreeSet<u64>,
    cpu_seconds: f64,
    work_done: Option<u64>,
}

impl Progress {
    /// How long nothing has moved. `stage`: the phase, and whether the process is dying; a new one is progress, and begins
    /// with figures of its own, since a prover that still works takes memory too.
    pub(super) fn note(
        &mut self,
        sample: &Sample,
        stage: (DrainPhase, bool),
        held_at_start: u64,
    ) -> Duration {
        if self.stage != Some(stage) {
            *self = Self { stage: Some(stage), at: sample.elapsed, ..Self::default() };
        }
        let step = host_step(held_at_start);
        let memory = &sample.memory;
        let unavailable = memory.available_bytes.value().map(|available| u64::MAX - available);
        // Every one is looked at, so that each keeps its own best.
        let moved = [
            lower(&mut self.threads, sample.threads_alive.value().copied(), 1),
            lower(&mut self.charge, memory.charge_bytes.value().copied(), CHARGE_STEP),
            lower(&mut self.shmem, memory.shmem_bytes.value().copied(), step),
            lower(&mut self.unavailable, unavailable, step),
            self.dumped(sample),
            self.worked(sample),
        ];
        if moved.contains(&true) {
            self.stacks.clear();
            self.at = sample.elapsed;
        }
        if self.new_stack(&sample.process) {
            self.at = sample.elapsed;
        }
        sample.elapsed.saturating_sub(self.at)
    }

    /// A stack that was not seen in this silence. One that comes and goes with another is a loop, which may go on for ever:
    /// a driver that asks a lost GPU again and again. Threads that nothing told to end say nothing about the end.
    fn new_stack(&mut self, process: &ProcessState) -> bool {
        let mut hasher = DefaultHasher::new();
        let mut any = false;
        for thread in threads_of(process).iter().filter(|thread| thread.fate != ThreadFate::RunsOn) {
            let stack = functions(thread.thread.kernel_stack.value());
            let wchan = thread.thread.wchan.value();
            if stack.is_empty() && wchan.is_none() {
                continue;
            }
            any = true;
            (thread.thread.tid, stack, wchan).hash(&mut hasher);
        }
        any && (self.stacks.len() >= STACKS_MAX || self.stacks.insert(hasher.finish()))
    }

    /// A dump shows in nothing else that may be read: it is copied by the dying process, at the cost of its CPU time.
    fn dumped(&mut self, sample: &Sample) -> bool {
        let (ProcessState::DumpingCore { .. }, Some(cpu)) = (&sample.process, sample.cpu_seconds) else {
            return false;
        };
        let moved = cpu >= self.cpu_seconds + CPU_STEP;
        if moved {
            self.cpu_seconds = cpu;
        }
        moved
    }

    fn worked(&mut self, sample: &Sample) -> bool {
        let before = std::mem::replace(&mut self.work_done, sample.work_done);
        matches!((before, sample.work_done), (Some(before), Some(now)) if before != now)
    }
}

/// Whether `now` is at least `step` below `best`, which it then is. The first value is no progress.
fn lower(best: &mut Option<u64>, now: Option<u64>, step: u64) -> bool {
    match (*best, now) {
        (_, None) => false,
        (None, Some(now)) => {
            *best = Some(now);
            false
        }
        (Some(before), Some(now)) => {
            let moved = now.saturating_add(step) <= before;
            if moved {
                *best = Some(now);
            }
            moved
        }
    }
}
