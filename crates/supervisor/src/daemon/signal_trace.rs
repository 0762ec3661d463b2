//! Who sent SIGKILL: the opt-in trace of tracefs (`supervisor run --signal-trace`).

use std::collections::VecDeque;
use std::path::Path;

use sexton_host::files::Files;
use sexton_host::tracefs::{self, KillTrace, Mounted};
use sexton_model::kernel::trace::{SignalSent, TraceEvent};
use sexton_model::reading::{ObstacleKind, Reading};

/// Kills that are remembered: those of other processes of the host are among them.
const REMEMBERED: usize = 1024;
/// Where tracefs is mounted if nobody has done so.
const TRACEFS: &str = "/sys/kernel/tracing";

/// The trace, or why there is none.
#[derive(Debug)]
pub struct SignalTrace {
    // Dropped first: its instance lies in the mount.
    trace: Reading<KillTrace>,
    _mounted: Option<Mounted>,
    kills: VecDeque<SignalSent>,
}

impl SignalTrace {
    /// No trace was asked for.
    pub fn off() -> Self {
        Self { trace: Reading::Absent, _mounted: None, kills: VecDeque::new() }
    }

    /// Starts it, mounting tracefs where that is not done.
    pub fn start() -> Self {
        let found = tracefs::mounted(&Files::system());
        let (at, mounted) = match found {
            Reading::Value(at) => (at, None),
            Reading::Absent | Reading::Unreadable(_) => match tracefs::mount(Path::new(TRACEFS)) {
                Ok(mounted) => (mounted.path().to_owned(), Some(mounted)),
                Err(error) => {
                    let why = format!("cannot mount tracefs at {TRACEFS}: {error}");
                    return Self { trace: Reading::unreadable(ObstacleKind::Failed, why), ..Self::off() };
                }
            },
        };
        let trace = match KillTrace::start(&at) {
            Reading::Absent => {
                Reading::unreadable(ObstacleKind::Failed, "this kernel has no trace of signals")
            }
            other => other,
        };
        Self { trace, _mounted: mounted, kills: VecDeque::new() }
    }

    /// Why there is none although it was asked for.
    pub fn obstacle(&self) -> Option<&str> {
        self.trace.obstacle().map(|obstacle| obstacle.detail.as_str())
    }

    /// SIGKILLs sent to process `pid`, oldest first, as far as they are remembered; absent where the trace is off.
    pub fn kills_of(&mut self, pid: i32) -> Reading<Vec<SignalSent>> {
        self.take_news();
        match &self.trace {
            Reading::Value(_) => {
                Reading::Value(self.kills.iter().filter(|sent| sent.pid == pid).cloned().collect())
            }
            Reading::Absent => Reading::Absent,
            Reading::Unreadable(obstacle) => Reading::Unreadable(obstacle.clone()),
        }
    }

    /// Empties the kernel's small buffer: to be called now and then.
    pub fn take_news(&mut self) {
        let Reading::Value(trace) = &mut self.trace else { return };
        match trace.read() {
            Reading::Value(news) => {
                for event in news.events {
                    if let TraceEvent::Signal(sent) = event {
                        self.kills.push_back(sent);
                    }
                }
                let surplus = self.kills.len().saturating_sub(REMEMBERED);
                self.kills.drain(..surplus);
            }
            Reading::Unreadable(obstacle) => self.trace = Reading::Unreadable(obstacle),
            Reading::Absent => {}
        }
    }
}
