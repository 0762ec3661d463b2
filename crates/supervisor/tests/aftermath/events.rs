//! `supervisor events`

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::stage::{Said, Stage};

#[test]
fn events_are_those_of_the_journal_and_can_be_chosen() {
    let stage = Stage::new();
    assert_eq!(stage.run(&["events"]).code(), 1, "nothing recorded yet");
    stage.let_die("exit 7");
    let journal = std::fs::read_to_string(stage.state().join("journal.ndjson")).unwrap();
    assert_eq!(stage.run(&["events", "--json"]).stdout(), journal);

    let ended = stage.run(&["events", "--json", "--kind", "run_ended"]);
    let event = ended.json();
    assert_eq!((event["kind"].as_str(), event["cause"].as_str()), (Some("run_ended"), Some("error_exit")));
    let id = event["run_id"].as_str().unwrap();
    let of_run = stage.run(&["events", "--run", id]).stdout();
    assert!(of_run.contains("run_ended") && !of_run.contains("supervisor_started"), "{of_run}");
    assert_eq!(stage.run(&["events", "--run", "2001"]).stdout(), "");
    assert_eq!(stage.run(&["events", "--kind", "nonsense"]).code(), 2);
}

#[test]
fn followed_events_come_as_they_happen() {
    let stage = Stage::new();
    stage.let_die("exit 0");
    let mut command = stage.command(&["events", "--follow", "--json", "--kind", "run_ended"]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let (lines, heard) = std::sync::mpsc::channel();
    let out = BufReader::new(following.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().try_for_each(|line| lines.send(line.unwrap())));
    let next = || heard.recv_timeout(crate::stage::DEADLINE);
    let first = next();
    stage.let_die("exit 9");
    let second = next();
    following.kill().unwrap();
    following.wait().unwrap();
    assert!(first.unwrap().contains("clean_exit"));
    assert!(second.unwrap().contains("error_exit"));
}
