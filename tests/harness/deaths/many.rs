//! Many cells at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::{Cell, Death, Outcome, PATIENCE};
use crate::{Skip, wait_until};

/// Cells that are under way together, where one dies at a time.
const WIDTH: usize = 6;

/// All cells of some deaths, with so many dying of each at once.
///
/// # Errors
/// Where this machine lacks what it takes.
#[track_caller]
pub fn run_all(deaths: &[Death], at_once: usize) -> Result<Vec<Outcome>, Skip> {
    let cells: Vec<Cell> = deaths.iter().copied().flat_map(Cell::of).collect();
    let mut outcomes = Vec::new();
    if at_once == 1 {
        for some in cells.chunks(WIDTH) {
            outcomes.extend(together(some.iter().map(|cell| (*cell, 1)))?);
        }
    } else {
        for cell in cells {
            outcomes.extend(together([(cell, at_once)])?);
        }
    }
    Ok(outcomes)
}

/// Runs cells side by side; those of one kind die when all of them are prepared.
fn together(cells: impl IntoIterator<Item = (Cell, usize)>) -> Result<Vec<Outcome>, Skip> {
    let (sender, outcomes) = mpsc::channel();
    thread::scope(|scope| {
        for (cell, count) in cells {
            let prepared = std::sync::Arc::new(AtomicUsize::new(0));
            for _ in 0..count {
                let (sender, prepared) = (sender.clone(), prepared.clone());
                scope.spawn(move || {
                    let outcome = cell.run(|| {
                        prepared.fetch_add(1, Ordering::SeqCst);
                        // Not a barrier: one that cannot be prepared must not hang the others.
                        wait_until(PATIENCE, "the others are prepared", || {
                            prepared.load(Ordering::SeqCst) == count
                        });
                    });
                    let _ = sender.send(outcome);
                });
            }
        }
    });
    drop(sender);
    outcomes.into_iter().collect()
}
