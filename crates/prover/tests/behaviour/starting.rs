//! The beginning of `serve`: sockets, environment, readiness.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};

use nix::sys::signal::Signal;
use sexton_control::client::{Client, Endpoint};
use sexton_control::prover::{JobState, PipelineStatus, STATUS};

use crate::harness::{DEADLINE, Place, Server, block, mimc, seen, until};

#[test]
fn the_socket_is_for_its_owner_only() {
    let place = Place::new();
    let _server = place.serve(&[]);
    let mode = fs::metadata(place.path("prover.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_second_server_on_one_socket_is_refused_in_one_line() {
    let place = Place::new();
    let server = place.serve(&[]);
    let (code, _, stderr) = seen(&place.line("serve --socket prover.sock"));
    assert_eq!((code, stderr.lines().count()), (Some(1), 1), "{stderr}");
    assert!(stderr.contains("a prover serves there already"), "{stderr}");
    assert_eq!(server.answer(&server.submit(&mimc("a", 4))).state, JobState::Done, "the first is unharmed");
}

#[test]
fn a_socket_left_by_a_killed_server_is_replaced() {
    let place = Place::new();
    let mut first = place.serve(&[]);
    first.signal(Signal::SIGKILL);
    first.ended();
    assert!(place.path("prover.sock").exists());
    let second = place.serve(&[]);
    assert_eq!(second.answer(&second.submit(&mimc("a", 4))).state, JobState::Done);
}

#[test]
fn a_socket_on_which_somebody_else_answers_is_left_alone() {
    let place = Place::new();
    let _other = UnixListener::bind(place.path("prover.sock")).unwrap();
    let (code, _, stderr) = seen(&place.line("serve --socket prover.sock"));
    assert_eq!(code, Some(1), "{stderr}");
    assert!(place.path("prover.sock").exists());
}

#[test]
fn only_loopback_addresses_are_listened_on() {
    let place = Place::new();
    let (code, _, stderr) = seen(&place.line("serve --socket prover.sock --listen 0.0.0.0:0"));
    assert_eq!((code, stderr.lines().count()), (Some(2), 1), "{stderr}");
    assert!(stderr.contains("0.0.0.0:0: not a loopback address"), "{stderr}");
}

#[test]
fn tcp_serves_those_who_are_no_web_page() {
    let place = Place::new();
    let server = place.serve(&["--listen", "127.0.0.1:0"]);
    let log = server.log();
    let address = log.split("tcp=").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    let client = Client::new(Endpoint::Tcp(address.parse().unwrap()), DEADLINE);
    block(client.get::<PipelineStatus>(STATUS)).unwrap();

    use std::io::{Read, Write};
    let mut page = std::net::TcpStream::connect(address).unwrap();
    let request =
        "POST /drain HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: http://example.org\r\nconnection: close\r\n\r\n";
    page.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    page.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(!block(server.client.ready()).unwrap().quiesced);
}

#[test]
fn a_malformed_memory_budget_is_a_configuration_error() {
    let place = Place::new();
    for value in ["50GiB", "", "-1"] {
        let mut command = place.command();
        command.args(["serve", "--socket", "prover.sock"]).env("SEXTON_MEMORY_BUDGET_BYTES", value);
        let (code, _, stderr) = seen(&command.output().unwrap());
        assert_eq!((code, stderr.lines().count()), (Some(78), 1), "{stderr}");
        assert!(stderr.contains("SEXTON_MEMORY_BUDGET_BYTES"), "{stderr}");
    }
}

#[test]
fn the_status_shows_what_the_supervisor_handed_over() {
    let place = Place::new();
    let environment = [("SEXTON_MEMORY_BUDGET_BYTES", "1073741824"), ("SEXTON_RUN_ID", "run-7")];
    let server = Server::start(&place, &["--preload", "mimc-2^8"], &environment);
    let status = block(server.client.status()).unwrap();
    let key = &status.allocations.srs[0];
    assert_eq!((status.run_id.as_deref(), status.memory.total_bytes), (Some("run-7"), Some(1 << 30)));
    assert_eq!((key.circuit_id.as_str(), status.memory.used_bytes), ("mimc-2^8", key.bytes));
    assert_eq!(status.memory.available_bytes, Some((1 << 30) - key.bytes));
    assert_eq!(block(server.client.keys()).unwrap().keys[0].circuit, "mimc-2^8");
}

#[test]
fn a_damaged_key_that_was_asked_for_at_the_start_ends_the_server() {
    let place = Place::new();
    place.prove("");
    fs::write(place.path("keys/mimc-2^8.key"), "damaged").unwrap();
    let (code, _, stderr) = seen(&place.line("serve --socket prover.sock --preload mimc-2^8"));
    assert_eq!(code, Some(65), "{stderr}");
    assert!(stderr.contains("mimc-2^8.key") && !stderr.contains(" ready "), "{stderr}");
    assert!(!place.path("prover.sock").exists());
}

#[test]
fn the_service_manager_is_told_ready_and_stopping() {
    let place = Place::new();
    let manager = UnixDatagram::bind(place.path("notify")).unwrap();
    manager.set_read_timeout(Some(DEADLINE)).unwrap();
    let receive = || {
        let mut buffer = [0; 64];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let address = place.path("notify");
    let environment = [("NOTIFY_SOCKET", address.to_str().unwrap())];
    let mut server = Server::start(&place, &["--preload", "mimc-2^8"], &environment);
    assert_eq!(receive(), "READY=1");
    server.signal(Signal::SIGTERM);
    assert_eq!(receive(), "STOPPING=1");
    assert_eq!(server.ended().code(), Some(0));
    until("the log of the end", || server.log().contains(" exit "));
}
