//! The rules of a job's life, told by calling them with made-up moments.

use serde_json::json;
use sexton_control::prover::ProofFormat;
use sexton_model::pipeline::Priority;

use super::super::backend::{Document, Proved};
use super::*;

const ANSWERS: usize = 4;

fn ledger() -> Ledger {
    Ledger::new(Limits { queue_jobs: 8, answers: ANSWERS })
}

fn request(id: &str) -> ProofRequest {
    ProofRequest {
        id: Some(id.to_owned()),
        circuit: "mimc".to_owned(),
        inputs: json!({"size": "2^4", "seed": 1}),
        priority: Priority::Normal,
        deadline_seconds: None,
    }
}

fn submit(ledger: &mut Ledger, request: ProofRequest, now: Instant) -> Result<(Accepted, bool), SubmitError> {
    let statement = Statement::mimc(4, Some(1)).unwrap();
    ledger.submit(request.id.clone().unwrap(), request, statement, now)
}

fn proved() -> Ending {
    let document = Document { proof: json!({"a": 1}), public: json!([2]) };
    let proved =
        Proved { key_id: "k".into(), development_key: true, native: document.clone(), snarkjs: document };
    Ending::Done(Box::new(proved))
}

fn state(ledger: &Ledger, id: &str) -> JobState {
    ledger.job(id).unwrap().state()
}

#[test]
fn a_job_goes_through_its_stages_and_each_is_timed() {
    let (mut ledger, start) = (ledger(), Instant::now());
    let at = |ms| start + Duration::from_millis(ms);
    submit(&mut ledger, request("a"), at(0)).unwrap();
    let task = ledger.take(at(10)).unwrap();
    ledger.enter(task.sequence, Stage::Synthesis, at(12));
    assert_eq!(state(&ledger, "a"), JobState::Synthesizing);
    ledger.enter(task.sequence, Stage::Prove, at(15));
    assert_eq!(state(&ledger, "a"), JobState::Proving);
    ledger.enter(task.sequence, Stage::Verify, at(115));
    assert!(ledger.end(task.sequence, proved(), at(120)));

    let answer = ledger.job("a").unwrap().answer(ProofFormat::Native, at(999));
    let timings = answer.timings;
    assert_eq!((timings.queued_us, timings.key_us, timings.synthesis_us), (10_000, Some(2_000), Some(3_000)));
    assert_eq!(
        (timings.prove_us, timings.verify_us, timings.total_us),
        (Some(100_000), Some(5_000), 120_000)
    );
    assert_eq!((answer.state, answer.proof, answer.request), (JobState::Done, Some(json!({"a": 1})), None));
    assert_eq!(ledger.totals()["mimc"].stages.prove_us, 100_000);
}

/// A public GPU prover mixed the partitions of two proofs that came under one id.
#[test]
fn one_id_is_one_job() {
    let (mut ledger, now) = (ledger(), Instant::now());
    assert!(submit(&mut ledger, request("a"), now).unwrap().1);
    let (again, new) = submit(&mut ledger, request("a"), now).unwrap();
    assert_eq!((again.id.as_str(), new, ledger.queue().len()), ("a", false, 1));

    let other = ProofRequest { priority: Priority::High, ..request("a") };
    assert_eq!(submit(&mut ledger, other, now).unwrap_err(), SubmitError::Conflict("a".into()));

    ledger.quiesce(true);
    assert!(
        submit(&mut ledger, request("a"), now).is_ok(),
        "a lost answer can be asked for again at any time"
    );
    assert_eq!(submit(&mut ledger, request("b"), now).unwrap_err(), SubmitError::Quiesced);
}

#[test]
fn a_job_is_answered_once_whatever_comes_later() {
    let (mut ledger, now) = (ledger(), Instant::now());
    submit(&mut ledger, request("a"), now).unwrap();
    let task = ledger.take(now).unwrap();
    let cancellation = ledger.cancel("a", now).unwrap();
    assert_eq!((cancellation.state, cancellation.result_discarded), (JobState::Cancelled, true));
    assert!(!ledger.end(task.sequence, proved(), now));
    ledger.enter(task.sequence, Stage::Verify, now);
    assert_eq!(state(&ledger, "a"), JobState::Cancelled);
    assert!(ledger.job("a").unwrap().answer(ProofFormat::Native, now).proof.is_none());

    let again = ledger.cancel("a", now).unwrap();
    assert_eq!((again.was, again.result_discarded), (JobState::Cancelled, false));
    let totals = &ledger.totals()["mimc"];
    assert_eq!((totals.done, totals.cancelled), (0, 1));
}

#[test]
fn a_cancelled_waiting_job_is_never_taken() {
    let (mut ledger, now) = (ledger(), Instant::now());
    submit(&mut ledger, request("a"), now).unwrap();
    assert_eq!(ledger.cancel("a", now).unwrap().was, JobState::Queued);
    assert!(ledger.take(now).is_none());
    assert!(ledger.cancel("b", now).is_none());
}

/// The late result of a cancelled job must not become that of a new job under the same id.
#[test]
fn a_result_never_reaches_another_job_of_the_same_id() {
    let (mut ledger, now) = (ledger(), Instant::now());
    submit(&mut ledger, request("a"), now).unwrap();
    let old = ledger.take(now).unwrap();
    ledger.cancel("a", now);
    for n in 0..ANSWERS {
        submit(&mut ledger, request(&format!("filler-{n}")), now).unwrap();
        ledger.cancel(&format!("filler-{n}"), now);
    }
    assert!(ledger.job("a").is_none(), "forgotten for newer answers");
    submit(&mut ledger, request("a"), now).unwrap();
    assert!(!ledger.end(old.sequence, proved(), now));
    assert_eq!(state(&ledger, "a"), JobState::Queued);
}

