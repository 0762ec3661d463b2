//! Passes the prover's output on to our own standard output, as the wrapper did that `supervisor run` replaces.
//!
//! The log file lies between the two: a reader of ours that has stopped reading stops this thread and nothing else.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use sexton_process::ready::{self, Slot};
use sexton_process::watch::Watch;

/// How long [`Relay::finish`] waits for a slow reader.
const PATIENCE: Duration = Duration::from_secs(2);

/// The thread that follows one run's log.
#[derive(Debug)]
pub struct Relay {
    /// Closing it tells the thread that the log is complete.
    open: UnixStream,
    done: mpsc::Receiver<()>,
}

impl Relay {
    /// Follows `log`, from its present end if `from_end`.
    ///
    /// # Errors
    /// Where the file cannot be opened or watched.
    pub fn start(log: &Path, from_end: bool) -> io::Result<Self> {
        let watch = Watch::writes(log)?;
        let mut file = File::open(log)?;
        if from_end {
            file.seek(SeekFrom::End(0))?;
        }
        let (open, closed) = UnixStream::pair()?;
        let (sender, done) = mpsc::channel();
        std::thread::Builder::new().name("relay".to_owned()).stack_size(128 << 10).spawn(move || {
            // A closed standard output ends the relaying; the log goes on.
            let _ = follow(&mut file, &watch, &closed);
            let _ = sender.send(());
        })?;
        Ok(Self { open, done })
    }

    /// The log is complete: passes the rest on, and returns when that is done or its reader is too slow.
    pub fn finish(self) {
        drop(self.open);
        let _ = self.done.recv_timeout(PATIENCE);
    }
}

fn follow(file: &mut File, watch: &Watch, closed: &UnixStream) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    loop {
        let mut slots = [Slot::new(Some(watch.as_fd())), Slot::new(Some(closed.as_fd()))];
        ready::wait(&mut slots, None)?;
        let complete = slots[1].readable || slots[1].hung_up;
        // Before the reading, so that a write in between is seen the next time.
        watch.clear()?;
        let mut stdout = io::stdout().lock();
        loop {
            let length = file.read(&mut buffer)?;
            if length == 0 {
                break;
            }
            stdout.write_all(&buffer[..length])?;
        }
        stdout.flush()?;
        if complete {
            return Ok(());
        }
    }
}
