//! `prove … --socket`: a server makes the proof, and its answer is checked before it is written.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use serde_json::{Value, json};

use crate::harness::{Place, block, names, seen, text};

const ASK: &str = "prove mimc --size 2^8 --seed 7 --socket prover.sock --proof p --vk v --public i";

#[test]
fn a_server_proves_what_the_command_line_asks() {
    let place = Place::new();
    let _server = place.serve(&[]);
    for format in ["native", "snarkjs"] {
        let (code, stdout, stderr) = seen(&place.line(&format!("{ASK} --format {format}")));
        assert_eq!(code, Some(0), "{stderr}");
        let said = "p: proof of mimc-2^8 with a development key, made by prover.sock and verified in ";
        assert!(stdout.starts_with(said), "{stdout}");
        let unexpected =
            |line: &&str| !line.contains("development key:") && !line.contains("the server took");
        assert_eq!(stderr.lines().find(unexpected), None, "{stderr}");
        assert!(place.line("verify p --vk v --public i").status.success());
        assert_eq!(fs::read_to_string(place.path("p")).unwrap().contains("pi_a"), format == "snarkjs");
    }
}

#[test]
fn its_files_are_those_that_a_proof_made_here_has() {
    let place = Place::new();
    let _server = place.serve(&[]);
    assert!(place.line(ASK).status.success());
    place.prove(" --seed 7");
    for (served, here) in [("v", "vk.json"), ("i", "public.json")] {
        assert_eq!(fs::read(place.path(served)).unwrap(), fs::read(place.path(here)).unwrap());
    }
}

#[test]
fn every_circuit_can_be_asked_for() {
    let place = Place::new();
    let server = place.serve(&[]);
    // A path that is relative to the client's folder, and a message that is no text.
    fs::create_dir(place.path("elsewhere")).unwrap();
    fs::write(place.path("elsewhere/data"), [1; 3_000]).unwrap();
    fs::write(place.path("elsewhere/message"), [0xff, 0x00, 0x0a]).unwrap();
    for statement in [
        "mimc --size 2^4",
        "sha256 --preimage-file message",
        "merkle --file data --block 2 --block-size 1KiB",
    ] {
        let line = format!("prove {statement} --socket ../prover.sock --proof p --vk v --public i --json");
        let mut command = place.command();
        command.current_dir(place.path("elsewhere")).args(line.split(' '));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let job = document["job_id"].as_str().unwrap();
        assert!(server.log().contains(&format!("job_accepted id={job} ")), "{}", server.log());
        assert!(document["timings"]["prove_us"].as_u64().unwrap() > 0);
    }
}

/// Runs [`ASK`], which must fail with `code`, one line that contains `why`, and no file written.
#[track_caller]
fn refused(place: &Place, line: &str, code: i32, why: &str) {
    let (ended, stdout, stderr) = seen(&place.line(line));
    assert_eq!((ended, stdout.as_str(), stderr.lines().count()), (Some(code), "", 1), "{stderr}");
    assert!(stderr.contains(why), "{stderr}");
    let written: Vec<_> = names(&place.path("."))
        .into_iter()
        .filter(|name| name.len() == 1 || name.contains(".part"))
        .collect();
    assert!(written.is_empty(), "{written:?}");
}

#[test]
fn nobody_there_is_exit_code_3_and_says_what_to_start() {
    let place = Place::new();
    let why = "nothing listens on prover.sock: start one with `supervisor run`";
    refused(&place, ASK, 3, why);
    drop(UnixListener::bind(place.path("prover.sock")).unwrap());
    refused(&place, ASK, 3, why);
}

#[test]
fn a_refusal_is_told_in_the_servers_own_words() {
    let place = Place::new();
    let server = place.serve(&[]);
    block(server.client.quiesce()).unwrap();
    refused(&place, ASK, 75, "prover.sock refused: ");
}

