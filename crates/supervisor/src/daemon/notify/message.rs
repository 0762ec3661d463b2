//! What a message of `sd_notify(3)` says: lines of `NAME=value`.

use std::time::Duration;

/// The longest status text that is kept, bytes.
const STATUS_MAX: usize = 512;

/// One message. Of a name that is there twice, the last counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// `READY=1`: it takes work. Also ends a reload.
    pub ready: bool,
    /// `STOPPING=1`: it is about to end.
    pub stopping: bool,
    /// `RELOADING=1`: it reads its configuration again, since this many microseconds of `CLOCK_MONOTONIC`
    /// (`MONOTONIC_USEC`), `None` where it did not say.
    pub reloading: Option<Option<u64>>,
    /// `STATUS`: one line for people. Control characters are replaced, and it is cut at 512 bytes.
    pub status: Option<String>,
    /// `ERRNO`: why it fails, as a number of errno(3).
    pub errno: Option<i32>,
    /// `EXTEND_TIMEOUT_USEC`: what it is doing now (starting, stopping) takes so much longer from now on.
    pub extend: Option<Duration>,
    /// `WATCHDOG`.
    pub heartbeat: Option<Heartbeat>,
    /// `WATCHDOG_USEC`: heartbeats will come at least this often from now on; zero ends them.
    pub heartbeat_interval: Option<Duration>,
    /// `BARRIER=1`: it waits until its descriptor is closed, which tells that what it sent before has been read.
    pub barrier: bool,
    /// Names that are understood and not followed: `MAINPID`, `FDSTORE`, …
    pub refused: Vec<&'static str>,
    /// Lines that are no assignment, no UTF-8, or have a value that the name cannot have.
    pub malformed: usize,
}

/// A sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    /// `WATCHDOG=1`: it lives.
    Alive,
    /// `WATCHDOG=trigger`: it knows of itself that it does not work, and is to be treated as silent.
    Failed,
}

/// What a supervisor with one keeper per run cannot let a run change: whom it watches, whom it hears, what is kept for it.
const REFUSED: [&str; 8] =
    ["MAINPID", "MAINPIDFDID", "MAINPIDFD", "FDSTORE", "FDSTOREREMOVE", "FDNAME", "FDPOLL", "NOTIFYACCESS"];

impl Message {
    /// Reads a message. Names that are not known (and programs' own, `X_…`) are passed over, as systemd does.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut message = Self::default();
        let mut reloading_since = None;
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let assignment = std::str::from_utf8(line).ok().and_then(|line| line.split_once('='));
            let understood = match assignment {
                Some(("MONOTONIC_USEC", value)) => {
                    value.parse().map(|since| reloading_since = Some(since)).is_ok()
                }
                Some((name, value)) => message.take(name, value),
                None => false,
            };
            message.malformed += usize::from(!understood);
        }
        if let Some(since) = &mut message.reloading {
            *since = reloading_since;
        }
        message
    }

    /// Whether the value is one that the name can have.
    fn take(&mut self, name: &str, value: &str) -> bool {
        let micros = || value.parse().ok().map(Duration::from_micros);
        match (name, value) {
            ("READY", "1") => self.ready = true,
            ("STOPPING", "1") => self.stopping = true,
            ("RELOADING", "1") => self.reloading = Some(None),
            ("BARRIER", "1") => self.barrier = true,
            ("READY" | "STOPPING" | "RELOADING" | "BARRIER", _) => return false,
            ("STATUS", text) => self.status = Some(one_line(text)),
            ("ERRNO", _) => {
                self.errno = value.parse().ok().filter(|errno| (0..=4095).contains(errno));
                return self.errno.is_some();
            }
            ("EXTEND_TIMEOUT_USEC", _) => {
                self.extend = micros();
                return self.extend.is_some();
            }
            ("WATCHDOG", "1") => self.heartbeat = Some(Heartbeat::Alive),
            ("WATCHDOG", "trigger") => self.heartbeat = Some(Heartbeat::Failed),
            ("WATCHDOG", _) => return false,
            ("WATCHDOG_USEC", _) => {
                self.heartbeat_interval = micros();
                return self.heartbeat_interval.is_some();
            }
            _ => {
                if let Some(name) = REFUSED.iter().find(|refused| **refused == name)
                    && !self.refused.contains(name)
                {
                    self.refused.push(name);
                }
            }
        }
        true
    }
}

fn one_line(text: &str) -> String {
    let mut end = text.len().min(STATUS_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    crate::terminal::calm_line(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_name_is_read() {
        let message = Message::parse(
            b"READY=1\nSTATUS=reading keys: 3 of 9\nEXTEND_TIMEOUT_USEC=60000000\nWATCHDOG=1\nWATCHDOG_USEC=30000000\nERRNO=12\n",
        );
        assert_eq!(
            message,
            Message {
                ready: true,
                status: Some("reading keys: 3 of 9".to_owned()),
                extend: Some(Duration::from_secs(60)),
                heartbeat: Some(Heartbeat::Alive),
                heartbeat_interval: Some(Duration::from_secs(30)),
                errno: Some(12),
                ..Message::default()
            }
        );
        let message = Message::parse(b"MONOTONIC_USEC=77\nRELOADING=1");
        assert_eq!(message, Message { reloading: Some(Some(77)), ..Message::default() });
        let message = Message::parse(b"STOPPING=1\nWATCHDOG=trigger\nBARRIER=1");
        assert!(message.stopping && message.barrier && message.heartbeat == Some(Heartbeat::Failed));
    }

    #[test]
    fn what_would_change_whom_we_watch_is_refused_by_name() {
        let message = Message::parse(b"MAINPID=1\nFDSTORE=1\nFDNAME=pool\nMAINPID=2\nNOTIFYACCESS=all");
        assert_eq!(message.refused, ["MAINPID", "FDSTORE", "FDNAME", "NOTIFYACCESS"]);
        assert_eq!(message.malformed, 0);
    }

    #[test]
    fn a_line_that_makes_no_sense_spoils_no_other() {
        let message = Message::parse(
            b"\xff\xfe=1\nREADY=yes\nnonsense\nERRNO=-5\nWATCHDOG_USEC=1e3\nX_MINE=7\n\nREADY=1",
        );
        assert_eq!(message, Message { ready: true, malformed: 5, ..Message::default() });
    }

    #[test]
    fn a_status_is_one_short_line_that_steers_no_terminal() {
        let text = format!("STATUS=\u{1b}[2J{}", "ü".repeat(4_000));
        let status = Message::parse(text.as_bytes()).status.unwrap();
        assert!(status.starts_with("\u{fffd}[2Jü") && status.len() <= STATUS_MAX + 2);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            Message::parse(&bytes);
        }
    }
}