/// In a public GPU prover failed jobs never left the status.
#[test]
fn answers_are_kept_bounded_and_failures_are_no_exception() {
    let (mut ledger, now) = (ledger(), Instant::now());
    for n in 0..20 {
        submit(&mut ledger, request(&n.to_string()), now).unwrap();
        let task = ledger.take(now).unwrap();
        ledger.end(task.sequence, Ending::Failed("no".into()), now);
    }
    assert_eq!((ledger.answers_kept(), ledger.alive().count()), (ANSWERS, 0));
    assert!(ledger.job("15").is_none());
    assert_eq!(ledger.job("16").unwrap().failure(), Some("no"));
    assert_eq!((ledger.accepted(), ledger.totals()["mimc"].failed), (20, 20));
    assert_eq!(ledger.last_error(), Some("19: no"));
}

#[test]
fn a_full_queue_refuses() {
    let (mut ledger, now) = (ledger(), Instant::now());
    for n in 0..8 {
        submit(&mut ledger, request(&n.to_string()), now).unwrap();
    }
    assert_eq!(submit(&mut ledger, request("8"), now).unwrap_err(), SubmitError::Full { jobs: 8 });
    ledger.cancel("3", now);
    assert!(submit(&mut ledger, request("8"), now).is_ok());
}

#[test]
fn a_deadline_fails_a_job_wherever_it_is() {
    let (mut ledger, start) = (ledger(), Instant::now());
    let with_deadline = |id: &str, seconds| ProofRequest { deadline_seconds: Some(seconds), ..request(id) };
    submit(&mut ledger, with_deadline("runs", 1.0), start).unwrap();
    submit(&mut ledger, with_deadline("waits", 2.0), start).unwrap();
    submit(&mut ledger, with_deadline("done", 1.5), start).unwrap();
    let task = ledger.take(start).unwrap();
    assert_eq!(ledger.expire(start), (vec![], Some(start + Duration::from_secs(1))));
    ledger.cancel("done", start);

    let (expired, next) = ledger.expire(start + Duration::from_secs(3));
    let expected = [("runs".to_owned(), JobState::Synthesizing), ("waits".to_owned(), JobState::Queued)];
    assert_eq!((expired.as_slice(), next), (expected.as_slice(), None));
    assert_eq!(ledger.job("waits").unwrap().failure(), Some("deadline of 2 s passed while queued"));
    assert!(!ledger.end(task.sequence, proved(), start));
    assert!(ledger.take(start).is_none());
}

#[test]
fn a_drain_hands_back_what_waits_with_its_request() {
    let (mut ledger, now) = (ledger(), Instant::now());
    submit(&mut ledger, request("runs"), now).unwrap();
    submit(&mut ledger, request("waits"), now).unwrap();
    let task = ledger.take(now).unwrap();
    assert_eq!(ledger.drain(false, now), ["waits"]);
    let answer = ledger.job("waits").unwrap().answer(ProofFormat::Native, now);
    assert_eq!((answer.state, answer.request), (JobState::HandedBack, Some(request("waits"))));
    assert_eq!(submit(&mut ledger, request("new"), now).unwrap_err(), SubmitError::Draining);
    assert!(!ledger.quiesce(false), "a drain is for good");
    assert!(ledger.end(task.sequence, proved(), now), "what runs is finished");
}

#[test]
fn a_hastened_drain_hands_back_what_runs_too() {
    let (mut ledger, now) = (ledger(), Instant::now());
    submit(&mut ledger, request("runs"), now).unwrap();
    let task = ledger.take(now).unwrap();
    assert!(ledger.drain(false, now).is_empty());
    assert_eq!(ledger.drain(true, now), ["runs"]);
    assert!(ledger.job("runs").unwrap().answer(ProofFormat::Native, now).request.is_some());
    assert!(!ledger.end(task.sequence, proved(), now));
}

#[test]
fn answers_that_nobody_fetched_hold_up_a_drain_for_a_while_only() {
    let (mut ledger, now) = (ledger(), Instant::now());
    let linger = Duration::from_secs(5);
    submit(&mut ledger, request("a"), now).unwrap();
    ledger.drain(false, now);
    assert_eq!(ledger.uncollected_until(linger, now), Some(now + linger));
    assert_eq!(ledger.uncollected_until(linger, now + linger), None);
    ledger.job_mut("a").unwrap().collected = true;
    assert_eq!(ledger.uncollected_until(linger, now), None);
}

#[test]
fn ids_can_stand_in_paths_and_logs() {
    for id in ["a", "proof-0f", "A.b_c:d-9", &"x".repeat(128)] {
        assert!(is_valid_id(id), "{id}");
    }
    for id in ["", "a b", "a/b", "..", "ä", "a\n", "a?b", &"x".repeat(129)] {
        assert!(!is_valid_id(id), "{id:?}");
    }
}

#[test]
fn the_sum_of_all_states_is_what_was_accepted() {
    let (mut ledger, now) = (ledger(), Instant::now());
    for n in 0..8 {
        submit(&mut ledger, request(&n.to_string()), now).unwrap();
    }
    let (first, second, _third) =
        (ledger.take(now).unwrap(), ledger.take(now).unwrap(), ledger.take(now).unwrap());
    ledger.end(first.sequence, proved(), now);
    ledger.end(second.sequence, Ending::Failed("no".into()), now);
    ledger.cancel("5", now);
    let totals = &ledger.totals()["mimc"];
    let ended = totals.done + totals.failed + totals.cancelled + totals.handed_back;
    assert_eq!(ledger.accepted(), ended + ledger.running().len() as u64 + ledger.queue().len() as u64);
}
