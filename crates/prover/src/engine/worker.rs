//! The threads that prove.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::time::Instant;

use super::Shared;
use super::job::Ending;
use super::ledger::{Gate, Task};
use crate::log;

/// What a worker has in hand, for `/status`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    /// Id, circuit with size, and since when; `None` when idle.
    pub(crate) job: Option<(String, sexton_groth16::Shape, Instant)>,
}

/// Proves one job after the other until the engine drains.
pub(crate) fn run(shared: &Shared, number: usize) {
    while let Some(task) = next(shared, number) {
        // A panic in the mathematics costs one job, not the worker and not the client's answer.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            shared.backend.prove(&task.statement, &mut |stage| {
                shared.lock().ledger.enter(task.sequence, stage, Instant::now());
            })
        }));
        let ending = match outcome {
            Ok(Ok(proved)) => Ending::Done(Box::new(proved)),
            Ok(Err(why)) => Ending::Failed(why),
            Err(panic) => Ending::Failed(format!("the prover panicked: {}", panic_text(panic.as_ref()))),
        };
        finish(shared, number, &task, ending);
    }
}

/// Waits for a job. `None` when the engine drains and nothing waits.
fn next(shared: &Shared, number: usize) -> Option<Task> {
    let mut state = shared.lock();
    loop {
        let now = Instant::now();
        if let Some(task) = state.ledger.take(now) {
            if let Some(slot) = state.workers.get_mut(number) {
                slot.job = Some((task.id.clone(), task.statement.shape(), now));
            }
            return Some(task);
        }
        if state.ledger.gate() == Gate::Draining {
            return None;
        }
        state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

fn finish(shared: &Shared, number: usize, task: &Task, ending: Ending) {
    let (name, detail) = match &ending {
        Ending::Failed(why) => ("job_failed", format!(" error={why:?}")),
        _ => ("job_done", String::new()),
    };
    let mut state = shared.lock();
    if let Some(slot) = state.workers.get_mut(number) {
        slot.job = None;
    }
    let now = Instant::now();
    let counted = state.ledger.end(task.sequence, ending, now);
    let timings = state.ledger.job(&task.id).filter(|_| counted).map(|job| job.timings(now));
    drop(state);
    shared.changed.send_replace(());
    let id = &task.id;
    if !counted {
        log::event("result_discarded", format_args!("id={id}"));
        return;
    }
    let timings = timings.unwrap_or_default();
    let stage = |stage: Option<u64>| stage.map_or_else(|| "-".to_owned(), |micros| micros.to_string());
    log::event(
        name,
        format_args!(
            "id={id} circuit={}{detail} queued_us={} key_us={} synthesis_us={} prove_us={} verify_us={} total_us={}",
            task.statement.shape(),
            timings.queued_us,
            stage(timings.key_us),
            stage(timings.synthesis_us),
            stage(timings.prove_us),
            stage(timings.verify_us),
            timings.total_us,
        ),
    );
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}
