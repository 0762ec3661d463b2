//! `serve`: proofs over HTTP.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};
use sexton_control::client::ClientError;
use sexton_control::prover::{EngineState, JobState, Priority, ProofFormat, ProofRequest};

use crate::harness::{Place, block, mimc, request, until};

/// Sends a request as it stands and gives status line with headers, and body.
fn raw(place: &Place, request: &str) -> (String, String) {
    let mut stream = UnixStream::connect(place.path("prover.sock")).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn post(place: &Place, body: &str) -> (String, String) {
    let length = body.len();
    let head = format!(
        "POST /v1/proofs HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    raw(place, &(head + body))
}

fn get(place: &Place, path: &str) -> (String, String) {
    raw(place, &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
}

fn refused<T>(answer: Result<T, ClientError>) -> (u16, String) {
    match answer {
        Err(ClientError::Refused { status, message }) => (status, message),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("not refused"),
    }
}

#[test]
fn a_served_proof_verifies_on_the_command_line() {
    let place = Place::new();
    let server = place.serve(&[]);
    for format in [ProofFormat::Native, ProofFormat::Snarkjs] {
        let id = server.submit(&request(None, "mimc", json!({"size": "2^8"})));
        let ended = server.answer(&id);
        assert_eq!((ended.state, ended.circuit.as_str()), (JobState::Done, "mimc-2^8"));
        let answer = block(server.client.proof(&id, format)).unwrap();
        let key = block(server.client.verifying_key("mimc-2^8", format)).unwrap();
        assert_eq!(answer.key_id.as_ref(), Some(&key.key_id));
        assert!(key.development_key && answer.development_key == Some(true));
        for (name, document) in [("p", answer.proof), ("i", answer.public), ("v", Some(key.vk))] {
            fs::write(place.path(name), document.unwrap().to_string()).unwrap();
        }
        assert!(place.line("verify p --vk v --public i").status.success());
        let timings = answer.timings;
        assert!(timings.prove_us > Some(0) && timings.verify_us > Some(0) && timings.total_us > 0);
    }
}

#[test]
fn every_circuit_is_served() {
    let place = Place::new();
    let server = place.serve(&[]);
    fs::write(place.path("data"), [1; 3_000]).unwrap();
    let merkle = json!({"file": place.path("data"), "block": 2, "block_size": "1KiB"});
    let ids = [server.submit(&request(None, "merkle", merkle)), server.submit(&mimc("m", 8))];
    for id in ids {
        assert_eq!(server.answer(&id).state, JobState::Done);
    }
}

#[test]
fn a_job_that_fails_says_why_and_is_not_shown_as_done() {
    let place = Place::new();
    let server = place.serve(&[]);
    fs::write(place.path("data"), "x").unwrap();
    let id = server.submit(&request(None, "merkle", json!({"file": place.path("data"), "block": 9})));
    let answer = server.answer(&id);
    assert_eq!((answer.state, answer.proof), (JobState::Failed, None));
    assert!(answer.error.unwrap().contains("no block 9"));
    let status = block(server.client.status()).unwrap();
    assert_eq!((status.counters.total_completed, status.counters.failed_by_kind["merkle"]), (0, 1));
    assert!(status.last_error.unwrap().starts_with(&id));
}

#[test]
fn a_damaged_key_fails_the_job_and_not_the_server() {
    let place = Place::new();
    place.prove("");
    fs::write(place.path("keys/mimc-2^8.key"), "damaged").unwrap();
    let server = place.serve(&[]);
    let answer = server.answer(&server.submit(&mimc("a", 8)));
    assert_eq!(answer.state, JobState::Failed);
    assert!(answer.error.unwrap().contains("mimc-2^8.key"));
    assert_eq!(server.answer(&server.submit(&mimc("b", 4))).state, JobState::Done);
    assert_eq!(fs::read_to_string(place.path("keys/mimc-2^8.key")).unwrap(), "damaged");
}

#[test]
fn the_same_id_is_the_same_job_or_a_conflict() {
    let place = Place::new();
    let server = place.serve(&[]);
    for _ in 0..3 {
        assert_eq!(server.submit(&mimc("a", 8)), "a");
    }
    server.answer("a");
    server.submit(&mimc("a", 8));
    let other = ProofRequest { priority: Priority::High, ..mimc("a", 8) };
    let (status, message) = refused(block(server.client.submit(&other)));
    assert_eq!((status, message.as_str()), (409, "job a exists with another request: use another id"));
    assert_eq!(block(server.client.status()).unwrap().jobs.unwrap().accepted, 1);
}

#[test]
fn bad_bodies_are_400_with_one_clear_line() {
    let place = Place::new();
    let server = place.serve(&[]);
    for (body, expected) in [
        ("", "EOF while parsing"),
        ("{", "EOF while parsing"),
        (r#"{"circuit":"mimc"}"#, "missing field `inputs`"),
        (r#"{"circuit":"mimc","inputs":{"size":"2^8"},"deadline":1}"#, "unknown field `deadline`"),
        (r#"{"circuit":"mimc","inputs":{"size":"2^8","x":1}}"#, "unknown field `x`"),
        (r#"{"circuit":"mimc","inputs":{"size":"huge"}}"#, "power of two like 2^12"),
        (r#"{"circuit":"keccak","inputs":{}}"#, "known are mimc, sha256 and merkle"),
        (r#"{"id":"a/b","circuit":"mimc","inputs":{"size":"2^8"}}"#, "use 1 to 128 of"),
        (r#"{"circuit":"mimc","inputs":{"size":"2^8"},"priority":"urgent"}"#, "unknown variant `urgent`"),
        (r#"{"circuit":"mimc","inputs":{"size":"2^8"},"deadline_seconds":0}"#, "a number above 0"),
        (r#"{"circuit":"mimc","inputs":{"size":"2^8"},"deadline_seconds":-1e300}"#, "a number above 0"),
    ] {
        let (head, answer) = post(&place, body);
        assert!(head.starts_with("HTTP/1.1 400"), "{body}: {head}");
        let refusal: Value = serde_json::from_str(&answer).unwrap();
        let error = refusal["error"].as_str().unwrap();
        assert!(error.contains(expected) && !error.contains('\n'), "{body}: {error}");
    }
    assert_eq!(block(server.client.status()).unwrap().jobs.unwrap().accepted, 0);
}

#[test]
fn an_oversize_body_is_413() {
    let place = Place::new();
    let _server = place.serve(&[]);
    let (head, answer) = post(&place, &" ".repeat(65 << 10));
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
    assert!(answer.contains("larger than 65536 bytes"), "{answer}");
}

#[test]
fn unknown_jobs_routes_methods_and_circuits_are_told() {
    let place = Place::new();
    let server = place.serve(&[]);
    let (status, message) = refused(block(server.client.proof("nobody", ProofFormat::Native)));
    assert!(status == 404 && message.contains("no job \"nobody\""), "{message}");
    assert_eq!(refused(block(server.client.cancel("nobody"))).0, 404);
    assert_eq!(refused(block(server.client.verifying_key("keccak-1", ProofFormat::Native))).0, 400);
    let (status, message) = refused(block(server.client.verifying_key("mimc-2^8", ProofFormat::Native)));
    assert!(status == 404 && message.contains("no key for mimc-2^8 yet"), "{message}");
    assert!(get(&place, "/v2").0.starts_with("HTTP/1.1 404"));
    assert!(get(&place, "/v1/proofs").0.starts_with("HTTP/1.1 405"));
    assert!(get(&place, "/healthz").0.starts_with("HTTP/1.1 200"));
}

#[test]
fn a_bad_wait_is_never_a_default() {
    let place = Place::new();
    let server = place.serve(&[]);
    server.submit(&mimc("a", 4));
    for (query, expected) in [
        ("wait=30", "like 250ms, 30s"),
        ("wait=", "like 250ms, 30s"),
        ("wait=-1s", "like 250ms, 30s"),
        ("wait=601s", "more than 600s"),
        ("wiat=1s", "unknown field `wiat`"),
        ("format=xml", "unknown variant `xml`"),
    ] {
        let (head, body) = get(&place, &format!("/v1/proofs/a?{query}"));
        assert!(head.starts_with("HTTP/1.1 400"), "{query}: {head}");
        assert!(body.contains(expected), "{query}: {body}");
    }
}

#[test]
fn answers_are_kept_bounded() {
    let place = Place::new();
    let server = place.serve(&["--answers", "2"]);
    for id in ["a", "b", "c"] {
        server.submit(&mimc(id, 4));
        server.answer(id);
    }
    assert_eq!(refused(block(server.client.proof("a", ProofFormat::Native))).0, 404);
    assert_eq!(server.state("b"), JobState::Done);
    let jobs = block(server.client.status()).unwrap().jobs.unwrap();
    assert_eq!((jobs.done, jobs.answers_kept), (3, 2));
}

#[test]
fn quiesce_refuses_new_jobs_finishes_old_ones_and_can_be_taken_back() {
    let place = Place::new();
    let server = place.serve(&[]);
    server.submit_and_begin("runs");
    server.submit(&mimc("waits", 4));
    let admission = block(server.client.quiesce()).unwrap();
    assert!(admission.quiesced && admission.running + admission.queued > 0);
    assert_eq!(block(server.client.ready()).unwrap().state, EngineState::Quiesced);
    let (head, body) = post(&place, r#"{"circuit":"mimc","inputs":{"size":"2^4"}}"#);
    assert!(head.starts_with("HTTP/1.1 503") && head.to_lowercase().contains("retry-after: 5"), "{head}");
    assert!(body.contains("quiesced"), "{body}");
    assert!(get(&place, "/readyz").0.starts_with("HTTP/1.1 503"));
    assert_eq!(server.answer("runs").state, JobState::Done);
    assert_eq!(server.answer("waits").state, JobState::Done, "what was taken is proved");

    assert!(!block(server.client.unquiesce()).unwrap().quiesced);
    assert!(get(&place, "/readyz").0.starts_with("HTTP/1.1 200"));
    assert_eq!(server.answer(&server.submit(&mimc("new", 4))).state, JobState::Done);
}

#[test]
fn a_full_queue_is_503() {
    let place = Place::new();
    let server = place.serve(&["--queue", "1"]);
    server.submit_and_begin("runs");
    server.submit(&mimc("waits", 13));
    let (status, message) = refused(block(server.client.submit(&mimc("too-much", 4))));
    assert!(status == 503 && message.contains("the queue is full"), "{message}");
}

#[test]
fn a_deadline_fails_a_job_at_its_time() {
    let place = Place::new();
    let server = place.serve(&[]);
    server.submit_and_begin("runs");
    server.submit(&ProofRequest { deadline_seconds: Some(0.05), ..mimc("late", 4) });
    let answer = server.answer("late");
    assert_eq!(answer.error.as_deref(), Some("deadline of 0.05 s passed while queued"));
    assert!(!server.state("runs").is_ended(), "it was told in time, not when a worker came to it");
}

#[test]
fn the_log_has_the_life_of_a_job_and_none_of_its_inputs() {
    let place = Place::new();
    let server = place.serve(&[]);
    server.answer(&server.submit(&request(Some("a"), "sha256", json!({"preimage": "hunter2"}))));
    until("the end of the job in the log", || server.log().contains("job_done id=a"));
    let log = server.log();
    for event in ["start version=", "ready keys=0", "job_accepted id=a circuit=sha256-1", "prove_us="] {
        assert!(log.contains(event), "{event}: {log}");
    }
    assert!(!log.contains("hunter2"), "{log}");
}

#[test]
fn metrics_count_from_zero() {
    let place = Place::new();
    let server = place.serve(&[]);
    let metrics = || block(server.client.metrics()).unwrap();
    assert!(metrics().contains("sexton_prover_proofs_done_total{circuit=\"mimc\"} 0\n"));
    server.answer(&server.submit(&mimc("a", 4)));
    assert!(metrics().contains("sexton_prover_proofs_done_total{circuit=\"mimc\"} 1\n"));
}
