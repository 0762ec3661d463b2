//! How far is a drain, does it move, and how long will it take?
//!
//! ```text
//! Start   what the run held, and what must come back ┐
//! Sample  one look: process, charge, host memory     ├─► Tracker ─► model::drain::DrainReport
//! history how long earlier drains on this host took  ┘
//! ```
//!
//! A drain has long silences: while a driver takes down 400 GiB of pinned memory, half a minute passes in which neither
//! charge nor free memory moves. So anything that moves counts as progress ([`Settings::stall_after`] says after how long a
//! silence it is a stall): threads, their kernel stacks, `Shmem`, the charge, `MemAvailable`. And the end is not the
//! reap: drivers close some mappings after it, in threads of the kernel.

mod estimate;
mod measure;
mod progress;
mod words;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sexton_model::Timestamp;
use sexton_model::drain::{DrainMeasure, DrainPhase, DrainReport, Hold, Holder, PastDrain, StuckThread};
use sexton_model::process_state::{LiveThread, ProcessState, ThreadFate, WaitPlace};
use sexton_model::reading::{ObstacleKind, Reading};

use estimate::Rate;
use measure::Measured;
use progress::Progress;

pub use estimate::{HISTORY, remember};

/// What an operator can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// A silence longer than this is a stall.
    pub stall_after: Duration,
    /// Bytes that are meant to outlive the run: a pool in memfds that its keeper holds. They are not waited for.
    pub kept_bytes: u64,
}

impl Default for Settings {
    /// 60 s: on the hosts that were measured, silences reach 4.3 s at 64 GiB and grow in proportion, to 30 s at 400 GiB;
    /// twice that leaves room for slower ones.
    fn default() -> Self {
        Self { stall_after: Duration::from_secs(60), kept_bytes: 0 }
    }
}

/// Memory at one moment, as a run moves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Charge of the run's cgroups without page cache
    /// ([`charge_bytes`](sexton_model::cgroup::CgroupLevel::charge_bytes)), bytes.
    pub charge_bytes: Reading<u64>,
    /// `Shmem` of the host, bytes.
    pub shmem_bytes: Reading<u64>,
    /// `MemAvailable` of the host, bytes.
    pub available_bytes: Reading<u64>,
}

/// What is known of a run's memory when its drain begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Before its first instruction.
    pub baseline: Figures,
    /// Whether nobody but the run was in its cgroups.
    pub exclusive: Reading<bool>,
    /// At the last look while it lived.
    pub alive: Figures,
    /// Anonymous and shared memory that it mapped then, bytes. `null`: not read.
    pub resident_bytes: Option<u64>,
}

/// One look at a drain.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// When, by the calendar.
    pub at: Timestamp,
    /// When, since the drain began, by a clock that only goes forward.
    pub elapsed: Duration,
    /// The process. [`ProcessState::Gone`]: reaped.
    pub process: ProcessState,
    /// Its threads that are not dead.
    pub threads_alive: Reading<u64>,
    /// CPU time of all its threads, seconds: moves while a core dump is written.
    pub cpu_seconds: Option<f64>,
    /// Memory.
    pub memory: Figures,
    /// Anything that the engine counts up while it ends its work: partitions done, jobs completed.
    pub work_done: Option<u64>,
}

/// Follows one drain. Samples are fed in the order of their time.
#[derive(Debug, Clone)]
pub struct Tracker {
    pid: i32,
    settings: Settings,
    start: Start,
    history: Vec<PastDrain>,
    phase: DrainPhase,
    since: Timestamp,
    /// Somebody asked the process to exit.
    asked_to_exit: bool,
    began_to_die: Option<Duration>,
    gone_at: Option<Duration>,
    released_at: Option<Duration>,
    progress: Progress,
    measure: DrainMeasure,
    rate: Rate,
    held_at_start: u64,
    holders: Vec<Holder>,
}

impl Tracker {
    /// Begins at `at` with process `pid`. `history`: earlier drains on this host, the latest last.
    pub fn new(pid: i32, settings: Settings, start: Start, history: Vec<PastDrain>, at: Timestamp) -> Self {
        Self {
            pid,
            settings,
            start,
            history,
            phase: DrainPhase::Quiescing,
            since: at,
            asked_to_exit: false,
            began_to_die: None,
            gone_at: None,
            released_at: None,
            progress: Progress::default(),
            measure: DrainMeasure::None,
            rate: Rate::default(),
            held_at_start: 0,
            holders: Vec::new(),
        }
    }

