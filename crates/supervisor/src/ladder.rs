//! The budget ladder: which memory budget the next start takes, by what was proved of the ones before.
//!
//! ```text
//! 100 % ──proved OOM──► 85 % ──proved OOM──► 70 % ──proved OOM──► no more starts
//!   ▲                    │
//!   └──── a long time without trouble; twice as long after each OOM up there
//! ```
//!
//! Only a *proved* OOM moves it down: one that is certain, or likely with the kernel's counter as a hit. A segfault, a kill
//! or a bare 137 never does. What is known is kept in `ladder.json` for each host, budget and limit: on another machine, or
//! under another limit, other steps may do.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sexton_model::exit::ExitRecord;
use sexton_model::status::LadderStatus;
use sexton_model::units::Bytes;
use sexton_model::verdict::{Answer, Cause, Confidence, Source};
use sexton_model::{SCHEMA_VERSION, Timestamp};

use crate::config::sections::Memory;
use crate::durable;

/// So many situations are remembered.
const PLACES_MAX: usize = 32;
/// Larger than the file can become.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Whether a death is a proved OOM.
pub fn is_proved(record: &ExitRecord) -> bool {
    let is_oom = matches!(
        record.verdict.cause,
        Cause::OomOwnLimit | Cause::OomAncestorLimit | Cause::OomHost | Cause::OomUserspace
    );
    let counter_moved =
        || record.evidence.iter().any(|row| row.source == Source::CgroupOomKill && row.answer == Answer::Hit);
    is_oom
        && match record.verdict.confidence {
            Confidence::Certain => true,
            Confidence::Likely => counter_moved(),
            Confidence::Possible | Confidence::Unknown => false,
        }
}

/// Where budgets were tried: what holds in one place says nothing of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Situation {
    /// `/etc/machine-id`, else the host's name.
    pub host: String,
    /// The smallest limit that binds a prover here, bytes; `null` where none is known.
    pub limit_bytes: Option<u64>,
    /// The full budget, bytes.
    pub budget_bytes: u64,
}

/// Limits that follow from the host's memory differ a little from boot to boot.
const LIMIT_GRAIN: u64 = 1 << 30;

impl Situation {
    /// This host's, for a limit and a full budget in bytes.
    pub fn here(limit: Option<u64>, budget: u64) -> Self {
        let rounded = |limit: u64| match limit / LIMIT_GRAIN {
            0..16 => limit,
            _ => limit.saturating_add(LIMIT_GRAIN / 2) / LIMIT_GRAIN * LIMIT_GRAIN,
        };
        Self { host: host(), limit_bytes: limit.map(rounded), budget_bytes: budget }
    }
}

/// What is known of one situation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    #[serde(flatten)]
    situation: Situation,
    /// The budget that the next start takes, bytes.
    step_bytes: u64,
    /// Since when.
    since: Timestamp,
    /// Steps down since a run was last stable.
    tries: u32,
    /// OOMs on the next larger step after it was tried again: each doubles the time until the next try.
    relapses: u32,
    /// Whether the present step is a try upwards.
    #[serde(default)]
    trying_larger: bool,
    /// Why it is not the full one.
    why: Option<String>,
    /// When it was last used.
    used_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct File {
    schema_version: u32,
    entries: Vec<Known>,
}

/// What `[memory]` says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// Bytes, the largest first; none below the floor, at least one.
    steps: Vec<u64>,
    tries: u32,
    larger_after: Duration,
}

impl Steps {
    /// `None`: no budget is configured, so there is nothing to hand out.
    pub fn of(memory: &Memory) -> Option<Self> {
        let full = memory.budget?;
        let floor = memory.floor.map_or(0, |floor| floor.0);
        let bytes = memory.ladder.iter().filter_map(|step| step.bytes(Some(full)));
        let mut steps: Vec<u64> = bytes.map(|step| step.0).filter(|step| *step >= floor).collect();
        // The full budget is a step whether or not it is written down as one; the floor is one too, where it is configured.
        steps.push(full.0);
        steps.extend(memory.floor.map(|floor| floor.0));
        steps.sort_unstable_by(|a, b| b.cmp(a));
        steps.dedup();
        Some(Self { steps, tries: memory.tries, larger_after: memory.larger_after })
    }

    /// All steps, bytes, the largest first.
    pub fn all(&self) -> &[u64] {
        &self.steps
    }

    fn full(&self) -> u64 {
        self.steps.first().copied().unwrap_or(0)
    }

    /// The largest step that is not larger than `bytes`, else the smallest one: a configuration may have changed.
    fn at_most(&self, bytes: u64) -> u64 {
        let below = self.steps.iter().copied().find(|step| *step <= bytes);
        below.or(self.steps.last().copied()).unwrap_or(bytes)
    }

    fn below(&self, bytes: u64) -> Option<u64> {
        self.steps.iter().copied().find(|step| *step < bytes)
    }

    fn above(&self, bytes: u64) -> Option<u64> {
        self.steps.iter().rev().copied().find(|step| *step > bytes)
    }
}

