use super::*;
use crate::daemon::prover_status::served::{Says, Served, page};

const TIMEOUT: Duration = Duration::from_secs(60);
const SHORT: Patience =
    Patience { settle: Duration::from_millis(200), abandoned: Duration::from_millis(500) };

fn command(script: &str) -> SideCommand {
    SideCommand { command: ["/bin/sh", "-c", script].map(OsString::from).to_vec(), timeout: TIMEOUT }
}

fn start(how: &Quiesce, timeout: Option<Duration>) -> Quiescing {
    Quiescing::start(how.clone(), timeout, Surroundings::default())
}

async fn next(quiescing: &mut Quiescing) -> Ended {
    tokio::time::timeout(TIMEOUT, quiescing.next()).await.unwrap()
}

const DONE: Ended = Ended::Quiesced { abandoned: Vec::new() };

#[tokio::test]
async fn a_prover_with_the_route_is_told_and_then_waited_for() {
    let served = Served::start(page(1.0, 2, 1, true)).await;
    let how = Quiesce::http(&served.target("/readyz"));
    let mut quiescing = start(&how, None);
    let seen = async {
        while quiescing.in_flight() != Some(1) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, seen).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(100), quiescing.next()).await.is_err());
    served.say(page(1.0, 0, 0, false));
    assert_eq!(next(&mut quiescing).await, DONE);
    assert_eq!(*served.asked.lock().unwrap(), ["POST /quiesce"]);
    let mut back = Unquiescing::start(how, Surroundings::default());
    assert_eq!(tokio::time::timeout(TIMEOUT, back.next()).await.unwrap(), Ok(()));
    assert_eq!(*served.asked.lock().unwrap(), ["POST /quiesce", "DELETE /quiesce"]);
}

#[tokio::test]
async fn what_has_not_finished_in_time_is_told_with_its_work() {
    let served = Served::start(page(1.0, 2, 1, true)).await;
    let how = Quiesce::http(&served.target("/"));
    let ended = next(&mut start(&how, Some(Duration::from_millis(500)))).await;
    assert_eq!(ended, Ended::NotInTime { in_flight: Some(1), why: None });
    served.say(Says::Hangs);
    let ended = next(&mut start(&how, Some(Duration::from_millis(200)))).await;
    assert_eq!(ended, Ended::NotInTime { in_flight: None, why: None });
}

#[tokio::test]
async fn a_prover_without_the_route_and_one_without_a_page_cannot_be_quiesced_and_that_is_said() {
    let served = Served::start(Says::Text(404, "no such page".into())).await;
    let how = Quiesce::http(&served.target("/"));
    let ended = next(&mut start(&how, None)).await;
    assert!(
        matches!(&ended, Ended::Failed { why, .. } if why.ends_with("/quiesce answers with status 404")),
        "{ended:?}"
    );
    served.say(Says::Text(200, "fine".into()));
    let ended = next(&mut start(&how, None)).await;
    assert!(matches!(&ended, Ended::Failed { why, .. } if why.contains("something else")), "{ended:?}");
    let ended = next(&mut start(&Quiesce::None, None)).await;
    assert!(matches!(ended, Ended::Failed { .. }));
}

#[tokio::test]
async fn cuzk_is_watched_until_nothing_changes() {
    let served = Served::start(page(1.0, 2, 1, true)).await;
    let how = Quiesce::Watch { status: served.target("/status"), patience: SHORT };
    let mut quiescing = start(&how, None);
    assert!(tokio::time::timeout(Duration::from_millis(600), quiescing.next()).await.is_err());
    served.say(page(2.0, 2, 2, false));
    assert_eq!(next(&mut quiescing).await, DONE);
    assert!(served.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_job_that_cuzk_lists_for_ever_is_named_and_holds_nothing_up() {
    let served = Served::start(page(1.0, 3, 1, false)).await;
    let how = Quiesce::Watch { status: served.target("/status"), patience: SHORT };
    let ended = next(&mut start(&how, None)).await;
    let Ended::Quiesced { abandoned } = &ended else { panic!("{ended:?}") };
    assert_eq!((abandoned.len(), abandoned[0].id.as_str()), (1, "job-1"));
    assert!(ended.told().2.contains("still listed"));
}

#[tokio::test]
async fn a_command_quiesces_and_another_takes_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("quiesced");
    let how = Quiesce::Command {
        quiesce: command(&format!("touch {}", mark.display())),
        unquiesce: Some(command(&format!("rm {}", mark.display()))),
        status: None,
    };
    assert_eq!(next(&mut start(&how, None)).await, DONE);
    assert!(mark.exists());
    let mut back = Unquiescing::start(how, Surroundings::default());
    assert_eq!(tokio::time::timeout(TIMEOUT, back.next()).await.unwrap(), Ok(()));
    assert!(!mark.exists());
}

#[tokio::test]
async fn after_a_command_the_page_says_when_the_work_is_finished() {
    let served = Served::start(page(1.0, 2, 1, true)).await;
    let how = Quiesce::Command {
        quiesce: command("true"),
        unquiesce: None,
        status: Some((served.target("/status"), SHORT)),
    };
    let mut quiescing = start(&how, None);
    assert!(tokio::time::timeout(Duration::from_millis(400), quiescing.next()).await.is_err());
    served.say(page(2.0, 0, 0, false));
    assert_eq!(next(&mut quiescing).await, DONE);
}

#[tokio::test]
async fn a_command_that_fails_is_told_with_what_it_wrote() {
    let how =
        Quiesce::Command { quiesce: command("echo no such queue; exit 4"), unquiesce: None, status: None };
    let ended = next(&mut start(&how, None)).await;
    let Ended::Failed { why, output } = &ended else { panic!("{ended:?}") };
    assert!(why.starts_with("/bin/sh: exited with 4 after ") && why.ends_with(": no such queue"), "{why}");
    assert_eq!(output.as_deref(), Some("no such queue\n"));
}

#[tokio::test]
async fn a_command_is_killed_when_the_quiesce_is_given_up() {
    let around = Surroundings::default();
    let how = Quiesce::Command { quiesce: command("sleep 300"), unquiesce: None, status: None };
    let mut quiescing = Quiescing::start(how, Some(Duration::from_millis(200)), around.clone());
    assert!(matches!(next(&mut quiescing).await, Ended::NotInTime { .. }));
    assert!(around.children.pids().is_empty());
}