#[test]
fn a_job_that_fails_says_why() {
    let place = Place::new();
    let _server = place.serve(&[]);
    fs::write(place.path("data"), "x").unwrap();
    let line = "prove merkle --file data --block 9 --socket prover.sock --proof p --vk v --public i";
    refused(&place, line, 1, "no block 9");
}

#[test]
fn the_servers_key_is_used_and_not_one_given_here() {
    let place = Place::new();
    let output = place.line(&format!("{ASK} --key k"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("'--socket <PATH>' cannot be used with '--key <FILE>'"));
}

/// A server that gives one answer about every proof, and one verifying key.
fn fake(place: &Place, answer: String, key: String) {
    let socket = place.path("prover.sock");
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    let accepted = json!({"schema_version": 1, "id": "a", "state": "queued"}).to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = read_request(&mut stream);
            let body = match head.split(' ').nth(1).unwrap() {
                "/v1/proofs" => &accepted,
                path if path.starts_with("/v1/proofs/") => &answer,
                _ => &key,
            };
            let length = body.len();
            write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
                .unwrap();
        }
    });
}

/// The request's line and headers, when its body has been read.
fn read_request(stream: &mut UnixStream) -> String {
    let mut request = String::new();
    let mut byte = [0];
    while !request.ends_with("\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        request.push(byte[0].into());
    }
    let length = request.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    request
}

#[test]
fn a_wrong_answer_is_never_written() {
    let place = Place::new();
    let document =
        |name: &str| -> Value { serde_json::from_slice(&fs::read(place.path(name)).unwrap()).unwrap() };
    let files = || (document("proof.json"), document("public.json"), document("vk.json"));
    place.prove(" --seed 8");
    let (of_8, public_8, _) = files();
    place.prove(" --seed 7");
    let (of_7, public_7, vk) = files();
    let answer = |proof: &Value, public: &Value| {
        json!({"schema_version": 1, "id": "a", "circuit": "mimc-2^8", "priority": "normal", "state": "done",
            "format": "native", "proof": proof, "public": public, "key_id": "k", "development_key": true,
            "timings": {"queued_us": 0, "total_us": 1}})
    };
    let key = json!({"schema_version": 1, "circuit": "mimc-2^8", "key_id": "k", "development_key": true,
        "format": "native", "vk": vk});
    let honest = answer(&of_7, &public_7);
    let with = |document: &Value, name: &str, value: Value| {
        let mut document = document.clone();
        document[name] = value;
        document
    };
    fake(&place, honest.to_string(), key.to_string());
    assert!(place.line(ASK).status.success(), "the fake is good enough");
    for name in ["p", "v", "i"] {
        fs::remove_file(place.path(name)).unwrap();
    }
    for (answer, key, why) in [
        (answer(&of_8, &public_8), &key, "proved another statement than the one asked for"),
        (answer(&of_8, &public_7), &key, "proof is not valid"),
        (with(&honest, "circuit", "mimc-2^9".into()), &key, "proved mimc-2^9 instead of mimc-2^8"),
        (with(&honest, "proof", Value::Null), &key, "not a proof"),
        (honest.clone(), &with(&key, "key_id", "other".into()), "made with another key"),
        (honest.clone(), &with(&key, "vk", json!([])), "not a verifying key"),
        (json!({"state": "done"}), &key, "answered with something else than expected"),
    ] {
        fake(&place, answer.to_string(), key.to_string());
        refused(&place, ASK, 76, why);
    }
    fake(&place, with(&honest, "state", "cancelled".into()).to_string(), String::new());
    refused(&place, ASK, 1, "job a was cancelled");
    fake(&place, with(&honest, "state", "handed_back".into()).to_string(), String::new());
    refused(&place, ASK, 75, "handed back by a draining server: try again");
}

#[test]
fn a_server_that_dies_while_it_proves_is_told() {
    let place = Place::new();
    let listener = UnixListener::bind(place.path("prover.sock")).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            read_request(&mut stream.unwrap());
        }
    });
    refused(&place, ASK, 74, "prover.sock broke off");
}
