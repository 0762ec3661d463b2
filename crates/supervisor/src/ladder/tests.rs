use super::*;

use proptest::prelude::*;
use sexton_model::units::Bytes;
use sexton_model::verdict::Evidence;

use crate::config::values;

const GIB: u64 = 1 << 30;
const HOUR: Duration = Duration::from_secs(3_600);

fn memory() -> Memory {
    Memory { budget: Some(Bytes(400 * GIB)), floor: Some(Bytes(200 * GIB)), ..Memory::default() }
}

fn situation() -> Situation {
    Situation { host: "h".to_owned(), limit_bytes: Some(500 * GIB), budget_bytes: 400 * GIB }
}

fn at(hours: u32) -> Timestamp {
    Timestamp::UNIX_EPOCH.checked_add(HOUR * hours).unwrap()
}

fn ladder(memory: &Memory) -> Ladder {
    Ladder::load(Path::new("/no/such/file"), Steps::of(memory).unwrap(), situation(), at(0))
}

#[test]
fn steps_are_shares_and_sizes_from_the_budget_down_to_the_floor() {
    let steps = |memory: &Memory| Steps::of(memory).unwrap().steps;
    assert_eq!(steps(&memory()), [400 * GIB, 340 * GIB, 280 * GIB, 200 * GIB]);
    let sizes = Memory {
        ladder: vec![values::Step::Size(Bytes(300 * GIB)), values::Step::Percent(25)],
        floor: Some(Bytes(250 * GIB)),
        ..memory()
    };
    assert_eq!(steps(&sizes), [400 * GIB, 300 * GIB, 250 * GIB]);
    assert_eq!(steps(&Memory { floor: None, ..memory() }), [400 * GIB, 340 * GIB, 280 * GIB]);
    assert_eq!(Steps::of(&Memory { budget: None, ..memory() }), None);
}

#[test]
fn each_proved_oom_is_a_step_down_until_there_is_none() {
    let mut ladder = ladder(&memory());
    for (from, to) in [(400, 340), (340, 280), (280, 200)] {
        let budget = ladder.budget();
        assert_eq!(ladder.after(true, budget, false, at(1)), Step::Down { from: from * GIB, to: to * GIB });
    }
    assert!(matches!(ladder.after(true, 200 * GIB, false, at(1)), Step::Exhausted(_)));
    assert_eq!(ladder.budget(), 200 * GIB);
}

#[test]
fn after_so_many_steps_in_a_row_it_stays_down_and_a_stable_run_between_them_counts() {
    let mut ladder = ladder(&Memory { tries: 1, ..memory() });
    assert!(matches!(ladder.after(true, 400 * GIB, false, at(1)), Step::Down { .. }));
    assert!(matches!(ladder.clone().after(true, 340 * GIB, false, at(1)), Step::Exhausted(_)));
    assert!(matches!(ladder.after(true, 340 * GIB, true, at(9)), Step::Down { .. }));
}

#[test]
fn what_is_no_oom_moves_nothing() {
    let mut ladder = ladder(&memory());
    let before = ladder.budget();
    assert_eq!(ladder.after(false, before, false, at(1)), Step::Stays);
    assert_eq!(ladder.budget(), before);
}

#[test]
fn the_way_back_up_is_tried_at_a_start_and_more_rarely_after_each_relapse() {
    let mut ladder = ladder(&memory());
    ladder.after(true, 400 * GIB, false, at(0));
    assert_eq!(ladder.before_start(at(5)), None, "six hours are configured");
    assert_eq!(ladder.before_start(at(6)), Some(340 * GIB));
    assert_eq!((ladder.budget(), ladder.status().reason), (400 * GIB, None));
    ladder.after(true, 400 * GIB, false, at(7));
    assert_eq!(ladder.budget(), 340 * GIB);
    assert_eq!(ladder.before_start(at(7 + 11)), None, "twice as long");
    assert_eq!(ladder.status().larger_at, Some(at(7 + 12)));
    assert_eq!(ladder.before_start(at(7 + 12)), Some(340 * GIB));
    assert_eq!(ladder.before_start(at(1000)), None, "the top");
}

#[test]
fn a_budget_that_the_gate_chose_counts_as_tried_and_one_that_was_left_long_ago_does_not_go_up() {
    let mut ladder = ladder(&memory());
    assert_eq!(ladder.after(true, 280 * GIB, false, at(1)), Step::Down { from: 280 * GIB, to: 200 * GIB });
    assert!(matches!(ladder.after(true, 400 * GIB, false, at(1)), Step::Exhausted(_)));
    assert_eq!(ladder.budget(), 200 * GIB);
}