/// What an ending does to the ladder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Stays,
    /// The next start takes a smaller budget.
    Down {
        /// Bytes.
        from: u64,
        /// Bytes.
        to: u64,
    },
    /// There is none.
    Exhausted(&'static str),
}

/// The ladder in one situation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ladder {
    steps: Steps,
    known: Known,
}

impl Ladder {
    /// As `ladder.json` has it, else at the top.
    pub fn load(path: &Path, steps: Steps, situation: Situation, now: Timestamp) -> Self {
        let known = read(path).into_iter().find(|known| known.situation == situation);
        let mut known = known.unwrap_or_else(|| Known {
            step_bytes: steps.full(),
            situation,
            since: now,
            tries: 0,
            relapses: 0,
            trying_larger: false,
            why: None,
            used_at: now,
        });
        known.step_bytes = steps.at_most(known.step_bytes);
        Self { steps, known }
    }

    /// Keeps it.
    ///
    /// # Errors
    /// The file system's.
    pub fn save(&mut self, path: &Path, now: Timestamp) -> io::Result<()> {
        self.known.used_at = now;
        let mut entries = read(path);
        entries.retain(|known| known.situation != self.known.situation);
        entries.push(self.known.clone());
        entries.sort_by_key(|known| known.used_at);
        let surplus = entries.len().saturating_sub(PLACES_MAX);
        entries.drain(..surplus);
        durable::write_json(path, &File { schema_version: SCHEMA_VERSION, entries })
    }

    /// The situation that it is for.
    pub fn situation(&self) -> &Situation {
        &self.known.situation
    }

    /// The budgets.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// The budget that the next start takes, bytes.
    pub fn budget(&self) -> u64 {
        self.known.step_bytes
    }

    /// Before a start: whether the next larger step is to be tried. Returns the step before, if so. Nothing that runs is
    /// ever stopped for that.
    pub fn before_start(&mut self, now: Timestamp) -> Option<u64> {
        let larger = self.steps.above(self.known.step_bytes)?;
        if self.larger_at()? > now {
            return None;
        }
        let from = std::mem::replace(&mut self.known.step_bytes, larger);
        self.known.since = now;
        self.known.tries = 0;
        self.known.trying_larger = true;
        if larger == self.steps.full() {
            self.known.why = None;
        }
        Some(from)
    }

    /// A run that was handed `budget` and lasted so long has ended in a proved OOM, or not. `stable`: it lasted as long as
    /// a run must to count as stable.
    pub fn after(&mut self, proved_oom: bool, budget: u64, stable: bool, now: Timestamp) -> Step {
        if stable {
            self.known.tries = 0;
        }
        if !proved_oom {
            return Step::Stays;
        }
        // Of a smaller one that the gate chose for one start, or of one that the ladder has left already.
        let from = budget.min(self.known.step_bytes);
        if std::mem::take(&mut self.known.trying_larger) {
            self.known.relapses = self.known.relapses.saturating_add(1);
        }
        let Some(to) = self.steps.below(from) else {
            return Step::Exhausted("it was killed for memory with the smallest budget of [memory] ladder");
        };
        if self.known.tries >= self.steps.tries {
            return Step::Exhausted("it was killed for memory too often ([memory] tries)");
        }
        self.known.tries += 1;
        self.known.step_bytes = to;
        self.known.since = now;
        self.known.why = Some(format!("a run with {} was killed for memory", Bytes(from)));
        Step::Down { from, to }
    }

    /// Back to the top, as somebody wants it who has changed something.
    pub fn reset(&mut self, now: Timestamp) {
        self.known.step_bytes = self.steps.full();
        self.known = Known {
            since: now,
            tries: 0,
            relapses: 0,
            trying_larger: false,
            why: None,
            ..self.known.clone()
        };
    }

    fn larger_at(&self) -> Option<Timestamp> {
        let wait = self
            .steps
            .larger_after
            .saturating_mul(1_u32.checked_shl(self.known.relapses).unwrap_or(u32::MAX));
        self.known.since.checked_add(wait).ok()
    }

    /// For the status.
    pub fn status(&self) -> LadderStatus {
        let is_full = self.known.step_bytes == self.steps.full();
        LadderStatus {
            full_bytes: self.steps.full(),
            step_bytes: self.known.step_bytes,
            steps_bytes: self.steps.steps.clone(),
            reason: self.known.why.clone().filter(|_| !is_full),
            larger_at: self.larger_at().filter(|_| !is_full),
        }
    }
}

fn read(path: &Path) -> Vec<Known> {
    let fits = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_BYTES_MAX);
    let bytes = if fits { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    let file = serde_json::from_slice::<File>(&bytes);
    file.ok()
        .filter(|file| file.schema_version == SCHEMA_VERSION)
        .map(|file| file.entries)
        .unwrap_or_default()
}

/// This host, for [`Situation::host`].
fn host() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let id = read("/etc/machine-id").filter(|id| !id.is_empty() && id != "uninitialized");
    id.or_else(|| read("/proc/sys/kernel/hostname")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
