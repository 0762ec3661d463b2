//! `GET /metrics`

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::stage::Stage;

/// By hand: a client that shares no code with ours.
fn scrape(stage: &Stage) -> String {
    let mut socket = UnixStream::connect(stage.path("run").join("control.sock")).unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_living_prover_is_up_and_nothing_has_ended() {
    let stage = Stage::new();
    let _supervisor = stage.supervise("exec sleep 1000");
    let answer = scrape(&stage);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{answer}");
    let value = |series: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series} in {answer}")).parse::<f64>().unwrap()
    };
    assert_eq!(value("sexton_up"), 1.0);
    assert_eq!(value("sexton_runs_started_total"), 1.0);
    assert_eq!(value("sexton_run_exits_total{cause=\"oom_own_limit\"}"), 0.0);
    assert_eq!(value("sexton_state{state=\"ready\"}"), 1.0);
    assert!(value("sexton_run_started_timestamp_seconds") > 1.7e9);
    assert!(value("process_resident_memory_bytes") > 1e6 && value("process_open_fds") > 3.0);
}