    /// The process was asked to exit, or killed: from the next sample on it is not quiescing any more.
    pub fn asked_to_exit(&mut self) {
        self.asked_to_exit = true;
    }

    /// Who was found to hold memory that outlives the process.
    pub fn found_holders(&mut self, holders: Vec<Holder>) {
        self.holders = holders;
    }

    /// Takes one look into account.
    pub fn feed(&mut self, sample: &Sample) -> DrainReport {
        let measured = Measured::of(&self.start, &sample.memory, self.settings.kept_bytes);
        if let Reading::Value(held) = measured.held {
            self.held_at_start = self.held_at_start.max(held);
            if self.measure != measured.by {
                (self.measure, self.rate) = (measured.by, Rate::default());
            }
            self.rate.note(sample.elapsed, held);
        }
        let tolerance = measured.tolerance(self.held_at_start);
        self.note_death(sample);
        let phase = self.phase_of(sample, &measured, tolerance);
        if phase != self.phase {
            (self.phase, self.since) = (phase, sample.at);
        }
        if phase == DrainPhase::Released {
            self.released_at.get_or_insert(sample.elapsed);
        }
        let silence = self.progress.note(sample, (phase, self.began_to_die.is_some()), self.held_at_start);
        let may_stall = phase != DrainPhase::Released && self.is_ending(&sample.process);
        let report = DrainReport {
            pid: self.pid,
            phase,
            since: self.since,
            elapsed_seconds: sample.elapsed.as_secs_f64(),
            stalled: may_stall && silence >= self.settings.stall_after,
            seconds_without_progress: silence.as_secs_f64(),
            held_by: self.held_by(sample, phase),
            unreaped_by: match &sample.process {
                ProcessState::Unreaped { parent, .. } => parent.clone(),
                _ => None,
            },
            stuck_in_driver: stuck_in_driver(&sample.process),
            core_dumping: matches!(sample.process, ProcessState::DumpingCore { .. }),
            threads_alive: sample.threads_alive.clone(),
            measure: measured.by,
            held_at_start_bytes: measured.held.clone().map(|_| self.held_at_start),
            held_bytes: measured.held,
            baseline_bytes: measured.baseline,
            tolerance_bytes: tolerance,
            rate_bytes_per_second: self.rate.bytes_per_second(),
            eta_seconds: None,
            eta_reason: String::new(),
            summary: String::new(),
            action: None,
        };
        self.complete(report, sample)
    }

    /// The drain, once it is over, for the history. None before, and where what it gave back is not known.
    pub fn past(&self, at: Timestamp) -> Option<PastDrain> {
        let (began, gone, released) = (self.began_to_die?, self.gone_at?, self.released_at?);
        let seconds = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64();
        (self.held_at_start > 0).then(|| PastDrain {
            at,
            bytes: self.held_at_start,
            exiting_seconds: seconds(began, gone),
            releasing_seconds: seconds(gone, released),
        })
    }

    /// Whether a silence says something: not while the process runs, whose work the kernel does not see.
    fn is_ending(&self, process: &ProcessState) -> bool {
        match process {
            ProcessState::Running { .. } => false,
            ProcessState::Unknown { .. } => self.began_to_die.is_some(),
            _ => true,
        }
    }

    fn note_death(&mut self, sample: &Sample) {
        if is_dying(&sample.process) {
            self.began_to_die.get_or_insert(sample.elapsed);
        }
        if sample.process == ProcessState::Gone {
            self.gone_at.get_or_insert(sample.elapsed);
        }
    }

