//! May the next run start, and with how much?

use sexton_model::drain::{DrainPhase, DrainReport};
use sexton_model::gate::{GateReport, Need};
use sexton_model::headroom::{Headroom, HeadroomLimit, LimitSource};
use sexton_model::reading::Reading;
use sexton_model::units::Bytes;

/// Decides. `releasing`: the drain of the run before, where it is not over.
///
/// | what is known | the gate |
/// |---|---|
/// | the process before is not gone | shut: one prover at a time, whatever is free |
/// | need, headroom | open when need and reserve fit, also while other memory is still coming back |
/// | no need | shut while memory comes back, then open |
/// | no headroom | open, and said: a figure that cannot be read keeps nobody out |
pub fn decide(
    need: Option<Need>,
    reserve: u64,
    headroom: Headroom,
    releasing: Option<&DrainReport>,
) -> GateReport {
    let drain = releasing.filter(|drain| drain.phase != DrainPhase::Released);
    let still_releasing =
        drain.and_then(|drain| drain.held_bytes.value().copied()).unwrap_or(headroom.being_released_bytes);
    let wanted = need.map(|need| need.bytes.saturating_add(reserve));
    let short = match (wanted, &headroom.bytes) {
        (Some(wanted), Reading::Value(there)) => wanted.saturating_sub(*there),
        _ => 0,
    };
    let too_small = wanted.and_then(|wanted| {
        headroom.limits.iter().find(|limit| limit.limit_bytes.is_some_and(|bytes| bytes < wanted)).cloned()
    });
    let is_alive = drain.is_some_and(|drain| drain.phase < DrainPhase::Releasing);
    let waits_for_all = wanted.is_none() && drain.is_some_and(|drain| !drain.stalled);
    let open = !is_alive && short == 0 && !waits_for_all;
    let (eta_seconds, eta_reason) = match drain {
        _ if open => (Some(0.0), "nothing is waited for".to_owned()),
        _ if too_small.is_some() => (None, "it is more than a limit allows".to_owned()),
        Some(drain) => until_enough(drain, short),
        None => (None, "no memory of ours is on its way back: what is missing is held by others".to_owned()),
    };
    let binding_limit = headroom.binding_limit.as_ref().map(ToString::to_string);
    let summary = in_words(
        &Known { need, reserve, short, open, is_alive, still_releasing, too_small: too_small.as_ref() },
        &headroom,
        drain,
    );
    GateReport {
        open,
        need_bytes: need.map(|need| need.bytes),
        need_source: need.map(|need| need.source),
        reserve_bytes: reserve,
        headroom,
        can_ever_fit: too_small.is_none(),
        short_by_bytes: short,
        binding_limit,
        still_releasing_bytes: still_releasing,
        eta_seconds,
        eta_reason,
        summary,
    }
}

/// The largest of `steps` (budgets, bytes) that is not below `floor` and fits; each needs `overhead` bytes besides itself
/// (kernel memory, buffers that no budget counts) and leaves `reserve` free. None: not even the smallest does. Where the
/// headroom is not known, the largest.
pub fn largest_that_fits(
    steps: &[u64],
    floor: u64,
    overhead: u64,
    reserve: u64,
    headroom: &Headroom,
) -> Option<u64> {
    let allowed = steps.iter().copied().filter(|step| *step >= floor);
    match headroom.bytes {
        Reading::Value(there) => {
            let fits = |step: &u64| step.saturating_add(overhead).saturating_add(reserve) <= there;
            allowed.filter(fits).max()
        }
        Reading::Absent | Reading::Unreadable(_) => allowed.max(),
    }
}

/// When `short` more bytes are back, going by the drain: part of the way at its present rate, else all of it.
fn until_enough(drain: &DrainReport, short: u64) -> (Option<f64>, String) {
    let held = drain.held_bytes.value().copied();
    if let Some(held) = held
        && short > held
    {
        let why = format!(
            "when the {} that the ended run still holds are back, {} are missing all the same",
            Bytes(held),
            Bytes(short - held)
        );
        return (None, why);
    }
    let is_releasing = drain.phase == DrainPhase::Releasing && short > 0;
    match (drain.eta_seconds, drain.rate_bytes_per_second) {
        (Some(eta), Some(rate)) if is_releasing && rate > 0.0 => {
            (Some(eta.min(short as f64 / rate)), drain.eta_reason.clone())
        }
        (eta, _) => (eta, drain.eta_reason.clone()),
    }
}

struct Known<'a> {
    need: Option<Need>,
    reserve: u64,
    short: u64,
    open: bool,
    is_alive: bool,
    still_releasing: u64,
    /// A limit that is smaller than what is wanted, whatever is in use.
    too_small: Option<&'a HeadroomLimit>,
}

fn in_words(known: &Known<'_>, headroom: &Headroom, drain: Option<&DrainReport>) -> String {
    let wanted = match known.need {
        Some(need) if known.reserve > 0 => {
            format!("{} and a reserve of {}", Bytes(need.bytes), Bytes(known.reserve))
        }
        Some(need) => Bytes(need.bytes).to_string(),
        None => "an unknown amount".to_owned(),
    };
    let limit = headroom.binding_limit.as_ref().map(ToString::to_string).unwrap_or_default();
    if known.is_alive {
        let what = drain.map(|drain| drain.summary.clone()).unwrap_or_default();
        return format!("the run before is not gone: {what}");
    }
    if known.open {
        return match (&headroom.bytes, known.need) {
            (Reading::Value(_), Some(_)) => format!("there is room for {wanted}; {limit}"),
            (Reading::Value(_), None) => format!("what the prover needs is not known; {limit}"),
            (missing, _) => format!("what is free cannot be told ({missing}); the start is tried"),
        };
    }
    let coming = match (known.still_releasing, drain) {
        (0, _) | (_, None) => String::new(),
        (bytes, Some(drain)) if drain.stalled => {
            format!("; {} of the run before do not come back: {}", Bytes(bytes), drain.summary)
        }
        (bytes, Some(_)) => format!("; {} of the run before are on their way back", Bytes(bytes)),
    };
    if let Some(limit) = known.too_small {
        let grows = match limit.source {
            LimitSource::HostAvailable => " (the memory of some virtual machines grows as it is used)",
            _ => "",
        };
        format!("{wanted} can never fit: {limit}{grows}{coming}")
    } else if known.short > 0 {
        format!("{wanted} do not fit, {} are missing; {limit}{coming}", Bytes(known.short))
    } else {
        format!("what the prover needs is not known, so all memory of the run before is waited for{coming}")
    }
}
