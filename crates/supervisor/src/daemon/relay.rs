//! Passes the prover's output on to our own standard output, as the wrapper did that `supervisor run` replaces.
//!
//! The log files lie between the two: a reader of ours that has stopped reading stops this one thread and nothing else,
//! and finds everything, run after run, when it goes on.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use sexton_model::units::Human;
use sexton_process::ready::{self, Slot};
use sexton_process::watch::Watch;

use crate::rotated::{Follower, Place};
use crate::terminal;

/// How long [`Relay::finish`] waits for a slow reader.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a log is read that cannot be watched: inotify has its limits, which other programs may have used up.
const UNWATCHED_INTERVAL: Duration = Duration::from_millis(200);

/// The thread that follows the logs of one run after the other.
#[derive(Debug)]
pub struct Relay {
    logs: mpsc::Sender<Log>,
    /// How many of them are complete.
    complete: Arc<AtomicU64>,
    /// Tells the thread that one more is.
    wake: UnixStream,
    done: mpsc::Receiver<()>,
}

/// A log to follow.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    from: Place,
}

impl Relay {
    /// Starts it.
    ///
    /// # Errors
    /// Where no thread or socket can be made.
    pub fn start() -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let (logs, received) = mpsc::channel::<Log>();
        let complete = Arc::new(AtomicU64::new(0));
        let (sender, done) = mpsc::channel();
        let seen = Arc::clone(&complete);
        std::thread::Builder::new().name("relay".to_owned()).stack_size(128 << 10).spawn(move || {
            let mut watches = Watches::default();
            for (log, number) in received.iter().zip(0..) {
                let is_complete = || seen.load(Ordering::Acquire) > number;
                // A closed standard output ends the relaying; the logs go on.
                if follow(&log, watches.of(&log.path), &woken, is_complete).is_err() {
                    break;
                }
            }
            let _ = sender.send(());
        })?;
        Ok(Self { logs, complete, wake, done })
    }

    /// Follows `log` once those before are passed on: from its present end if `from_end`. To be called once for each
    /// [`Self::log_is_complete`].
    pub fn follow(&self, log: &Path, from_end: bool) {
        let from = if from_end { Place::end(log) } else { Place::Beginning };
        // A thread that has ended has no standard output to write to.
        let _ = self.logs.send(Log { path: log.to_owned(), from });
    }

    /// The log given last will not grow any more.
    pub fn log_is_complete(&self) {
        self.complete.fetch_add(1, Ordering::Release);
        // A full socket wakes it as well.
        let _ = (&self.wake).write(&[0]);
    }

    /// Returns when everything is passed on, or its reader is too slow.
    pub fn finish(self) {
        drop(self.logs);
        let _ = self.done.recv_timeout(PATIENCE);
    }
}

/// Watches logs, and says the first time that it cannot.
#[derive(Debug, Default)]
struct Watches {
    said: bool,
}

impl Watches {
    fn of(&mut self, log: &Path) -> Option<Watch> {
        // The folder: a log that is rotated becomes another file.
        let watch = Watch::writes(log.parent().unwrap_or(log));
        if let Err(error) = &watch
            && !std::mem::replace(&mut self.said, true)
        {
            let every = Human(UNWATCHED_INTERVAL);
            terminal::say(&format!("cannot watch {}: {error}: read every {every} instead", log.display()));
        }
        watch.ok()
    }
}

/// Passes one log on until it is complete. One that cannot be read is passed over. `watch` is older than the first
/// reading, so that no write falls in between.
///
/// # Errors
/// Standard output's.
fn follow(
    log: &Log,
    watch: Option<Watch>,
    mut woken: &UnixStream,
    is_complete: impl Fn() -> bool,
) -> io::Result<()> {
    let Ok(mut follower) = Follower::open(&log.path, log.from) else { return Ok(()) };
    let mut said = false;
    let mut buffer = [0; 16 << 10];
    loop {
        // Asked before the reading: what was written before that is read.
        let complete = is_complete();
        let mut stdout = io::stdout().lock();
        while let Ok(length @ 1..) = follower.read(&mut buffer) {
            if follower.has_missed() && !std::mem::replace(&mut said, true) {
                let folder = log.path.parent().unwrap_or(&log.path).display();
                terminal::say(&format!(
                    "the oldest output in {folder} was removed before it could be passed on: our own reader is too slow"
                ));
            }
            stdout.write_all(&buffer[..length])?;
        }
        stdout.flush()?;
        if complete {
            return Ok(());
        }
        let mut slots = [Slot::new(watch.as_ref().map(AsFd::as_fd)), Slot::new(Some(woken.as_fd()))];
        ready::wait(&mut slots, watch.is_none().then_some(UNWATCHED_INTERVAL))?;
        if let Some(watch) = &watch {
            watch.clear()?;
        }
        // Only its arrival counts.
        while matches!(woken.read(&mut buffer), Ok(1..)) {}
    }
}
