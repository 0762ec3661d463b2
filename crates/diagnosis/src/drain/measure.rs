//! How much is still to come back, by the best measure that there is.

use sexton_model::drain::DrainMeasure;
use sexton_model::reading::Reading;

use super::{Figures, Start, unknown};

const MIB: u64 = 1 << 20;

/// What is still to come back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    pub(super) by: DrainMeasure,
    /// Bytes above the baseline.
    pub(super) held: Reading<u64>,
    /// A charge, or bytes available.
    pub(super) baseline: Reading<u64>,
}

impl Measured {
    /// `now` against `start`; `kept` bytes are meant to stay.
    pub(super) fn of(start: &Start, now: &Figures, kept: u64) -> Self {
        if let (Some(charge), Some((by, baseline))) = (now.charge_bytes.value(), charge_baseline(start)) {
            let baseline = baseline.saturating_add(kept);
            let held = Reading::Value(charge.saturating_sub(baseline));
            return Self { by, held, baseline: Reading::Value(baseline) };
        }
        if let (Some(available), Some(target)) = (now.available_bytes.value(), available_target(start)) {
            let target = target.saturating_sub(kept);
            let held = Reading::Value(target.saturating_sub(*available));
            return Self { by: DrainMeasure::HostAvailable, held, baseline: Reading::Value(target) };
        }
        // The charge says most, so it is its obstacle that is told.
        let why = match [&now.charge_bytes, &start.baseline.charge_bytes].map(Reading::obstacle) {
            [Some(obstacle), _] | [None, Some(obstacle)] => Reading::Unreadable(obstacle.clone()),
            [None, None] => unknown("neither a charge nor the host's memory from before the drain is known"),
        };
        Self { by: DrainMeasure::None, held: why.clone(), baseline: why }
    }

    /// So much above the baseline counts as back.
    ///
    /// A cgroup of the run's own keeps kernel memory: up to some MiB in all drains that were measured, and per-CPU stocks of
    /// 256 KiB. Where others move the figure too, more is forgiven. Never more than a start would miss: the gate looks at
    /// what is really free.
    pub(super) fn tolerance(&self, held_at_start: u64) -> u64 {
        match self.by {
            DrainMeasure::Charge | DrainMeasure::None => (held_at_start / 256).clamp(16 * MIB, 256 * MIB),
            DrainMeasure::SharedCharge => (held_at_start / 64).clamp(64 * MIB, 1024 * MIB),
            DrainMeasure::HostAvailable => (held_at_start / 64).clamp(128 * MIB, 1024 * MIB),
        }
    }
}

/// In a cgroup of its own: what was charged at the start. In a shared one others have come and gone since; there it is
/// what was charged at the last look, less what the run had mapped then.
fn charge_baseline(start: &Start) -> Option<(DrainMeasure, u64)> {
    let baseline = start.baseline.charge_bytes.value().copied();
    if start.exclusive == Reading::Value(true) {
        return baseline.map(|baseline| (DrainMeasure::Charge, baseline));
    }
    let others = start.alive.charge_bytes.value().zip(start.resident_bytes);
    let others = others.map(|(charge, resident)| charge.saturating_sub(resident));
    // The higher one: what others brought is not waited for, nor what they took away demanded.
    let baseline = [baseline, others].into_iter().flatten().max();
    baseline.map(|baseline| (DrainMeasure::SharedCharge, baseline))
}

fn available_target(start: &Start) -> Option<u64> {
    let baseline = start.baseline.available_bytes.value().copied();
    let after = start.alive.available_bytes.value().zip(start.resident_bytes);
    let after = after.map(|(available, resident)| available.saturating_add(resident));
    [baseline, after].into_iter().flatten().min()
}
