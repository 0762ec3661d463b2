//! The kernel log, by two doors: `/dev/kmsg`, and where that is missing or closed, `syslog(2)`.
//!
//! ```text
//! bytes ── record / syslog ──▶ KernelRecord ── grammar ──▶ KernelFact
//! ```
//!
//! Take a [`mark`](KernelLog::mark) when a run starts and read what came [`since`](KernelLog::since) when it ends; or keep
//! a [`Kmsg`] open and poll it. Either way the answer says whether something is missing
//! ([`KernelWindow::is_whole`]): only in a whole window does "no such line" mean anything.
//!
//! The system call of the second door has no safe wrapper that can be used (the one crate that has it refuses a log with
//! a byte that is not UTF-8, which any process can put there by its name), so it is given by the caller:
//! `sexton_process::klog::read_kernel_log`.
//!
//! | module | does |
//! |---|---|
//! | [`record`] | one record of `/dev/kmsg`, from its bytes |
//! | [`grammar`] | what the text of a record states |
//! | [`kmsg`] | reads the device |

pub mod grammar;
pub mod kmsg;
pub mod record;
mod syslog;

use std::io;
use std::path::PathBuf;

use sexton_model::kernel::{KernelEvent, KernelFact, KernelRecord, KernelWindow, LogMark};
use sexton_model::reading::{Obstacle, ObstacleKind, Reading};

pub use kmsg::Kmsg;

/// The call of `syslog(2)`: the bytes of the whole log.
pub type ReadSyslog = fn() -> io::Result<Vec<u8>>;

/// The reader: where the device is, and how the system call is made.
#[derive(Debug, Clone)]
pub struct KernelLog {
    kmsg: PathBuf,
    syslog: Option<ReadSyslog>,
}

impl KernelLog {
    /// Reads `/dev/kmsg`.
    pub fn system() -> Self {
        Self::at("/dev/kmsg")
    }

    /// Reads a device at another path.
    pub fn at(kmsg: impl Into<PathBuf>) -> Self {
        Self { kmsg: kmsg.into(), syslog: None }
    }

    /// Tries `read` where the device cannot be read.
    pub fn or_syslog(self, read: ReadSyslog) -> Self {
        Self { syslog: Some(read), ..self }
    }

    /// The end of the log now. Reads the whole ring, which takes about a microsecond a record.
    ///
    /// Unreadable: through neither door; the detail has both reasons. Never absent.
    pub fn mark(&self) -> Reading<LogMark> {
        self.by_either_door(|kmsg| kmsg.mark(), syslog::mark)
    }

    /// What was written after `mark`, which is of this boot. The default mark is the beginning.
    ///
    /// Unreadable: as [`Self::mark`].
    pub fn since(&self, mark: &LogMark) -> Reading<KernelWindow> {
        self.by_either_door(|kmsg| kmsg.read_since(mark), |log| syslog::since(log, mark))
    }

    /// What is in the log now.
    ///
    /// Unreadable: as [`Self::mark`].
    pub fn all(&self) -> Reading<KernelWindow> {
        self.by_either_door(|kmsg| kmsg.read(), |log| syslog::since(log, &LogMark::default()))
    }

    fn by_either_door<T>(
        &self,
        by_kmsg: impl FnOnce(&mut Kmsg) -> Result<T, Obstacle>,
        by_syslog: impl FnOnce(&[u8]) -> Result<T, Obstacle>,
    ) -> Reading<T> {
        let first = match Kmsg::open(&self.kmsg).and_then(|mut kmsg| by_kmsg(&mut kmsg)) {
            Ok(value) => return Reading::Value(value),
            Err(obstacle) => obstacle,
        };
        let Some(read) = self.syslog else { return Reading::Unreadable(first) };
        match read().map_err(|error| syslog_refused(&error)).and_then(|log| by_syslog(&log)) {
            Ok(value) => Reading::Value(value),
            Err(second) => Reading::Unreadable(both(first, second)),
        }
    }
}

/// Default: `/dev/kmsg` alone.
impl Default for KernelLog {
    fn default() -> Self {
        Self::system()
    }
}

fn syslog_refused(error: &io::Error) -> Obstacle {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Obstacle::new(
            ObstacleKind::Denied,
            format!("syslog(2): {error}: run as root or with CAP_SYSLOG, or set kernel.dmesg_restrict=0"),
        ),
        _ => Obstacle::new(ObstacleKind::Failed, format!("syslog(2): {error}")),
    }
}

/// Denied at one door means that somebody may know, so it outweighs what the other door said.
fn both(first: Obstacle, second: Obstacle) -> Obstacle {
    let kind = if second.kind == ObstacleKind::Denied { second.kind } else { first.kind };
    Obstacle::new(kind, format!("{first}; {second}"))
}

/// The facts in a window, oldest first. Of a message in several lines the first may name the GPU of which a later one
/// says that it is gone.
pub fn events(window: &KernelWindow) -> Vec<KernelEvent> {
    /// Lines of one message are that close together at most.
    const SAME_MESSAGE_US: u64 = 10_000;
    let mut announced: Option<(u64, String)> = None;
    let mut events = Vec::new();
    for record in window.records.iter().filter(|record| record.is_from_kernel()) {
        if let Some(pci) = grammar::gpu::announced(&record.text) {
            announced = Some((record.at_us, pci));
        }
        let Some(mut fact) = grammar::fact(&record.text) else { continue };
        if let KernelFact::GpuLost(lost) = &mut fact {
            let near = announced.take_if(|(at_us, _)| record.at_us.abs_diff(*at_us) <= SAME_MESSAGE_US);
            lost.pci = lost.pci.take().or(near.map(|(_, pci)| pci));
        }
        events.push(KernelEvent { seq: record.seq, at_us: record.at_us, fact });
    }
    events
}

/// The place just behind `record`.
fn mark_after(record: &KernelRecord) -> LogMark {
    LogMark {
        next_seq: record.seq.map(|seq| seq.saturating_add(1)),
        at_us: record.at_us,
        last_line: last_line(record).to_owned(),
    }
}

/// `syslog(2)` breaks a record at its newlines, so a mark that fits both doors names the last line.
fn last_line(record: &KernelRecord) -> &str {
    record.text.rsplit('\n').next().unwrap_or_default()
}

/// Where a mark is among records.
struct Position {
    /// Index of the first record behind it.
    index: usize,
    /// Whether the marked record was found. If not, it went out of the ring and times have to do; or the log was empty.
    is_certain: bool,
}

/// Finds a mark by time and text: records have no numbers here, or the mark has none. Times alone do not serve, since
/// several records share a microsecond, and CPUs may disagree by a few.
fn position_after(records: &[KernelRecord], mark: &LogMark) -> Position {
    if *mark == LogMark::default() {
        return Position { index: 0, is_certain: true };
    }
    let is_marked = |record: &KernelRecord| record.at_us == mark.at_us && last_line(record) == mark.last_line;
    match records.iter().rposition(is_marked) {
        Some(index) => Position { index: index + 1, is_certain: true },
        None => {
            let later = records.iter().position(|record| record.at_us > mark.at_us);
            Position { index: later.unwrap_or(records.len()), is_certain: false }
        }
    }
}
