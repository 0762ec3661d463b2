use super::*;
use sexton_model::Timestamp;
use std::fs;
use std::path::Path;

const PATIENCE: Duration = Duration::from_secs(60);

fn hook(on: EventKind, script: &str, timeout: Duration) -> Hook {
    let command = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
    Hook { on: vec![on], command: SideCommand { command, timeout } }
}

fn hooks(hooks: Vec<Hook>, folder: &Path) -> Hooks {
    let place =
        Place { name: "prover-7".to_owned(), state_dir: folder.to_owned(), runtime_dir: folder.to_owned() };
    Hooks::new(hooks, &place, SideChildren::default())
}

fn event(kind: EventKind, seq: u64) -> Event {
    Event {
        schema_version: SCHEMA_VERSION,
        seq,
        at: Timestamp::now(),
        kind,
        run_id: Some("r1".to_owned()),
        details: serde_json::Map::from_iter([("cause".to_owned(), json!("segfault"))]),
    }
}

#[tokio::test]
async fn a_hook_reads_its_event_and_only_those_that_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let script =
        format!("cat >> {0}; echo \"$SEXTON_NAME $SEXTON_EVENT $SEXTON_RUN_ID\" >> {0}", out.display());
    let mut hooks = hooks(vec![hook(EventKind::RunEnded, &script, PATIENCE)], folder.path());
    hooks.offer(&event(EventKind::RunStarted, 4), None);
    hooks.offer(&event(EventKind::RunEnded, 5), None);
    assert_eq!(hooks.finish(PATIENCE).await, []);
    let out = fs::read_to_string(out).unwrap();
    let (document, told) = out.split_once('\n').unwrap();
    let document: Value = serde_json::from_str(document).unwrap();
    assert_eq!(document["event"]["kind"], "run_ended");
    assert_eq!((&document["event"]["seq"], &document["event"]["cause"]), (&json!(5), &json!("segfault")));
    assert_eq!((&document["name"], &document["exit_record"]), (&json!("prover-7"), &Value::Null));
    assert_eq!(told, "prover-7 run_ended r1\n");
}

#[tokio::test]
async fn a_hook_hears_of_events_in_their_order_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let (out, lock) = (folder.path().join("out"), folder.path().join("lock"));
    let script = format!(
        "mkdir {lock} || exit 9; sed 's/.*\"seq\":\\([0-9]*\\).*/\\1/' >> {out}; rmdir {lock}",
        lock = lock.display(),
        out = out.display()
    );
    let mut hooks = hooks(vec![hook(EventKind::RunEnded, &script, PATIENCE)], folder.path());
    for seq in 0..20 {
        hooks.offer(&event(EventKind::RunEnded, seq), None);
    }
    assert_eq!(hooks.finish(PATIENCE).await, []);
    let heard: Vec<u64> =
        fs::read_to_string(out).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(heard, (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_failure_is_told_with_its_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let failing = hook(EventKind::RunEnded, "echo no route to host >&2; exit 7", PATIENCE);
    let mut hooks = hooks(vec![failing], folder.path());
    hooks.offer(&event(EventKind::RunEnded, 5), None);
    let failure = tokio::time::timeout(PATIENCE, hooks.next()).await.unwrap();
    assert_eq!((failure.event, failure.seq, failure.run_id.as_deref()), (EventKind::RunEnded, 5, Some("r1")));
    assert!(failure.why().ends_with(": no route to host"), "{}", failure.why());
    assert_eq!(failure.details()["output"], "no route to host\n");
    // That one is nobody's event.
    hooks.offer(&event(EventKind::HookFailed, 6), None);
    assert_eq!(hooks.finish(PATIENCE).await, []);
}

#[tokio::test]
async fn a_hook_that_hangs_is_killed_and_holds_no_other_up() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let hangs = hook(EventKind::RunEnded, "sleep 300", Duration::from_millis(300));
    let works = hook(EventKind::RunEnded, &format!("echo done > {}", out.display()), PATIENCE);
    let mut hooks = hooks(vec![hangs, works], folder.path());
    hooks.offer(&event(EventKind::RunEnded, 5), None);
    let failure = tokio::time::timeout(PATIENCE, hooks.next()).await.unwrap();
    assert!(failure.why().contains("and was killed"), "{}", failure.why());
    assert_eq!(hooks.finish(PATIENCE).await, []);
    assert_eq!(fs::read_to_string(out).unwrap(), "done\n");
}

#[tokio::test]
async fn what_comes_too_fast_is_dropped_counted_and_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    sexton_process::fifo::make(&gate).unwrap();
    let slow = hook(EventKind::RunEnded, &format!("read x < {}", gate.display()), PATIENCE);
    let mut hooks = hooks(vec![slow], folder.path());
    let events = QUEUE_MAX as u64 + 11;
    for seq in 0..events {
        hooks.offer(&event(EventKind::RunEnded, seq), None);
    }
    // One runs and as many as fit wait.
    let open = fs::File::options().read(true).write(true).open(&gate).unwrap();
    for _ in 0..events {
        std::io::Write::write_all(&mut &open, b"x\n").unwrap();
    }
    let failures = hooks.finish(PATIENCE).await;
    let [failure] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!((&failure.what, failure.seq), (&What::Dropped(10), QUEUE_MAX as u64 + 1));
}

#[tokio::test]
async fn after_its_patience_what_runs_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut hooks = hooks(vec![hook(EventKind::RunEnded, "sleep 300", PATIENCE)], folder.path());
    hooks.offer(&event(EventKind::RunEnded, 5), None);
    hooks.finish(Duration::from_millis(100)).await;
    assert!(hooks.children.pids().is_empty());
}
