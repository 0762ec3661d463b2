//! In a program of its own: it reaps every child that it is allowed to.
#![allow(clippy::unwrap_used, reason = "a test's helper fails the test")]

use std::ffi::OsString;
use std::time::Duration;

use sexton_model::wait::WaitStatus;
use sexton_supervisor::daemon::side_command::{Ending, Outcome, SideChildren, SideCommand, run};

async fn shell(children: &SideChildren, script: String) -> Outcome {
    let command = ["/bin/sh".into(), "-c".into(), OsString::from(script)].to_vec();
    run(children, &SideCommand { command, timeout: Duration::from_secs(60) }, &[], b"").await
}

#[tokio::test]
async fn statuses_are_not_taken_by_whoever_reaps_orphans() {
    let children = SideChildren::default();
    let reaping = async {
        loop {
            children.reap_orphans(&[]).unwrap();
            tokio::task::yield_now().await;
        }
    };
    let running = async {
        for code in 1..40 {
            let outcome = shell(&children, format!("exit {code}")).await;
            assert_eq!(outcome.ending, Ending::Ended(WaitStatus::exited(code)));
        }
    };
    tokio::select! {
        () = reaping => {}
        () = running => {}
    }
    what_was_broken_off_is_an_orphan_to_be_reaped().await;
}

/// After the other: each reaps whatever is not its own.
async fn what_was_broken_off_is_an_orphan_to_be_reaped() {
    let children = SideChildren::default();
    let broken = shell(&children, "sleep 300".to_owned());
    assert!(tokio::time::timeout(Duration::from_millis(200), broken).await.is_err());
    assert!(children.pids().is_empty());
    let reaped = async {
        while children.reap_orphans(&[]).unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reaped).await.unwrap();
}
