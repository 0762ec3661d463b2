//! A drain in one sentence.

use std::time::Duration;

use sexton_model::drain::{DrainPhase, DrainReport, Hold, Holder};
use sexton_model::process_state::{ProcessState, ThreadFate};
use sexton_model::reading::Reading;
use sexton_model::units::{Bytes, Human};

use super::{caveat, threads_of};
use crate::process_state::explain;

/// How many holders a sentence names; the others are counted.
const NAMED: usize = 3;

/// The sentence, and what to do, where waiting is not right.
pub(super) fn summary(report: &DrainReport, process: &ProcessState) -> (String, Option<String>) {
    let mut sentence = match report.phase {
        DrainPhase::Quiescing => format!("the prover ends its work{}", of_memory(report)),
        DrainPhase::Exiting => exiting(report, process),
        DrainPhase::Releasing => {
            format!(
                "the process is gone, {} are not back{}{}",
                held(report),
                caveat(report.measure),
                holders(report)
            )
        }
        DrainPhase::Released => {
            let after = Human(Duration::from_secs_f64(report.elapsed_seconds.max(0.0)));
            let what = match &report.held_at_start_bytes {
                Reading::Value(bytes) => format!("{} are back", Bytes(*bytes)),
                _ => "the process is gone".to_owned(),
            };
            format!("{what} after {after}{}", caveat(report.measure))
        }
    };
    if report.stalled {
        let silence = Human(Duration::from_secs_f64(report.seconds_without_progress.max(0.0)));
        sentence = format!("stalled, nothing has moved for {silence}: {sentence}");
    } else if let (Some(eta), false) = (report.eta_seconds, report.phase == DrainPhase::Released) {
        sentence = format!("{sentence}; {} left, {}", about(eta), report.eta_reason);
    }
    (sentence, action(report, process))
}

/// An estimate in whole seconds: it is not better than that.
fn about(eta: f64) -> String {
    match eta {
        eta if eta < 1.0 => "less than a second".to_owned(),
        eta if eta < 60.0 => format!("about {eta:.0} s"),
        eta => format!("about {}", Human(Duration::from_secs_f64(eta.min(1e9)))),
    }
}

fn exiting(report: &DrainReport, process: &ProcessState) -> String {
    // A sentence about the process needs no number: the report's reader knows which one it is.
    let state = match process {
        ProcessState::Running { .. } => "asked to exit, still running".to_owned(),
        ProcessState::Stopped => "asked to exit, stopped by a signal".to_owned(),
        ProcessState::StoppedByTracer { .. } => "asked to exit, stopped by a tracer".to_owned(),
        ProcessState::DumpingCore { .. } => "writing a core dump".to_owned(),
        ProcessState::KilledButStuck { .. } => "told to die, and no signal reaches its threads".to_owned(),
        ProcessState::HeldByTracer { .. } => "dead, and held by a tracer".to_owned(),
        ProcessState::Unreaped { .. } => match &report.unreaped_by {
            Some(parent) => {
                let name = parent.comm.value().map(String::as_str).unwrap_or("?");
                format!("over, and its parent {name:?} (pid {}) has not waited for it", parent.pid)
            }
            None => "over, and its parent, outside this PID namespace, has not waited for it".to_owned(),
        },
        ProcessState::Exiting { threads, .. } if runs_on(process) => {
            format!("its leader ended alone, {} of its threads run on", threads.len())
        }
        ProcessState::Exiting { .. } => match report.threads_alive.value() {
            Some(1) => "exiting, 1 thread is still there".to_owned(),
            Some(count) => format!("exiting, {count} threads are still there"),
            None => "exiting".to_owned(),
        },
        ProcessState::Unknown { obstacle } => format!("exiting; it cannot be read: {obstacle}"),
        ProcessState::Gone => "gone".to_owned(),
    };
    let driver = match &report.stuck_in_driver {
        Some(thread) => {
            format!(", thread {} ({:?}) in the GPU driver ({})", thread.tid, thread.name, thread.module)
        }
        None => String::new(),
    };
    format!("{state}{driver}{}{}", of_memory(report), holders(report))
}

fn of_memory(report: &DrainReport) -> String {
    match (&report.held_bytes, &report.held_at_start_bytes) {
        (Reading::Value(0), _) => String::new(),
        (Reading::Value(held), Reading::Value(start)) if held < start => {
            format!(", {} of {} still held{}", Bytes(*held), Bytes(*start), caveat(report.measure))
        }
        (Reading::Value(held), _) => format!(", {} held{}", Bytes(*held), caveat(report.measure)),
        _ => String::new(),
    }
}

fn held(report: &DrainReport) -> String {
    match (&report.held_bytes, &report.held_at_start_bytes) {
        (Reading::Value(held), Reading::Value(start)) => format!("{} of {}", Bytes(*held), Bytes(*start)),
        _ => "an unknown number of bytes".to_owned(),
    }
}

fn holders(report: &DrainReport) -> String {
    if report.held_by.is_empty() {
        return String::new();
    }
    let mut named: Vec<String> = report.held_by.iter().take(NAMED).map(holder).collect();
    if report.held_by.len() > NAMED {
        named.push(format!("{} more", report.held_by.len() - NAMED));
    }
    format!("; held by {}", named.join(", "))
}

fn holder(holder: &Holder) -> String {
    let object = holder.object.as_deref().unwrap_or("shared memory");
    let how = match holder.what {
        Hold::Traces => "traces it".to_owned(),
        Hold::SharedMemory => format!("has {object} open"),
        Hold::PerhapsSharedMemory => format!("has {object} open, perhaps its memory"),
        Hold::CgroupMember => "is in its cgroup".to_owned(),
    };
    let bytes = holder.bytes.map(|bytes| format!(" with {}", Bytes(bytes))).unwrap_or_default();
    format!("{:?} (pid {}), which {how}{bytes}", holder.name, holder.pid)
}

/// What is known to end only by somebody's doing is told at once, the rest when it has stalled.
fn action(report: &DrainReport, process: &ProcessState) -> Option<String> {
    let needs_somebody = matches!(
        process,
        ProcessState::Stopped
            | ProcessState::StoppedByTracer { .. }
            | ProcessState::DumpingCore { .. }
            | ProcessState::KilledButStuck { .. }
            | ProcessState::HeldByTracer { .. }
            | ProcessState::Unreaped { .. }
    );
    match report.phase {
        DrainPhase::Released => None,
        DrainPhase::Releasing if !report.stalled => None,
        DrainPhase::Releasing => Some(match report.held_by.first() {
            Some(first) => format!("end process {} or have it close what it holds; a start waits only until enough is free", first.pid),
            None => "no process was found that holds it: look for files in tmpfs (df -t tmpfs) and for driver errors in the kernel log; a start waits only until enough is free".to_owned(),
        }),
        _ if needs_somebody || runs_on(process) || report.stalled => Some(explain(report.pid, process).action),
        DrainPhase::Quiescing | DrainPhase::Exiting => None,
    }
}

fn runs_on(process: &ProcessState) -> bool {
    let threads = threads_of(process);
    matches!(process, ProcessState::Exiting { leader_dead: true, .. })
        && !threads.is_empty()
        && threads.iter().all(|thread| thread.fate == ThreadFate::RunsOn)
}
