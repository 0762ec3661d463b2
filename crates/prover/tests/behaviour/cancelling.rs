//! Cancel means it.

use sexton_control::prover::JobState;

use crate::harness::{Place, block, mimc, until};

#[test]
fn a_waiting_job_is_cancelled_at_once_and_never_proved() {
    let place = Place::new();
    let server = place.serve(&[]);
    server.submit_and_begin("runs");
    server.submit(&mimc("waits", 4));
    let cancellation = block(server.client.cancel("waits")).unwrap();
    assert_eq!((cancellation.was, cancellation.state), (JobState::Queued, JobState::Cancelled));
    assert!(!cancellation.result_discarded);
    assert_eq!(server.answer("runs").state, JobState::Done);
    let answer = server.answer("waits");
    assert_eq!((answer.state, answer.timings.synthesis_us), (JobState::Cancelled, None));
}

#[test]
fn a_running_job_is_cancelled_at_once_and_its_result_discarded() {
    let place = Place::new();
    let server = place.serve(&[]);
    server.submit_and_begin("runs");
    let cancellation = block(server.client.cancel("runs")).unwrap();
    assert!(cancellation.result_discarded, "{cancellation:?}");
    assert_eq!(server.state("runs"), JobState::Cancelled);
    until("the worker to discard it", || server.log().contains("result_discarded id=runs"));
    let answer = server.answer("runs");
    assert_eq!((answer.state, answer.proof), (JobState::Cancelled, None));
    let jobs = block(server.client.status()).unwrap().jobs.unwrap();
    assert_eq!((jobs.done, jobs.cancelled), (0, 1));
}

#[test]
fn an_ended_job_stays_as_it_ended() {
    let place = Place::new();
    let server = place.serve(&[]);
    server.answer(&server.submit(&mimc("a", 4)));
    let cancellation = block(server.client.cancel("a")).unwrap();
    assert_eq!((cancellation.was, cancellation.state), (JobState::Done, JobState::Done));
    assert!(server.answer("a").proof.is_some());
}
