//! Readings that give up: a state folder on a dead network file system, or a driver that hangs, must not hold whoever
//! asks what is wrong.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use sexton_model::reading::{ObstacleKind, Reading};

/// What `work` answers; `None` where it has not after `limit`, and then it is left to itself.
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (answer, answered) = mpsc::sync_channel(1);
    // Nobody listens any more to an answer that comes too late.
    let worker = thread::Builder::new().name("bounded".to_owned()).spawn(move || drop(answer.send(work())));
    worker.ok().and_then(|_| answered.recv_timeout(limit).ok())
}

/// As [`within`]; late is unreadable. `what` is for the message.
pub fn reading<T: Send + 'static>(
    what: &str,
    limit: Duration,
    read: impl FnOnce() -> Reading<T> + Send + 'static,
) -> Reading<T> {
    within(limit, read).unwrap_or_else(|| {
        let seconds = limit.as_secs_f64();
        Reading::unreadable(ObstacleKind::Failed, format!("{what}: no answer within {seconds:.0} s"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_hangs_is_left_and_said_to_hang() {
        let (_held, never) = mpsc::channel::<()>();
        let late = reading("/dead/nfs", Duration::from_millis(20), move || {
            // Until the test drops the other end.
            let _ = never.recv();
            Reading::Value(())
        });
        assert_eq!(late.obstacle().unwrap().detail, "/dead/nfs: no answer within 0 s");
        assert_eq!(within(Duration::from_secs(10), || 7), Some(7));
    }
}
