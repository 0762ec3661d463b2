//! What the supervisor itself tells the service manager that started it (`sd_notify(3)`), where one did.
//!
//! The supervisor is ready once it watches: a prover's readiness is its own affair, shown in the status text, and a unit that
//! waits half an hour for keys to be read would be killed by the manager's start time-out.

use std::ffi::OsString;
use std::fmt::Write;
use std::time::Duration;

use sexton_control::notify::{NOTIFY_SOCKET, send};
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// The manager, or its absence.
#[derive(Debug)]
pub struct ServiceManager {
    address: Option<OsString>,
    heartbeat: Option<Interval>,
    status: String,
    /// The last message that could not be sent.
    trouble: Option<String>,
}

impl ServiceManager {
    /// As the environment has it: `NOTIFY_SOCKET`; `WATCHDOG_USEC` where `WATCHDOG_PID` is us or absent. To be called
    /// inside the runtime.
    pub fn from_environment() -> Self {
        let variable = |name| std::env::var(name).ok();
        let ours = variable("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        let micros = variable("WATCHDOG_USEC").filter(|_| ours).and_then(|micros| micros.parse().ok());
        let address = std::env::var_os(NOTIFY_SOCKET).filter(|address| !address.is_empty());
        Self::new(address, micros.map(Duration::from_micros))
    }

    /// A manager at `address` that expects a sign of life within `watchdog`.
    pub fn new(address: Option<OsString>, watchdog: Option<Duration>) -> Self {
        // Half of it, as sd_watchdog_enabled(3) recommends.
        let period = watchdog.filter(|_| address.is_some()).map(|whole| whole / 2);
        let heartbeat = period.filter(|period| !period.is_zero()).map(|period| {
            let mut interval = tokio::time::interval_at(Instant::now() + period, period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        Self { address, heartbeat, status: String::new(), trouble: None }
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.address.is_some()
    }

    /// Why the last message could not be sent; told once.
    pub fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// We watch. Also the end of a reload.
    pub fn ready(&mut self) {
        self.send("READY=1");
    }

    /// We read our configuration again.
    pub fn reloading(&mut self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let micros = now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// What we are doing, in one line; sent where it is another than the last.
    pub fn status(&mut self, text: &str) {
        let text = crate::terminal::calm_line(text);
        if text != self.status {
            self.send(&format!("STATUS={text}"));
            self.status = text;
        }
    }

    /// We are leaving, which takes up to `within`: a drain takes minutes, and the manager's own limit may be shorter.
    pub fn stopping(&mut self, within: Option<Duration>) {
        let mut message = "STOPPING=1".to_owned();
        if let Some(within) = within {
            // Writing to a string does not fail.
            let _ = write!(message, "\nEXTEND_TIMEOUT_USEC={}", micros(within));
        }
        self.send(&message);
    }

    /// What we are doing takes up to `within` from now. To be sent again before that is over.
    pub fn extend(&mut self, within: Duration) {
        self.send(&format!("EXTEND_TIMEOUT_USEC={}", micros(within)));
    }

    /// Waits until a sign of life is due and sends it; for ever where none is wanted. Cancel-safe. To be awaited by the
    /// loop whose life it is the sign of.
    pub async fn beat(&mut self) {
        match &mut self.heartbeat {
            Some(interval) => drop(interval.tick().await),
            None => std::future::pending().await,
        }
        self.send("WATCHDOG=1");
    }

    fn send(&mut self, message: &str) {
        if let Some(address) = &self.address
            && let Err(error) = send(address, message)
        {
            self.trouble = Some(format!("NOTIFY_SOCKET {}: {error}", address.to_string_lossy()));
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    fn receive(socket: &UnixDatagram) -> Option<String> {
        let mut buffer = [0; 256];
        socket.set_nonblocking(true).unwrap();
        let length = socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8(buffer[..length].to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_manager_hears_what_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let mut manager = ServiceManager::new(Some(path.into()), Some(Duration::from_millis(20)));
        manager.ready();
        manager.status("prover ready\nREADY=0");
        manager.status("prover ready\nREADY=0");
        manager.stopping(Some(Duration::from_secs(90)));
        manager.beat().await;
        assert_eq!(receive(&socket).as_deref(), Some("READY=1"));
        assert_eq!(receive(&socket).as_deref(), Some("STATUS=prover ready\u{fffd}READY=0"));
        assert_eq!(receive(&socket).as_deref(), Some("STOPPING=1\nEXTEND_TIMEOUT_USEC=90000000"));
        assert_eq!(receive(&socket).as_deref(), Some("WATCHDOG=1"));
        assert_eq!(receive(&socket), None);
        manager.reloading();
        assert!(receive(&socket).unwrap().starts_with("RELOADING=1\nMONOTONIC_USEC="));
        assert_eq!(manager.take_trouble(), None);
    }

    #[tokio::test]
    async fn without_a_manager_nothing_is_sent_and_one_that_is_gone_is_told_once() {
        let mut nobody = ServiceManager::new(None, Some(Duration::from_millis(1)));
        nobody.ready();
        assert!(!nobody.is_there() && nobody.take_trouble().is_none());
        assert!(tokio::time::timeout(Duration::from_millis(20), nobody.beat()).await.is_err());
        let mut gone = ServiceManager::new(Some("/no/such/socket".into()), None);
        gone.ready();
        assert!(gone.take_trouble().unwrap().starts_with("NOTIFY_SOCKET /no/such/socket: "));
        assert_eq!(gone.take_trouble(), None);
    }
}
