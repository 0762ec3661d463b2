use super::*;
use crate::daemon::prover_status::served::{Says, Served, page};

const PATIENCE: Duration = Duration::from_secs(60);

async fn next(watchdog: &mut Watchdog) -> Change {
    tokio::time::timeout(PATIENCE, watchdog.next()).await.unwrap()
}

fn settings(served: &Served) -> Settings {
    Settings {
        status: served.target("/status"),
        progress_timeout: Some(Duration::from_millis(300)),
        silence: Duration::from_millis(200),
        interval: Duration::from_millis(20),
    }
}

#[tokio::test]
async fn work_that_stands_still_is_told_and_so_is_that_it_goes_on() {
    let served = Served::start(page(1.0, 3, 1, true)).await;
    let mut watchdog = Watchdog::start(settings(&served));
    let change = next(&mut watchdog).await;
    let Change::Stalled(stall) = &change else { panic!("{change:?}") };
    assert!(stall.in_hand && stall.seconds >= 0.3);
    assert_eq!(watchdog.in_flight(), stall.in_flight);
    let (kind, details, text) = told(&change);
    assert_eq!((kind, &details["in_flight"][0]["id"]), (EventKind::ProgressStalled, &json!("job-1")));
    assert!(text.ends_with("with 1 job in flight"), "{text}");
    served.say(page(1.0, 3, 2, true));
    assert!(matches!(next(&mut watchdog).await, Change::Moving { in_flight: 1, .. }));
}

#[tokio::test]
async fn a_prover_that_lives_and_does_not_answer_is_told_with_the_reason() {
    let served = Served::start(page(1.0, 3, 1, true)).await;
    let mut watchdog = Watchdog::start(Settings { progress_timeout: None, ..settings(&served) });
    tokio::time::timeout(PATIENCE, async {
        while watchdog.in_flight().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
    served.say(Says::Text(500, "panicked".into()));
    let change = next(&mut watchdog).await;
    assert!(matches!(&change, Change::Silent { why, .. } if why.contains("status 500")), "{change:?}");
    // What was in flight when it last told is what an exit record would have.
    assert_eq!(watchdog.in_flight().len(), 1);
    served.say(page(1.0, 0, 0, false));
    assert!(matches!(next(&mut watchdog).await, Change::Answering { .. }));
}

#[tokio::test(start_paused = true)]
async fn heartbeats_are_expected_from_the_beginning_and_missed_once() {
    let mut heartbeats = Heartbeats::new(Some(Duration::from_secs(30)));
    let hour = Duration::from_secs(3_600);
    assert!(tokio::time::timeout(hour, heartbeats.lost()).await.is_err());
    heartbeats.begin();
    for _ in 0..5 {
        assert!(tokio::time::timeout(Duration::from_secs(29), heartbeats.lost()).await.is_err());
        heartbeats.note(Heartbeat::Alive);
    }
    assert_eq!(heartbeats.lost().await, "it has not sent WATCHDOG=1 for 30 s");
    assert!(tokio::time::timeout(hour, heartbeats.lost()).await.is_err());
    heartbeats.note(Heartbeat::Alive);
    assert!(tokio::time::timeout(hour, heartbeats.lost()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_promise_can_be_changed_and_taken_back_and_a_trigger_counts_at_once() {
    let mut heartbeats = Heartbeats::new(None);
    let hour = Duration::from_secs(3_600);
    heartbeats.begin();
    assert!(tokio::time::timeout(hour, heartbeats.lost()).await.is_err());
    heartbeats.promise(Duration::from_secs(10));
    assert_eq!(heartbeats.lost().await, "it has not sent WATCHDOG=1 for 10 s");
    heartbeats.promise(Duration::ZERO);
    assert!(tokio::time::timeout(hour, heartbeats.lost()).await.is_err());
    heartbeats.note(Heartbeat::Failed);
    assert!(heartbeats.lost().await.contains("trigger"));
    assert!(tokio::time::timeout(hour, heartbeats.lost()).await.is_err());
}
