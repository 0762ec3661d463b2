//! The names in our JSON are a contract: programs of others read them.

use serde_json::Value;
use sexton_model::status::State;
use sexton_tests::Supervised;

use crate::sh;

/// `name: kind`, one of `string`, `number`, `bool`, `array`, `object`, `null`, several with `|`.
#[track_caller]
fn assert_names(document: &Value, names: &[(&str, &str)]) {
    for (name, kinds) in names {
        let value = name.split('.').try_fold(document, |value, part| value.get(part));
        let kind = match value.unwrap_or_else(|| panic!("{name} is missing in {document:#}")) {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        assert!(kinds.split('|').any(|wanted| wanted == kind), "{name} is {kind}, not {kinds}");
    }
}

const EXIT_RECORD: [(&str, &str); 25] = [
    ("schema_version", "number"),
    ("run_id", "string"),
    ("command", "array"),
    ("pid", "number"),
    ("exe_sha256", "string"),
    ("started_at", "string"),
    ("ended_at", "string"),
    ("duration_seconds", "number"),
    ("wait.kind", "string"),
    ("wait.code", "number|null"),
    ("wait.signal", "number|null"),
    ("wait.core", "bool"),
    ("verdict.cause", "string"),
    ("verdict.level", "null"),
    ("verdict.confidence", "string"),
    ("verdict.summary", "string"),
    ("evidence", "array"),
    ("resources.max_rss_bytes", "number"),
    ("resources.cgroup_peak_bytes", "number|null"),
    ("resources.user_seconds", "number"),
    ("resources.system_seconds", "number"),
    ("in_flight", "array"),
    ("last_words", "string"),
    ("last_words_truncated", "bool"),
    ("output_dropped_bytes", "number"),
];

const STATUS: [(&str, &str); 12] = [
    ("schema_version", "number"),
    ("name", "string"),
    ("state", "string"),
    ("run_id", "string|null"),
    ("pid", "number|null"),
    ("adopted", "bool"),
    ("exe_sha256", "string|null"),
    ("since", "string"),
    ("restarts", "number"),
    ("budget_bytes", "number|null"),
    ("drain", "object|null"),
    ("gate", "object|null"),
];

#[test]
fn status_while_up_and_while_down() {
    let place = Supervised::new();
    let (_running, _) = place.run_until_ready(&[], &["sleep", "1000"]);
    let up = place.command(&["status", "--json"]).json();
    assert_names(&up, &STATUS);
    assert_names(
        &up,
        &[("run_id", "string"), ("pid", "number"), ("exe_sha256", "string"), ("last_exit", "null")],
    );
    assert_eq!((&up["state"], &up["name"]), (&"ready".into(), &place.name().into()));

    let down = place.command(&["stop", "--json"]).json();
    assert_names(&down, &STATUS);
    assert_names(&down, &[("run_id", "null"), ("pid", "null"), ("last_exit", "object")]);
    assert_names(&down["last_exit"], &EXIT_RECORD);
    assert_eq!(down["state"], "stopped");
}

#[test]
fn why_and_runs() {
    let place = Supervised::new();
    place.run(&["--restart", "never"], &sh("kill -9 $$")).wait();
    let why = place.command(&["why", "--json"]).json();
    assert_names(&why, &EXIT_RECORD);
    assert_eq!((&why["wait"]["kind"], &why["wait"]["signal"]), (&"killed".into(), &9.into()));
    for seen in why["evidence"].as_array().unwrap() {
        assert_names(
            seen,
            &[("source", "string"), ("answer", "string"), ("detail", "string"), ("at", "string")],
        );
    }

    let runs = place.command(&["runs", "--json"]).json();
    assert_names(&runs, &[("schema_version", "number"), ("runs", "array")]);
    let entry = &runs["runs"][0];
    assert_names(
        entry,
        &[("run", "object"), ("exit", "object"), ("run.run_id", "string"), ("run.command", "array")],
    );
    assert_eq!(entry["exit"], why);
}

#[test]
fn a_run_is_named_by_the_beginning_of_its_id() {
    let place = Supervised::new();
    for _ in 0..2 {
        place.run(&["--restart", "never"], &sh("echo hello; exit 3")).wait();
    }
    let ids: Vec<String> = place.exits().into_iter().map(|exit| exit.run_id).collect();
    let whole = place.command(&["why", &ids[0]]);
    assert_eq!(whole.code, Some(0));
    for part in [&ids[0], "exit code 3", "hello", "output.log"] {
        assert!(whole.stdout.contains(part), "{part} in {whole:?}");
    }
    let common = ids[0].bytes().zip(ids[1].bytes()).take_while(|(a, b)| a == b).count();
    assert_eq!(place.command(&["why", &ids[1][..=common], "--json"]).json()["run_id"], ids[1].as_str());

    for (wanted, said) in [(&ids[0][..common], "more than one"), ("1999", "no run")] {
        let ended = place.command(&["why", wanted]);
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(1), 1), "{ended:?}");
        assert!(ended.stderr.contains(said), "{ended:?}");
    }
}