#[test]
fn what_worked_is_remembered_for_each_host_and_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ladder.json");
    let load = |situation: Situation| Ladder::load(&path, Steps::of(&memory()).unwrap(), situation, at(0));
    let mut here = load(situation());
    here.after(true, 400 * GIB, false, at(1));
    here.save(&path, at(1)).unwrap();
    assert_eq!(load(situation()).budget(), 340 * GIB);
    let elsewhere = Situation { host: "other".to_owned(), ..situation() };
    assert_eq!(load(elsewhere.clone()).budget(), 400 * GIB);
    assert_eq!(load(Situation { limit_bytes: Some(600 * GIB), ..situation() }).budget(), 400 * GIB);
    let mut there = load(elsewhere);
    there.save(&path, at(2)).unwrap();
    assert_eq!(load(situation()).budget(), 340 * GIB, "one more entry takes none away");
    // Other steps: never more than what was known to be too much.
    let coarse = Memory { ladder: vec![values::Step::Percent(50)], ..memory() };
    let coarse = Ladder::load(&path, Steps::of(&coarse).unwrap(), situation(), at(2));
    assert_eq!(coarse.budget(), 200 * GIB);
    std::fs::write(&path, "{").unwrap();
    assert_eq!(load(situation()).budget(), 400 * GIB, "a damaged file is an empty one");
}

#[test]
fn limits_that_follow_from_the_hosts_memory_may_differ_a_little() {
    let limit = |bytes| Situation::here(Some(bytes), 1).limit_bytes;
    assert_eq!(limit(500 * GIB + 12_345), limit(500 * GIB - 54_321));
    assert_ne!(limit(500 * GIB), limit(502 * GIB));
    assert_eq!(limit(123 << 20), Some(123 << 20));
}

fn record(cause: Cause, confidence: Confidence, counter: Answer) -> ExitRecord {
    let mut record: ExitRecord = serde_json::from_value(serde_json::json!({
        "schema_version": 1, "run_id": "r", "command": ["p"], "pid": 1, "exe_sha256": null,
        "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:01Z", "duration_seconds": 1.0,
        "wait": {"kind": "killed", "code": null, "signal": 9, "core": false},
        "verdict": {"cause": "unknown", "level": null, "confidence": "unknown", "summary": ""},
        "evidence": [], "resources": {"max_rss_bytes": null, "cgroup_peak_bytes": null, "user_seconds": null,
        "system_seconds": null}, "in_flight": [], "last_words": "", "last_words_truncated": false,
        "output_dropped_bytes": 0
    }))
    .unwrap();
    record.verdict.cause = cause;
    record.verdict.confidence = confidence;
    record.evidence = vec![Evidence {
        source: Source::CgroupOomKill,
        answer: counter,
        detail: String::new(),
        at: Timestamp::UNIX_EPOCH,
    }];
    record
}

#[test]
fn proved_is_certain_or_likely_with_the_counter_and_nothing_else() {
    use Answer::{Empty, Hit, Unreadable};
    use Confidence::{Certain, Likely, Possible};
    let proved = |cause, confidence, counter| is_proved(&record(cause, confidence, counter));
    for cause in [Cause::OomOwnLimit, Cause::OomAncestorLimit, Cause::OomHost, Cause::OomUserspace] {
        assert!(proved(cause, Certain, Unreadable) && proved(cause, Likely, Hit), "{cause}");
        assert!(!proved(cause, Likely, Unreadable) && !proved(cause, Likely, Empty), "{cause}");
        assert!(!proved(cause, Possible, Hit), "{cause}");
    }
    for cause in [
        Cause::OomSuspected,
        Cause::Segfault,
        Cause::KilledUnknown,
        Cause::KilledByProcess,
        Cause::KilledBySupervisor,
        Cause::ErrorExit,
        Cause::Watchdog,
        Cause::Unknown,
    ] {
        assert!(!proved(cause, Certain, Hit), "{cause}");
    }
}

proptest! {
    /// Whatever happens, the budget is a step: never below the floor, never above what is configured.
    #[test]
    fn the_budget_is_always_one_of_the_steps(
        moves in prop::collection::vec((any::<bool>(), any::<bool>(), 0_u64..500, 0_u32..20), 0..60),
    ) {
        let mut ladder = ladder(&memory());
        let mut hours = 0;
        for (oom, stable, budget, later) in moves {
            hours += later;
            if stable {
                ladder.before_start(at(hours));
            }
            let before = ladder.budget();
            let step = ladder.after(oom, budget * GIB, stable, at(hours));
            prop_assert!(ladder.budget() <= before);
            prop_assert!(oom || step == Step::Stays);
            prop_assert!(ladder.steps().all().contains(&ladder.budget()));
            prop_assert!(ladder.budget() >= 200 * GIB);
        }
    }
}
