//! `supervisor diag`, and `supervisor why --bundle` on what it made.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::stage::{Said, Stage, listing};

fn unpacked(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(GzDecoder::new(bytes));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().to_str().unwrap().to_owned(), bytes)
    });
    entries.collect()
}

fn answer<'f>(findings: &'f Value, what: &str) -> &'f str {
    let all = findings["findings"].as_array().unwrap();
    all.iter()
        .find(|finding| finding["what"] == what)
        .map_or("none", |finding| finding["answer"].as_str().unwrap())
}

#[test]
fn a_bundle_has_the_records_and_says_what_is_missing() {
    let stage = Stage::new();
    stage.let_die("echo last words; exit 7");
    let path = stage.path("b.tar.gz");
    let target = path.to_str().unwrap();
    let mut command = stage.command(&["diag", "-o", target, "--json"]);
    command.env("SEXTON_TOKEN", "hunter2").env("AWS_SECRET", "hunter3").env("CUDA_VISIBLE_DEVICES", "0");
    let began = Instant::now();
    let said = crate::stage::finish(&mut command);
    assert_eq!(said.code(), 0, "{}", said.stderr());
    assert!(began.elapsed().as_secs() < 40, "{:?}", began.elapsed());
    let metadata = std::fs::metadata(&path).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_eq!(said.json()["bytes"], metadata.len());

    let files = unpacked(&std::fs::read(&path).unwrap());
    let file = |end: &str| {
        let found = files.iter().find(|(name, _)| name.ends_with(end));
        String::from_utf8_lossy(found.unwrap_or_else(|| panic!("no {end} in {:?}", files.keys())).1)
            .into_owned()
    };
    for end in ["/run.json", "/exit.json", "/wait.json", "/facts.json", "/tracking.json", "/evidence.bin"] {
        file(end);
    }
    assert_eq!(file("/output.tail"), "last words\n");
    assert!(file("/journal.ndjson").contains("run_ended") && file("/host/proc/meminfo").contains("MemTotal"));
    assert!(file("/doctor.txt").contains("pidfd") && file("/versions.txt").contains("kernel"));
    let environment = file("/environment.txt");
    assert!(
        environment.contains("CUDA_VISIBLE_DEVICES=0\n") && environment.contains("SEXTON_TOKEN=[masked]\n")
    );
    assert!(!files.values().any(|bytes| String::from_utf8_lossy(bytes).contains("hunter")), "a secret");
    let findings: Value = serde_json::from_str(&file("/findings.json")).unwrap();
    assert_eq!(answer(&findings, "gpu"), "absent");
    assert_eq!(answer(&findings, "journal"), "found");
    assert!(file("/findings.txt").contains("gpu-sampler is not installed"));
}

#[test]
fn a_bundle_replaces_nothing_unless_forced_and_leaves_nothing_else() {
    let stage = Stage::new();
    let path = stage.path("b.tar.gz");
    let target = path.to_str().unwrap();
    std::fs::write(&path, "mine").unwrap();
    let refused = stage.run(&["diag", "-o", target]);
    assert_eq!(refused.code(), 1);
    assert!(refused.stderr().contains("is there already"), "{}", refused.stderr());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    assert_eq!(stage.run(&["diag", "-o", target, "--force"]).code(), 0);
    assert_eq!(listing(&stage.path("")), [path], "no temporary file, no state folder");
    let nowhere = stage.path("none/b.tar.gz");
    assert_eq!(stage.run(&["diag", "-o", nowhere.to_str().unwrap()]).code(), 1);
}

#[test]
fn a_bundle_goes_to_standard_output_and_keeps_to_its_size() {
    let stage = Stage::new();
    stage.let_die("yes | head -c 100000; exit 7");
    let whole = stage.run(&["diag", "-o", "-"]);
    assert_eq!(whole.code(), 0, "{}", whole.stderr());
    assert!(whole.stderr().contains(" absent, "), "{}", whole.stderr());
    let findings = |bytes: &[u8]| {
        let files = unpacked(bytes);
        serde_json::from_slice::<Value>(&files["sexton-bundle/findings.json"]).unwrap()
    };
    let id = stage.run(&["runs", "--json"]).json()["runs"][0]["run"]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(answer(&findings(&whole.stdout), &format!("{id} output")), "truncated");
    let small = stage.run(&["diag", "-o", "-", "--max-size", "50KiB"]);
    let size: usize = unpacked(&small.stdout)
        .iter()
        .filter(|(name, _)| !name.contains("findings"))
        .map(|(_, b)| b.len())
        .sum();
    assert!(size <= 50 << 10, "{size}");
    assert_eq!(answer(&findings(&small.stdout), "journal.ndjson"), "truncated");
    assert_eq!(stage.run(&["diag", "-o", "-", "--max-size", "9TB"]).code(), 2);
}

#[test]
fn a_bundle_holds_the_processes_of_a_living_prover() {
    let stage = Stage::new();
    let _supervisor = stage.supervise("exec sleep 1000");
    let files = unpacked(&stage.run(&["diag", "-o", "-"]).stdout);
    let table = String::from_utf8(files["sexton-bundle/processes.txt"].clone()).unwrap();
    for name in ["sleep", "sexton-keeper", "supervisor"] {
        assert!(table.contains(name), "no {name} in {table}");
    }
}

#[test]
fn what_is_bundled_is_judged_as_it_was() {
    let stage = Stage::new();
    stage.let_die("kill -SEGV $$");
    stage.let_die("exit 7");
    let path = stage.path("b.tar.gz");
    let bundle = path.to_str().unwrap();
    stage.run(&["diag", "-o", bundle]);
    let before = listing(&stage.path(""));
    let again = stage.run(&["why", "--bundle", bundle]);
    assert_eq!(again.code(), 0, "{}", again.stderr());
    assert!(again.stdout_has("the same verdict was recorded at the time") && again.stdout_has("error_exit"));
    let first =
        stage.run(&["runs", "--json"]).json()["runs"][1]["run"]["run_id"].as_str().unwrap().to_owned();
    let json = stage.run(&["why", "--bundle", bundle, &first, "--json"]).json();
    assert_eq!((&json["verdict"]["cause"], &json["differs"]), (&"segfault".into(), &false.into()));
    assert_eq!(stage.run(&["why", "--bundle", bundle, "1999"]).code(), 1);
    assert_eq!(listing(&stage.path("")), before, "nothing is written");
}

/// A report from the field: a prover at its own cgroup's limit, recorded once and judged for ever.
#[test]
fn golden_an_oom_kill_at_its_own_limit() {
    let stage = Stage::new();
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/oom-own-limit.tar.gz");
    let json = stage.run(&["why", "--bundle", bundle.to_str().unwrap(), "--json"]).json();
    assert_eq!(json["verdict"]["cause"], "oom_own_limit");
    assert_eq!(json["verdict"]["level"], "own");
    assert_eq!(json["verdict"]["confidence"], "certain");
    let hits = json["evidence"].as_array().unwrap().iter().filter(|row| row["answer"] == "hit");
    let hits: Vec<_> = hits.map(|row| row["source"].as_str().unwrap()).collect();
    assert!(hits.contains(&"cgroup.oom_kill") && hits.contains(&"kernel_log"), "{hits:?}");
}
