use super::*;
use proptest::prelude::*;
use sexton_model::pipeline::{
    Allocations, Buffers, Counters, MemoryStatus, PipelinePartition, SynthesisStatus,
};

const STALL: Duration = Duration::from_secs(600);
const LIMITS: Limits =
    Limits { stall: Some(STALL), silence: Duration::from_secs(60), gap: Duration::from_secs(30) };

pub(crate) fn page(completed: u64, jobs: &[(&str, &str)]) -> PipelineStatus {
    PipelineStatus {
        schema_version: None,
        uptime_secs: 1.0,
        memory: MemoryStatus { total_bytes: None, used_bytes: 0, available_bytes: None, note: None },
        synthesis: SynthesisStatus { max_concurrent: 4, active: 0 },
        pipelines: jobs.iter().map(|(id, states)| job(id, states)).collect(),
        gpu_workers: Vec::new(),
        allocations: Allocations::default(),
        counters: Counters { total_completed: completed, ..Counters::default() },
        buffers: Buffers::default(),
        state: None,
        quiesced: None,
        run_id: None,
        version: None,
        queue: None,
        cpu_workers: None,
        jobs: None,
        timings: None,
        last_error: None,
    }
}

/// A letter a partition: `p`ending, `s`ynthesizing, `w`aiting for the GPU, `g`pu, `d`one, `f`ailed.
fn job(id: &str, states: &str) -> PipelineJob {
    let state = |letter| match letter {
        'p' => PartitionState::Pending,
        's' => PartitionState::Synthesizing,
        'w' => PartitionState::SynthDone,
        'g' => PartitionState::Gpu,
        'd' => PartitionState::Done,
        _ => PartitionState::Failed,
    };
    let partition =
        |(index, letter)| PipelinePartition { index, state: state(letter), synth_ms: None, gpu_ms: None };
    PipelineJob {
        job_id: id.to_owned(),
        proof_kind: "porep-c2".to_owned(),
        started_secs_ago: 0.0,
        total_partitions: states.len(),
        partitions_done: states.matches('d').count(),
        partitions: states.chars().enumerate().map(partition).collect(),
        circuit: None,
        priority: None,
    }
}

/// Looks every 10 s from `from` to `to` seconds at the same page, and says what changed, with when.
fn watch(progress: &mut Progress, from: u64, to: u64, page: &PipelineStatus) -> Vec<(u64, Change)> {
    let looks = (from..=to).step_by(10);
    looks
        .flat_map(|second| {
            let changes = progress.answered(Duration::from_secs(second), page);
            changes.into_iter().map(move |change| (second, change))
        })
        .collect()
}

#[test]
fn a_stall_is_told_once_with_its_jobs_and_its_end_once() {
    let mut progress = Progress::new(LIMITS);
    let told = watch(&mut progress, 0, 2_000, &page(3, &[("a", "ddgp")]));
    let [(600, Change::Stalled(stall))] = &told[..] else { panic!("{told:?}") };
    assert!(stall.in_hand);
    let a = InFlight { id: "a".into(), circuit: "porep-c2".into(), partitions_total: 4, partitions_done: 2 };
    assert_eq!(stall.in_flight, [a]);
    let told = watch(&mut progress, 2_010, 2_500, &page(3, &[("a", "dddg")]));
    assert_eq!(told, [(2_010, Change::Moving { stalled_seconds: 2_010.0, in_flight: 1 })]);
}

#[test]
fn any_partition_of_any_job_that_ends_is_progress() {
    let mut progress = Progress::new(LIMITS);
    for (from, completed, states) in [(0, 3, "gp"), (590, 3, "dg"), (1_180, 4, "dg"), (1_770, 4, "dd")] {
        let told = watch(&mut progress, from, from + 580, &page(completed, &[("a", states), ("b", "pp")]));
        assert_eq!(told, [], "{from}");
    }
}

#[test]
fn states_failures_and_new_jobs_are_no_progress() {
    let mut progress = Progress::new(LIMITS);
    watch(&mut progress, 0, 290, &page(3, &[("a", "sp")]));
    let mut failing = page(3, &[("a", "gw"), ("b", "sf"), ("c", "s")]);
    failing.counters.total_failed = 9;
    let told = watch(&mut progress, 300, 600, &failing);
    let [(600, Change::Stalled(stall))] = &told[..] else { panic!("{told:?}") };
    let ids: Vec<&str> = stall.in_flight.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids, ["a", "c"]);
}

#[test]
fn without_work_nothing_stalls_and_the_clock_begins_with_the_work() {
    let mut progress = Progress::new(LIMITS);
    assert_eq!(watch(&mut progress, 0, 5_000, &page(3, &[("old", "dd"), ("failed", "dfp")])), []);
    assert!(progress.in_flight().is_empty());
    assert_eq!(watch(&mut progress, 5_010, 5_600, &page(3, &[("a", "s")])), []);
    let told = watch(&mut progress, 5_610, 5_610, &page(3, &[("a", "s")]));
    assert!(matches!(told[..], [(_, Change::Stalled(_))]), "{told:?}");
}

