//! `supervisor doctor`

use std::time::Instant;

use crate::stage::{Said, Stage};

#[test]
fn doctor_ends_with_its_worst_line_and_changes_nothing() {
    let stage = Stage::new();
    let began = Instant::now();
    let said = stage.run(&["doctor", "--json"]);
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    let report = said.json();
    let checks = report["checks"].as_array().unwrap();
    let worst = checks.iter().map(|check| match check["level"].as_str().unwrap() {
        "ok" => 0,
        "warn" => 1,
        "fail" => 2,
        other => panic!("{other}"),
    });
    assert_eq!(said.code(), worst.max().unwrap());
    for check in checks {
        assert_eq!(check["fix"].is_null(), check["level"] == "ok", "{check}");
        assert!(!check["found"].as_str().unwrap().is_empty(), "{check}");
    }
    assert!(!stage.state().exists());
    assert_eq!(stage.run(&["doctor"]).stdout().matches(" pidfd ").count(), 1);
}

#[test]
fn doctor_looks_at_the_cgroup_of_the_living_prover() {
    let stage = Stage::new();
    let _supervisor = stage.supervise("exec sleep 1000");
    let subject = stage.run(&["doctor", "--json"]).json()["subject"].clone();
    assert!(subject.as_str().unwrap().starts_with("the cgroup of the prover (pid "), "{subject}");
}
