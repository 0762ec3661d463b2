//! How long will it take?

use std::collections::VecDeque;
use std::time::Duration;

use sexton_model::drain::{DrainMeasure, DrainPhase, DrainReport, PastDrain};
use sexton_model::units::Bytes;

/// Drains that are remembered of a host.
pub const HISTORY: usize = 32;

/// Adds `past` and drops the oldest above [`HISTORY`].
pub fn remember(history: &mut Vec<PastDrain>, past: PastDrain) {
    history.push(past);
    let surplus = history.len().saturating_sub(HISTORY);
    history.drain(..surplus);
}

/// The rate is that of the last second: a drain goes in stages of very different speed.
const WINDOW: Duration = Duration::from_secs(1);
/// Two looks that are closer tell more of when they were taken than of the rate.
const SPAN_LEAST: Duration = Duration::from_millis(300);
/// Points of the window; one that comes sooner than the window divided by this takes the place of the last one.
const POINTS_MAX: u32 = 64;

/// How fast memory comes back.
#[derive(Debug, Clone, Default)]
pub(super) struct Rate {
    /// When, and bytes held. The oldest is the first at or before the window, so that the window is always full.
    points: VecDeque<(Duration, u64)>,
}

impl Rate {
    pub(super) fn note(&mut self, at: Duration, held: u64) {
        if let [.., before, last] = self.points.make_contiguous()
            && last.0.saturating_sub(before.0) < WINDOW / POINTS_MAX
        {
            *last = (at, held);
        } else {
            self.points.push_back((at, held));
        }
        while self.points.get(1).is_some_and(|second| second.0 + WINDOW <= at) {
            self.points.pop_front();
        }
    }

    /// None until there are two looks apart. Memory that grows is a rate of 0.
    pub(super) fn bytes_per_second(&self) -> Option<f64> {
        let ((then, held_then), (now, held_now)) = (self.points.front()?, self.points.back()?);
        let span = now.saturating_sub(*then);
        (span >= SPAN_LEAST).then(|| held_then.saturating_sub(*held_now) as f64 / span.as_secs_f64())
    }
}

/// What an estimate goes by.
pub(super) struct Known<'a> {
    pub(super) report: &'a DrainReport,
    pub(super) history: &'a [PastDrain],
    pub(super) held_at_start: u64,
    /// Since the first sign of death.
    pub(super) dying_for: Option<Duration>,
    pub(super) gone: bool,
}

/// Seconds until the memory is back, and what that rests on; or why it cannot be told.
pub(super) fn eta(known: &Known<'_>) -> (Option<f64>, String) {
    let report = known.report;
    let not = |why: &str| (None, why.to_owned());
    if report.phase == DrainPhase::Released {
        return (Some(0.0), "released".to_owned());
    }
    if report.stalled {
        return not("nothing moves");
    }
    if report.phase == DrainPhase::Quiescing {
        return not("it depends on the work that the prover still does");
    }
    if report.core_dumping {
        return not("a core dump is being written, and how far it is cannot be seen");
    }
    let Some(dying_for) = known.dying_for else { return not("the process has not begun to end") };
    if report.measure == DrainMeasure::None {
        return not("how much is to come back is not known");
    }
    if let Some(seconds) = by_rate(known) {
        return (Some(seconds), "at the present rate".to_owned());
    }
    by_history(known, dying_for.as_secs_f64())
}

/// Before a sixteenth is back the rate is that of the driver's own small buffers, hundreds of times below what follows.
fn by_rate(known: &Known<'_>) -> Option<f64> {
    let held = *known.report.held_bytes.value()?;
    let rate = known.report.rate_bytes_per_second?;
    let has_begun = known.held_at_start.saturating_sub(held) >= known.held_at_start / 16;
    (has_begun && rate > 0.0).then(|| held as f64 / rate)
}

/// Drains of this host in proportion to their bytes: half of those of a size like ours took longer than this.
fn by_history(known: &Known<'_>, dying_for: f64) -> (Option<f64>, String) {
    let ours = known.held_at_start.max(1);
    let usable = |past: &&PastDrain| past.bytes > 0;
    let of_our_size = |past: &&PastDrain| past.bytes >= ours / 4 && past.bytes / 4 <= ours;
    let (alike, others): (Vec<_>, Vec<_>) = known.history.iter().filter(usable).partition(of_our_size);
    let chosen = if alike.is_empty() { others } else { alike };
    let mut per_byte: Vec<f64> = chosen.iter().map(|past| past.seconds() / past.bytes as f64).collect();
    per_byte.sort_by(f64::total_cmp);
    let Some(median) = per_byte.get(per_byte.len() / 2) else {
        let state = if known.gone {
            "memory does not come back yet"
        } else {
            "its memory has not begun to come back"
        };
        return (None, format!("{state}, and there is no earlier drain on this host to go by"));
    };
    let expected = median * ours as f64;
    let count = match chosen.len() {
        1 => "an earlier drain".to_owned(),
        count => format!("{count} earlier drains"),
    };
    if expected > dying_for {
        (Some(expected - dying_for), format!("going by {count} on this host"))
    } else {
        (
            None,
            format!(
                "it takes longer than {count} on this host: {} were back after {expected:.1} s",
                Bytes(ours)
            ),
        )
    }
}
