//! Where a prover that speaks `sd_notify(3)` says what it is doing: ready, stopping, still alive, more time please.
//!
//! The socket has a fixed path per supervised name, so that a prover which a later supervisor takes over goes on speaking to
//! it. Only processes of the run are heard: its own tree, and what it left to the keeper by double forks. Others are counted.

pub mod message;

use std::io;
use std::path::Path;

use sexton_process::{Datagram, NotifySocket, Readable, is_at_or_below};

pub use message::{Heartbeat, Message};

/// The end of the notifications.
#[derive(Debug)]
pub struct Notifications {
    socket: NotifySocket,
    readable: Readable,
    refused: Refused,
    told: Refused,
}

/// Messages that were not taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refused {
    /// From processes that are none of the run's, or had ended when they were looked for.
    pub strangers: u64,
    /// Longer than [`sexton_process::notify_socket::MESSAGE_MAX`].
    pub oversized: u64,
}

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A process of the run said this.
    Message {
        /// Its PID.
        pid: i32,
        /// What.
        message: Message,
    },
    /// The first message that was refused for this reason since the last call of [`Notifications::forget`].
    Refused {
        /// Its sender, where that has a PID here.
        pid: Option<i32>,
        /// Why.
        why: &'static str,
    },
}

impl Notifications {
    /// Listens on `path`. To be called inside the runtime.
    ///
    /// # Errors
    /// As [`NotifySocket::bind`].
    pub fn listen(path: &Path) -> io::Result<Self> {
        let socket = NotifySocket::bind(path)?;
        let readable = Readable::new(&socket)?;
        Ok(Self { socket, readable, refused: Refused::default(), told: Refused::default() })
    }

    /// The next that comes. `roots`: the run's main process and its keeper; nobody is heard where there are none.
    /// Cancel-safe: a message is taken and returned in one step.
    ///
    /// # Errors
    /// The socket's, which no message can bring about. Not to be called again then.
    pub async fn next(&mut self, roots: &[i32]) -> io::Result<Notice> {
        loop {
            let mut guard = self.readable.wait().await?;
            match self.socket.receive()? {
                None => guard.clear_ready(),
                Some(datagram) => {
                    if let Some(notice) = self.judge(datagram, roots) {
                        return Ok(notice);
                    }
                }
            }
        }
    }

    /// What has been refused so far.
    pub fn refused(&self) -> Refused {
        self.refused
    }

    /// A new run: what is refused next is told again.
    pub fn forget(&mut self) {
        self.told = self.refused;
    }

    /// `None`: refused, and for the same reason as one before. Descriptors that came along end here, which is also what
    /// whoever sent a `BARRIER` waits for.
    fn judge(&mut self, datagram: Datagram, roots: &[i32]) -> Option<Notice> {
        let pid = datagram.sender;
        if let Some(pid) = pid.filter(|pid| is_at_or_below(*pid, roots)) {
            if !datagram.truncated {
                return Some(Notice::Message { pid, message: Message::parse(&datagram.bytes) });
            }
            self.refused.oversized += 1;
            let first = self.refused.oversized == self.told.oversized + 1;
            return first.then_some(Notice::Refused { pid: Some(pid), why: "it is longer than 4 KiB" });
        }
        self.refused.strangers += 1;
        let first = self.refused.strangers == self.told.strangers + 1;
        first.then_some(Notice::Refused { pid, why: "its sender is no living process of the run" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(60);

    async fn next(notifications: &mut Notifications, roots: &[i32]) -> Notice {
        tokio::time::timeout(PATIENCE, notifications.next(roots)).await.unwrap().unwrap()
    }

    fn send(path: &Path, text: &str) {
        sexton_control::notify::send(path.as_os_str(), text).unwrap();
    }

    #[tokio::test]
    async fn processes_of_the_run_are_heard() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.sock");
        let mut notifications = Notifications::listen(&path).unwrap();
        let own = std::process::id() as i32;
        send(&path, "READY=1\nSTATUS=up");
        let message = Message { ready: true, status: Some("up".into()), ..Message::default() };
        assert_eq!(next(&mut notifications, &[own]).await, Notice::Message { pid: own, message });
        assert_eq!(notifications.refused(), Refused::default());
    }

    #[tokio::test]
    async fn strangers_and_floods_are_counted_and_told_once_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.sock");
        let mut notifications = Notifications::listen(&path).unwrap();
        // The run is another process than ours, which sends.
        let mut run = Command::new("sleep").arg("300").stdin(Stdio::null()).spawn().unwrap();
        let roots = [run.id() as i32];
        let own = std::process::id() as i32;
        let refused = Notice::Refused { pid: Some(own), why: "its sender is no living process of the run" };
        for _ in 0..3 {
            send(&path, "READY=1");
        }
        assert_eq!(next(&mut notifications, &roots).await, refused);
        let silent = tokio::time::timeout(Duration::from_millis(50), notifications.next(&roots)).await;
        assert!(silent.is_err());
        assert_eq!(notifications.refused(), Refused { strangers: 3, oversized: 0 });
        notifications.forget();
        send(&path, "READY=1");
        assert_eq!(next(&mut notifications, &roots).await, refused);
        // Without a run, nobody is heard.
        send(&path, "READY=1");
        assert!(tokio::time::timeout(Duration::from_millis(50), notifications.next(&[])).await.is_err());
        run.kill().unwrap();
        run.wait().unwrap();
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_refused_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.sock");
        let mut notifications = Notifications::listen(&path).unwrap();
        let own = std::process::id() as i32;
        send(&path, &format!("READY=1\nSTATUS={}", "x".repeat(5_000)));
        let notice = next(&mut notifications, &[own]).await;
        assert_eq!(notice, Notice::Refused { pid: Some(own), why: "it is longer than 4 KiB" });
    }

    #[tokio::test]
    async fn a_call_that_is_broken_off_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.sock");
        let mut notifications = Notifications::listen(&path).unwrap();
        let own = std::process::id() as i32;
        for errno in 0..50 {
            let _ = tokio::time::timeout(Duration::ZERO, notifications.next(&[own])).await;
            send(&path, &format!("ERRNO={errno}"));
            let Notice::Message { message, .. } = next(&mut notifications, &[own]).await else { panic!() };
            assert_eq!(message.errno, Some(errno));
        }
    }
}
