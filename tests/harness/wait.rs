//! Waiting for conditions.

use std::thread;
use std::time::{Duration, Instant};

/// Between two looks: short against what is waited for, long against the cost of a look.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until `condition` holds. Panics with `what` when it does not by `deadline` from now.
#[track_caller]
pub fn wait_until(deadline: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(deadline, what, || condition().then_some(()));
}

/// Waits until `look` finds something, and returns that. Panics with `what` when it does not by `deadline` from now.
#[track_caller]
pub fn wait_for<T>(deadline: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < deadline, "waited {deadline:?} in vain: {what}");
        thread::sleep(PAUSE);
    }
}