#[test]
fn a_run_that_lives_has_no_why_yet() {
    let place = Supervised::new();
    let (_running, status) = place.run_until_ready(&[], &["sleep", "1000"]);
    let by_id = place.command(&["why", &status.run_id.unwrap()]);
    let last_ended = place.command(&["why"]);
    assert_eq!((by_id.code, last_ended.code), (Some(1), Some(1)));
    assert!(by_id.stderr.contains("it lives"), "{by_id:?}");
    assert!(last_ended.stderr.contains("still runs"), "{last_ended:?}");
}

#[test]
fn the_control_socket_serves_runs_and_events() {
    let place = Supervised::new();
    let (_running, status) = place.run_until_ready(&[], &["sleep", "1000"]);
    let run_id = status.run_id.unwrap();
    let one: Value = place.get(&format!("/v1/runs/{run_id}")).unwrap();
    assert_eq!((&one["run"]["run_id"], &one["exit"]), (&run_id.as_str().into(), &Value::Null));
    let events: Value = place.get("/v1/events").unwrap();
    let events = events["events"].as_array().unwrap();
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    for kind in ["supervisor_started", "run_starting", "run_started", "state_changed"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let refusal: Value = place.get("/v1/runs/1999").unwrap();
    assert!(refusal["error"].as_str().is_some_and(|error| error.contains("1999")), "{refusal}");
    place.wait_for_state(State::Ready);
}

/// A thousand records with all their last words are more than anybody wants in one answer.
#[test]
fn lists_are_bounded_and_have_what_fits_into_a_list() {
    let place = Supervised::new();
    for _ in 0..2 {
        place.run(&["--restart", "never"], &sh("echo hello; exit 3")).wait();
    }
    let (_running, status) = place.run_until_ready(&[], &["sleep", "1000"]);
    let runs: Value = place.get("/v1/runs").unwrap();
    let runs = runs["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["run"]["run_id"]), (3, &status.run_id.unwrap().as_str().into()));
    let listed = &runs[1]["exit"];
    assert_names(listed, &EXIT_RECORD);
    assert_eq!((&listed["last_words"], &listed["evidence"]), (&"".into(), &Value::Array(Vec::new())));
    let whole: Value = place.get(&format!("/v1/runs/{}", listed["run_id"].as_str().unwrap())).unwrap();
    assert_eq!(whole["exit"]["last_words"], "hello\n");
    assert!(!whole["exit"]["evidence"].as_array().unwrap().is_empty());

    let some: Value = place.get("/v1/runs?limit=1").unwrap();
    assert_eq!(some["runs"].as_array().unwrap()[..], runs[..1]);
    let page: Value = place.get("/v1/events?after=2&limit=3").unwrap();
    let seqs: Vec<_> = page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, [Some(3), Some(4), Some(5)]);
    for query in
        ["runs?limit=0", "runs?limit=1001", "runs?limit=x", "runs?most=1", "events?limit=0", "events?from=1"]
    {
        let refusal: Value = place.get(&format!("/v1/{query}")).unwrap();
        assert!(refusal["error"].as_str().is_some_and(|error| error.contains("limit")), "{query}: {refusal}");
    }
}
