//! How long it will take, and what that rests on.

use sexton_diagnosis::drain::{HISTORY, remember};
use sexton_model::drain::PastDrain;
use sexton_model::process_state::ProcessState;

use crate::stage::*;

fn past(bytes: u64, exiting_seconds: f64) -> PastDrain {
    PastDrain { at: at(0.0), bytes, exiting_seconds, releasing_seconds: 0.0 }
}

#[test]
fn without_rate_and_history_there_is_no_estimate_but_a_reason() {
    let mut stage = Stage::new(start(64 * GIB));
    let report = stage.look(0.0, running(), holding(64 * GIB));
    assert_eq!((report.eta_seconds, report.rate_bytes_per_second), (None, None));
    assert!(report.eta_reason.contains("work"), "{}", report.eta_reason);
    let report = stage.look(1.0, leaving(), holding(64 * GIB));
    assert_eq!(report.eta_seconds, None);
    assert!(report.eta_reason.contains("no earlier drain"), "{}", report.eta_reason);
}

#[test]
fn what_moves_is_estimated_by_its_rate() {
    let mut stage = Stage::new(start(64 * GIB));
    for second in 0..=4 {
        let held = (64 - 8 * second) * GIB;
        let report = stage.look(second as f64, leaving(), holding(held));
        if second > 0 {
            assert_eq!(report.rate_bytes_per_second, Some(8.0 * GIB as f64));
            assert_eq!(report.eta_seconds, Some((8 - second) as f64));
            assert!(report.summary.contains("about"), "{}", report.summary);
        }
    }
}

/// The driver frees small buffers of its own first, at a rate that would make it an hour.
#[test]
fn the_trickle_before_the_flood_is_no_rate_to_go_by() {
    let trickle = |stage: &mut Stage| {
        stage.look(0.0, leaving(), holding(64 * GIB));
        stage.look(2.0, leaving(), holding(64 * GIB - 100 * MIB))
    };
    let report = trickle(&mut Stage::new(start(64 * GIB)));
    assert_eq!(report.eta_seconds, None);
    let report = trickle(&mut Stage::with(start(64 * GIB), vec![past(32 * GIB, 4.0)]));
    assert_eq!(report.eta_seconds, Some(6.0), "8 s in proportion, 2 s of them gone");
    assert_eq!(report.eta_reason, "going by an earlier drain on this host");
}

#[test]
fn history_in_proportion_by_drains_of_a_like_size_and_by_the_middle_one() {
    let history = vec![past(64 * MIB, 9.0), past(32 * GIB, 4.0), past(64 * GIB, 800.0), past(64 * GIB, 8.0)];
    let report = Stage::with(start(64 * GIB), history).look(0.0, leaving(), holding(64 * GIB));
    assert_eq!(report.eta_seconds, Some(8.0), "neither the small one nor the odd one");
}

#[test]
fn a_drain_that_takes_longer_than_ever_says_so() {
    let mut stage = Stage::with(start(64 * GIB), vec![past(64 * GIB, 8.0)]);
    stage.look(0.0, leaving(), holding(64 * GIB));
    let report = stage.look(9.0, leaving(), holding(64 * GIB));
    assert_eq!(report.eta_seconds, None);
    assert!(report.eta_reason.starts_with("it takes longer than an earlier drain"), "{}", report.eta_reason);
}

#[test]
fn a_stall_has_no_estimate() {
    let mut stage = Stage::with(start(64 * GIB), vec![past(64 * GIB, 800.0)]);
    stage.look(0.0, leaving(), holding(64 * GIB));
    let report = stage.look(60.0, leaving(), holding(64 * GIB));
    assert_eq!((report.eta_seconds, report.eta_reason.as_str()), (None, "nothing moves"));
}

#[test]
fn many_looks_in_a_short_time_do_not_shorten_the_window() {
    let mut stage = Stage::new(start(64 * GIB));
    let mut rate = None;
    for tick in 0..2_000_u64 {
        let elapsed = tick as f64 / 1000.0;
        rate = stage.look(elapsed, leaving(), holding(64 * GIB - tick * 8 * MIB)).rate_bytes_per_second;
    }
    let expected = 8000.0 * MIB as f64;
    assert!((rate.unwrap() / expected - 1.0).abs() < 0.05, "{rate:?}");
}

#[test]
fn history_is_bounded() {
    let mut history = Vec::new();
    for number in 0..100 {
        remember(&mut history, past(number, 1.0));
    }
    assert_eq!(history.len(), HISTORY);
    assert_eq!(history.last().map(|past| past.bytes), Some(99));
}

#[test]
fn gone_without_a_sign_of_death_before_still_has_its_times() {
    let mut stage = Stage::new(start(GIB));
    stage.look(0.0, ProcessState::Gone, holding(GIB));
    stage.look(2.0, ProcessState::Gone, holding(0));
    let past = stage.tracker.past(at(2.0)).unwrap();
    assert_eq!((past.exiting_seconds, past.releasing_seconds), (0.0, 2.0));
}
