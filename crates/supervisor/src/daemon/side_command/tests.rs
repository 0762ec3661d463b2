use super::*;
use std::fs;

const PATIENT: Duration = Duration::from_secs(60);

async fn shell(children: &SideChildren, timeout: Duration, script: &str, input: &[u8]) -> Outcome {
    let command = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
    run(children, &SideCommand { command, timeout }, &[], input).await
}

#[tokio::test]
async fn a_command_reads_its_document_and_its_output_and_code_are_kept() {
    let children = SideChildren::default();
    // More than a pipe holds, read by a program that takes its time.
    let input = vec![b'x'; 300_000];
    let outcome = shell(&children, PATIENT, "wc -c; echo oops >&2; exit 3", &input).await;
    assert_eq!(outcome.ending, Ending::Ended(WaitStatus::exited(3)));
    assert_eq!(outcome.output, "300000\noops\n");
    assert!(outcome.to_string().ends_with(": oops"), "{outcome}");
    assert!(!outcome.is_success() && children.pids().is_empty());
}

#[tokio::test]
async fn a_command_that_reads_nothing_succeeds_too() {
    let outcome = shell(&SideChildren::default(), PATIENT, "exit 0", &vec![b'x'; 300_000]).await;
    assert!(outcome.is_success(), "{outcome:?}");
}

#[tokio::test]
async fn at_its_limit_a_command_is_killed_with_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = format!(
        "trap '' TERM; sleep 300 & echo $! > {0}.part; mv {0}.part {0}; cat {0}; wait",
        pids.display()
    );
    let children = SideChildren::default();
    let outcome = shell(&children, Duration::from_millis(500), &script, b"").await;
    assert_eq!(outcome.ending, Ending::Overdue, "{outcome}");
    // Where the limit came before the script was so far, it has started nothing.
    if let Ok(pid) = fs::read_to_string(&pids) {
        wait_until_gone(pid.trim()).await;
    }
    assert!(children.pids().is_empty());
}

/// Gone, or a zombie that its new parent has not reaped.
async fn wait_until_gone(pid: &str) {
    let lives = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    let gone = async {
        while lives() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENT, gone).await.expect("it was killed");
}

#[tokio::test]
async fn what_a_command_leaves_in_its_group_ends_with_it_and_holds_nobody_up() {
    // The child keeps the pipe open: nobody waits for its end of file.
    let outcome = shell(&SideChildren::default(), PATIENT, "sleep 300 & echo $!", b"").await;
    assert!(outcome.is_success(), "{outcome:?}");
    wait_until_gone(outcome.output.trim()).await;
}

#[tokio::test]
async fn of_endless_output_the_end_is_kept() {
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo last";
    let outcome = shell(&SideChildren::default(), PATIENT, script, b"").await;
    assert!(outcome.output.len() <= OUTPUT_MAX && outcome.output.ends_with("line 19999\nlast\n"));
    let outcome = shell(&SideChildren::default(), Duration::from_millis(300), "yes", b"").await;
    assert_eq!(outcome.ending, Ending::Overdue);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_not_to_be() {
    let children = SideChildren::default();
    for command in [vec!["/no/such/program".into()], vec!["/etc/passwd".into()], vec![]] {
        let what = SideCommand { command, timeout: PATIENT };
        let outcome = run(&children, &what, &[], b"").await;
        assert!(matches!(outcome.ending, Ending::NotStarted(_)), "{what:?} {outcome:?}");
    }
    assert!(children.pids().is_empty());
}

#[tokio::test]
async fn the_environment_is_what_is_allowed_and_what_is_told() {
    // Cargo sets this for tests.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let command = ["/bin/sh", "-c", "env"].map(OsString::from).to_vec();
    let told = [("SEXTON_EVENT".to_owned(), OsString::from("run_ended"))];
    let what = SideCommand { command, timeout: PATIENT };
    let outcome = run(&SideChildren::default(), &what, &told, b"").await;
    let names: Vec<&str> = outcome.output.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert!(names.contains(&"SEXTON_EVENT") && names.contains(&"PATH"), "{names:?}");
    let allowed = |name: &&str| {
        INHERITED.contains(name) || ["SEXTON_EVENT", "PWD", "SHLVL", "_", "OLDPWD"].contains(name)
    };
    assert!(names.iter().all(allowed), "{names:?}");
}

#[tokio::test]
async fn a_command_that_is_broken_off_is_killed() {
    let children = SideChildren::default();
    let broken = shell(&children, PATIENT, "sleep 300", b"");
    assert!(tokio::time::timeout(Duration::from_millis(200), broken).await.is_err());
    assert!(children.pids().is_empty());
}
