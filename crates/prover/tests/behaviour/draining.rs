//! The end of `serve`: every job answered or handed back, exit code 0. (A public GPU prover lost its proofs on SIGTERM,
//! and on SIGINT stopped working but went on accepting and never exited.)

use nix::sys::signal::Signal;
use sexton_control::prover::{JobState, ProofFormat};

use crate::harness::{DEADLINE, Place, block, mimc, until};

#[test]
fn a_signal_finishes_what_runs_and_hands_back_what_waits() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let place = Place::new();
        let mut server = place.serve(&[]);
        server.submit_and_begin("runs");
        server.submit(&mimc("waits", 13));
        let (runs, waits) = std::thread::scope(|scope| {
            let runs = scope.spawn(|| server.answer("runs"));
            let waits = scope.spawn(|| server.answer("waits"));
            until("both to be accepted", || server.log().contains("job_accepted id=waits"));
            server.signal(signal);
            (runs.join().unwrap(), waits.join().unwrap())
        });
        assert_eq!(runs.state, JobState::Done, "{signal}: {:?}", runs.error);
        assert_eq!((waits.state, waits.request), (JobState::HandedBack, Some(mimc("waits", 13))), "{signal}");
        assert_eq!(server.ended().code(), Some(0), "{signal}");
        assert!(!place.path("prover.sock").exists());
        let log = server.log();
        assert!(
            log.contains(&format!("drain reason={signal}")) && log.contains("exit accepted=2 done=1"),
            "{log}"
        );
    }
}

#[test]
fn an_idle_server_ends_at_once() {
    let place = Place::new();
    let mut server = place.serve(&["--linger", "1h"]);
    server.answer(&server.submit(&mimc("a", 4)));
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn an_answer_that_nobody_has_fetched_waits_for_its_client() {
    let place = Place::new();
    let mut server = place.serve(&["--linger", "1h"]);
    server.submit_and_begin("a");
    block(server.client.drain()).unwrap();
    until("the end of the job", || server.log().contains("job_done id=a"));
    let answer = block(server.client.proof("a", ProofFormat::Native)).unwrap();
    assert_eq!(answer.state, JobState::Done);
    assert_eq!(server.ended().code(), Some(0), "now that it was fetched");
}

#[test]
fn a_client_that_never_comes_holds_up_nothing_for_long() {
    let place = Place::new();
    let mut server = place.serve(&["--linger", "50ms"]);
    server.submit(&mimc("a", 4));
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_second_signal_hands_back_what_runs() {
    let place = Place::new();
    let mut server = place.serve(&[]);
    server.submit(&mimc("runs", 17));
    until("the job to run", || server.state("runs") != JobState::Queued);
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| server.answer("runs"));
        server.signal(Signal::SIGTERM);
        until("the drain", || server.log().contains("drain reason=SIGTERM"));
        server.signal(Signal::SIGTERM);
        answer.join().unwrap()
    });
    assert_eq!((answer.state, answer.request), (JobState::HandedBack, Some(mimc("runs", 17))));
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_drain_cannot_be_taken_back() {
    let place = Place::new();
    let mut server = place.serve(&[]);
    server.submit_and_begin("runs");
    assert!(block(server.client.drain()).unwrap().quiesced);
    let error = block(server.client.unquiesce()).unwrap_err().to_string();
    assert!(error.contains("cannot be taken back"), "{error}");
    let error = block(server.client.submit(&mimc("new", 4))).unwrap_err().to_string();
    assert!(error.contains("draining"), "{error}");
    assert_eq!(server.answer("runs").state, JobState::Done);
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_client_that_holds_its_connection_does_not_hold_the_process() {
    let place = Place::new();
    let mut server = place.serve(&[]);
    let _idle = std::os::unix::net::UnixStream::connect(place.path("prover.sock")).unwrap();
    server.signal(Signal::SIGTERM);
    let start = std::time::Instant::now();
    assert_eq!(server.ended().code(), Some(0));
    assert!(start.elapsed() < DEADLINE);
}
