use super::*;
use crate::daemon::prover_status::served::{Says, Served, page};

const PATIENCE: Duration = Duration::from_secs(60);
const AT_ONCE: Duration = Duration::from_millis(100);

async fn next(probe: &mut Probe) -> News {
    tokio::time::timeout(PATIENCE, probe.next()).await.unwrap()
}

async fn is_quiet(probe: &mut Probe) -> bool {
    tokio::time::timeout(AT_ONCE, probe.next()).await.is_err()
}

#[tokio::test]
async fn without_a_probe_it_is_ready_at_once_and_once() {
    let mut probe = Probe::start(Readiness::None, Duration::ZERO, Some(Duration::ZERO));
    assert_eq!(next(&mut probe).await, News::Ready);
    assert!(is_quiet(&mut probe).await);
}

#[tokio::test]
async fn http_is_ready_with_200_and_overdue_once_with_the_last_answer() {
    let served = Served::start(Says::Text(503, "loading".into())).await;
    let target = served.target("/readyz");
    let mut probe =
        Probe::start(Readiness::Http(target.clone()), Duration::ZERO, Some(Duration::from_millis(500)));
    let why = format!("{target}: it answers with status 503");
    assert_eq!(next(&mut probe).await, News::Overdue { why });
    assert!(is_quiet(&mut probe).await);
    served.say(Says::Text(200, "ok".into()));
    assert_eq!(next(&mut probe).await, News::Ready);
    assert!(is_quiet(&mut probe).await);
}

#[tokio::test]
async fn a_page_makes_ready_and_something_else_with_200_does_not() {
    let served = Served::start(Says::Text(200, "welcome".into())).await;
    let readiness = Readiness::Status(served.target("/status"));
    let mut probe = Probe::start(readiness, Duration::ZERO, Some(Duration::from_millis(500)));
    assert!(matches!(next(&mut probe).await, News::Overdue { why } if why.contains("something else")));
    served.say(page(0.1, 0, 0, false));
    assert_eq!(next(&mut probe).await, News::Ready);
}

#[tokio::test]
async fn a_page_of_an_older_engine_is_not_the_runs() {
    let served = Served::start(page(5_000.0, 0, 0, false)).await;
    let readiness = Readiness::Status(served.target("/status"));
    let mut probe = Probe::start(readiness.clone(), Duration::ZERO, Some(Duration::from_millis(300)));
    assert!(matches!(next(&mut probe).await, News::Overdue { why } if why.contains("another prover")));
    // Of a run that was taken over it may be.
    let mut probe = Probe::start(readiness, Duration::from_secs(5_000), None);
    assert_eq!(next(&mut probe).await, News::Ready);
}

#[tokio::test]
async fn a_page_without_an_end_is_not_read() {
    let served = Served::start(Says::Text(200, " ".repeat(crate::daemon::prover_status::PAGE_MAX + 1))).await;
    let readiness = Readiness::Status(served.target("/status"));
    let mut probe = Probe::start(readiness, Duration::ZERO, Some(Duration::from_millis(300)));
    assert!(matches!(next(&mut probe).await, News::Overdue { why } if why.contains("limit")));
}

#[tokio::test]
async fn who_says_so_himself_is_not_asked_and_may_take_more_time() {
    let mut probe = Probe::start(Readiness::Notify, Duration::ZERO, Some(AT_ONCE * 3));
    probe.extend(AT_ONCE * 6);
    let begin = Instant::now();
    let why = "it has not sent READY=1 to NOTIFY_SOCKET".to_owned();
    assert_eq!(next(&mut probe).await, News::Overdue { why });
    assert!(begin.elapsed() >= AT_ONCE * 6);
}

#[tokio::test]
async fn a_question_that_is_broken_off_is_not_lost() {
    let served = Served::start(Says::Text(200, "ok".into())).await;
    let mut probe = Probe::start(Readiness::Http(served.target("/")), Duration::ZERO, None);
    let ready = async {
        loop {
            if let Ok(news) = tokio::time::timeout(Duration::from_millis(1), probe.next()).await {
                return news;
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, ready).await.unwrap(), News::Ready);
}