#[test]
fn a_stall_ends_when_its_jobs_are_gone() {
    let mut progress = Progress::new(LIMITS);
    watch(&mut progress, 0, 600, &page(3, &[("a", "g")]));
    let told = progress.answered(Duration::from_secs(610), &page(3, &[]));
    assert_eq!(told, [Change::Moving { stalled_seconds: 610.0, in_flight: 0 }]);
}

#[test]
fn jobs_that_cuzk_lists_for_ever_are_told_once_and_hide_no_later_stall() {
    let mut progress = Progress::new(LIMITS);
    // Its second partition failed on the GPU: shown as done, the rest never begins.
    let ghost = ("ghost", "ddpp");
    let told = watch(&mut progress, 0, 5_000, &page(3, &[ghost]));
    let [(600, Change::Stalled(stall))] = &told[..] else { panic!("{told:?}") };
    assert!(!stall.in_hand);
    assert!(progress.in_flight().is_empty());
    let told = watch(&mut progress, 5_010, 6_000, &page(3, &[ghost, ("b", "g")]));
    let [(5_610, Change::Stalled(stall))] = &told[..] else { panic!("{told:?}") };
    assert_eq!((stall.in_hand, stall.in_flight.len(), stall.in_flight[0].id.as_str()), (true, 1, "b"));
}

#[test]
fn a_job_that_was_told_to_be_in_nobodys_hand_counts_again_once_it_changes() {
    let mut progress = Progress::new(LIMITS);
    watch(&mut progress, 0, 1_000, &page(3, &[("a", "dp")]));
    let told = watch(&mut progress, 1_010, 1_610, &page(3, &[("a", "dg")]));
    let [(1_610, Change::Stalled(stall))] = &told[..] else { panic!("{told:?}") };
    assert!(stall.in_hand);
}

#[test]
fn silence_is_told_once_and_so_is_its_end() {
    let mut progress = Progress::new(LIMITS);
    let at = Duration::from_secs;
    assert_eq!(progress.answered(at(0), &page(0, &[])), []);
    let told: Vec<_> =
        (10..=200).step_by(10).filter_map(|s| progress.unanswered(at(s), "it hangs")).collect();
    assert_eq!(told, [Change::Silent { seconds: 60.0, why: "it hangs".into() }]);
    assert_eq!(progress.answered(at(210), &page(0, &[])), [Change::Answering { silent_seconds: 200.0 }]);
    assert_eq!(progress.unanswered(at(220), "again"), None);
}

#[test]
fn a_stall_is_not_told_while_nothing_is_known_of_it_but_that_time_counts() {
    let mut progress = Progress::new(LIMITS);
    let at = Duration::from_secs;
    let stuck = page(0, &[("a", "g")]);
    progress.answered(at(0), &stuck);
    let told: Vec<_> =
        (10..=700).step_by(10).filter_map(|s| progress.unanswered(at(s), "it hangs")).collect();
    assert!(matches!(told[..], [Change::Silent { .. }]), "{told:?}");
    assert_eq!(progress.in_flight().len(), 1);
    let told = progress.answered(at(710), &stuck);
    assert!(matches!(told[..], [Change::Answering { .. }, Change::Stalled(_)]), "{told:?}");
}

#[test]
fn time_in_which_we_were_frozen_too_does_not_count() {
    let mut progress = Progress::new(LIMITS);
    let working = page(0, &[("a", "g")]);
    watch(&mut progress, 0, 100, &working);
    assert_eq!(watch(&mut progress, 90_000, 90_400, &working), []);
    assert_eq!(progress.unanswered(Duration::from_secs(190_000), "it is frozen"), None);
}

#[test]
fn without_a_limit_only_jobs_and_silence_are_followed() {
    let mut progress = Progress::new(Limits { stall: None, ..LIMITS });
    assert_eq!(watch(&mut progress, 0, 10_000, &page(3, &[("a", "g")])), []);
    assert_eq!(progress.in_flight().len(), 1);
}

proptest! {
    /// Whatever a prover says: stalls and their ends alternate, and no stall is told sooner than its limit.
    #[test]
    fn changes_alternate(looks in prop::collection::vec((0u64..200, 0u64..3, "[pswgdf]{0,4}", any::<bool>()), 1..200)) {
        let mut progress = Progress::new(LIMITS);
        let (mut now, mut stalled, mut silent) = (Duration::ZERO, false, false);
        for (pause, completed, states, answers) in looks {
            now += Duration::from_secs(pause);
            let changes = if answers {
                progress.answered(now, &page(completed, &[("a", &states)]))
            } else {
                progress.unanswered(now, "no").into_iter().collect()
            };
            for change in changes {
                match change {
                    Change::Stalled(stall) => {
                        prop_assert!(!stalled && stall.seconds >= 600.0 && !stall.in_flight.is_empty());
                        stalled = stall.in_hand;
                    }
                    Change::Moving { .. } => prop_assert!(std::mem::take(&mut stalled)),
                    Change::Silent { seconds, .. } => {
                        prop_assert!(!std::mem::replace(&mut silent, true) && seconds >= 60.0);
                    }
                    Change::Answering { .. } => prop_assert!(std::mem::take(&mut silent)),
                }
            }
        }
    }
}
