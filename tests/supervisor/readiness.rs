//! When a prover that answers `/readyz` counts as ready.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use sexton_model::status::State;
use sexton_tests::{Running, Supervised, binary};

/// `supervisor run` without a command, where `script` is the program that it finds as its bundled prover.
fn run_bundled(place: &Supervised, script: &str) -> Running {
    let programs = place.folder().join("programs");
    fs::create_dir(&programs).unwrap();
    let (supervisor, prover) = (programs.join("supervisor"), programs.join("prover"));
    fs::copy(binary("supervisor"), &supervisor).unwrap();
    fs::write(&prover, script).unwrap();
    fs::set_permissions(&prover, fs::Permissions::from_mode(0o755)).unwrap();
    let exec = format!("shift; exec {} \"$@\"", supervisor.display());
    place.run_through(&["sh", "-c", &exec, "sh"].map(str::to_owned), &[], &[])
}

/// Whatever else the supervisor does meanwhile (it looks at its run every few milliseconds) breaks off no question.
#[test]
fn a_prover_that_answers_slowly_becomes_ready() {
    let place = Supervised::new();
    let socket = UnixListener::bind(place.control_socket().with_file_name("prover.sock")).unwrap();
    // For as long as the test takes.
    std::thread::spawn(move || {
        for stream in socket.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            // Slowness is the point here; nobody waits for anything.
            std::thread::sleep(Duration::from_secs(1));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    let _running = run_bundled(&place, "#!/bin/sh\nexec sleep 1000\n");
    place.wait_for_state(State::Ready);
}

#[test]
fn a_prover_that_does_not_answer_is_starting_until_it_is_stopped() {
    let place = Supervised::new();
    let running = run_bundled(&place, "#!/bin/sh\nexec sleep 1000\n");
    place.wait_for_status("a prover", |status| status.state == State::Starting && status.pid.is_some());
    assert_eq!(place.command(&["stop"]).code, Some(0));
    assert_eq!(place.wait_for_state(State::Stopped).pid, None);
    assert_eq!(place.command(&["shutdown"]).code, Some(0));
    assert_eq!(running.wait().code, Some(0));
}