    /// Phases go forward only: what is gone does not come back, and a process that cannot be read is where it was.
    fn phase_of(&self, sample: &Sample, measured: &Measured, tolerance: u64) -> DrainPhase {
        let found = match &sample.process {
            ProcessState::Gone => match measured.held {
                Reading::Value(held) if held > tolerance => DrainPhase::Releasing,
                _ => DrainPhase::Released,
            },
            ProcessState::Unknown { .. } => self.phase,
            ProcessState::Running { .. } | ProcessState::Stopped | ProcessState::StoppedByTracer { .. } => {
                if self.asked_to_exit {
                    DrainPhase::Exiting
                } else {
                    DrainPhase::Quiescing
                }
            }
            ProcessState::DumpingCore { .. }
            | ProcessState::KilledButStuck { .. }
            | ProcessState::Exiting { .. }
            | ProcessState::HeldByTracer { .. }
            | ProcessState::Unreaped { .. } => DrainPhase::Exiting,
        };
        found.max(self.phase)
    }

    fn held_by(&self, sample: &Sample, phase: DrainPhase) -> Vec<Holder> {
        let tracer = match &sample.process {
            ProcessState::HeldByTracer { tracer, .. } | ProcessState::StoppedByTracer { tracer, .. } => {
                tracer.as_ref()
            }
            _ => None,
        };
        let tracer = tracer.map(|tracer| Holder {
            pid: tracer.pid,
            name: tracer.comm.value().cloned().unwrap_or_default(),
            what: Hold::Traces,
            object: None,
            bytes: None,
        });
        let others = if phase == DrainPhase::Released { &[][..] } else { &self.holders };
        tracer.into_iter().chain(others.iter().cloned()).collect()
    }

    /// What follows from the rest of a report.
    fn complete(&self, mut report: DrainReport, sample: &Sample) -> DrainReport {
        (report.eta_seconds, report.eta_reason) = estimate::eta(&estimate::Known {
            report: &report,
            history: &self.history,
            held_at_start: self.held_at_start,
            dying_for: self.began_to_die.map(|began| sample.elapsed.saturating_sub(began)),
            gone: self.gone_at.is_some(),
        });
        (report.summary, report.action) = words::summary(&report, &sample.process);
        report
    }
}

/// Whether a process is on its way out, by itself or by force; not so a leader that left its threads to run on.
fn is_dying(process: &ProcessState) -> bool {
    match process {
        ProcessState::Running { .. }
        | ProcessState::Stopped
        | ProcessState::StoppedByTracer { .. }
        | ProcessState::Unknown { .. } => false,
        ProcessState::Exiting { threads, .. } => {
            threads.is_empty() || threads.iter().any(|thread| thread.fate != ThreadFate::RunsOn)
        }
        ProcessState::DumpingCore { .. }
        | ProcessState::KilledButStuck { .. }
        | ProcessState::HeldByTracer { .. }
        | ProcessState::Unreaped { .. }
        | ProcessState::Gone => true,
    }
}

/// Threads that are not dead, where the state of their process names them.
fn threads_of(process: &ProcessState) -> &[LiveThread] {
    match process {
        ProcessState::Running { blocked: threads }
        | ProcessState::KilledButStuck { threads, .. }
        | ProcessState::Exiting { threads, .. }
        | ProcessState::HeldByTracer { stopped: threads, .. } => threads,
        _ => &[],
    }
}

fn stuck_in_driver(process: &ProcessState) -> Option<StuckThread> {
    threads_of(process).iter().find_map(|LiveThread { thread, place, .. }| {
        let WaitPlace::GpuDriver { module } = place else { return None };
        Some(StuckThread {
            tid: thread.tid,
            name: thread.comm.clone(),
            module: module.clone(),
            wchan: thread.wchan.clone(),
            functions: functions(thread.kernel_stack.value()),
        })
    })
}

/// Names of functions without their offsets, which differ from look to look inside one loop.
fn functions(stack: Option<&Vec<String>>) -> Vec<String> {
    let name = |frame: &String| frame.split(['+', ' ']).next().unwrap_or(frame).to_owned();
    stack.map(|frames| frames.iter().map(name).collect()).unwrap_or_default()
}

fn unknown<T>(why: &str) -> Reading<T> {
    Reading::unreadable(ObstacleKind::Failed, why)
}

/// What a measure is called in a sentence; empty for the one that leaves no doubt.
fn caveat(measure: DrainMeasure) -> &'static str {
    match measure {
        DrainMeasure::Charge => "",
        DrainMeasure::SharedCharge => " (by a cgroup that others share)",
        DrainMeasure::HostAvailable => " (by the host's MemAvailable: no charge can be read)",
        DrainMeasure::None => " (nothing tells what it held)",
    }
}
