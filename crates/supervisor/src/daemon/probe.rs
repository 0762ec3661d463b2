//! Whether a starting prover is ready: asks it, or waits until it says so itself, and tells when that takes too long.

use std::time::Duration;

use sexton_control::target::Target;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::prover_status::{Asker, PATIENCE};

/// How long it waits between two questions: at first, and at most. Provers start in half a second or in half an hour.
const INTERVAL_MIN: Duration = Duration::from_millis(200);
const INTERVAL_MAX: Duration = Duration::from_secs(2);

/// By how much a page may be older than its run: its clock begins when its engine does, ours at the fork.
const AGE_TOLERANCE: Duration = Duration::from_secs(5);

/// What shows that a prover is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// Nothing: it is taken to be ready as soon as its program runs.
    None,
    /// It says so by `sd_notify`, which its supervisor hears elsewhere: only the time is watched here.
    Notify,
    /// This URL answers with 200.
    Http(Target),
    /// This URL answers with a status page, of an engine that is no older than the run: another prover that listens in its
    /// place does not make it ready.
    Status(Target),
}

/// What is known of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// It is ready.
    Ready,
    /// It is not, and should be. It goes on being asked.
    Overdue {
        /// What came of the last question.
        why: String,
    },
}

/// Asks in a task of its own, so that whatever else happens meanwhile breaks off no question. Dropped, it asks no more.
#[derive(Debug)]
pub struct Probe {
    asking: Option<JoinHandle<()>>,
    /// What came of the last question.
    last: watch::Receiver<String>,
    ready: bool,
    overdue_at: Option<Instant>,
}

impl Probe {
    /// Begins to ask. `age`: how long the run has been there; `timeout`: how long from now it may take to be ready,
    /// `None` for ever.
    pub fn start(readiness: Readiness, age: Duration, timeout: Option<Duration>) -> Self {
        let begin = Instant::now();
        let (telling, last) = watch::channel(match readiness {
            Readiness::Notify => "it has not sent READY=1 to NOTIFY_SOCKET".to_owned(),
            _ => "it was not asked yet".to_owned(),
        });
        let ready = readiness == Readiness::None;
        let asking = match readiness {
            Readiness::None | Readiness::Notify => None,
            Readiness::Http(target) => Some((target, None)),
            Readiness::Status(target) => Some((target, Some(age))),
        };
        let asking = asking.map(|(target, age)| tokio::spawn(ask_until_ready(target, age, begin, telling)));
        Self { asking, last, ready, overdue_at: timeout.and_then(|timeout| begin.checked_add(timeout)) }
    }

    /// It takes so much longer from now on, as the prover says itself.
    pub fn extend(&mut self, more: Duration) {
        let later = Instant::now().checked_add(more);
        self.overdue_at = self.overdue_at.and_then(|at| later.map(|later| at.max(later)));
    }

    /// Each piece of news once; after `Ready` nothing more comes. Cancel-safe.
    pub async fn next(&mut self) -> News {
        if std::mem::take(&mut self.ready) {
            self.overdue_at = None;
            return News::Ready;
        }
        let Self { asking, last, overdue_at, .. } = self;
        let ready = async {
            let Some(task) = asking else { return std::future::pending().await };
            // Only the runtime's end cancels the task, and that is ours.
            if task.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let overdue = async {
            match overdue_at {
                Some(at) => tokio::time::sleep_until(*at).await,
                None => std::future::pending().await,
            }
        };
        let news = tokio::select! {
            biased;
            () = ready => News::Ready,
            () = overdue => News::Overdue { why: last.borrow().clone() },
        };
        self.overdue_at = None;
        if news == News::Ready {
            self.asking = None;
        }
        news
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(task) = &self.asking {
            task.abort();
        }
    }
}

/// `age`: how old the run was at `begin`, where a page is to tell that it is this run's.
async fn ask_until_ready(
    target: Target,
    age: Option<Duration>,
    begin: Instant,
    telling: watch::Sender<String>,
) {
    let asker = Asker::new(&target, PATIENCE);
    loop {
        let ready = match age {
            Some(age) => status(&asker, || age + begin.elapsed()).await,
            None => http(&asker).await,
        };
        match ready {
            Ok(()) => return,
            Err(why) => drop(telling.send_replace(format!("{target}: {why}"))),
        }
        tokio::time::sleep((begin.elapsed() / 20).clamp(INTERVAL_MIN, INTERVAL_MAX)).await;
    }
}

async fn http(asker: &Asker) -> Result<(), String> {
    match asker.ask(hyper::Method::GET).await {
        Ok(answer) if answer.status == 200 => Ok(()),
        Ok(answer) => Err(format!("it answers with status {}", answer.status)),
        Err(error) => Err(error.to_string()),
    }
}

async fn status(asker: &Asker, age: impl Fn() -> Duration) -> Result<(), String> {
    let page = asker.status().await?;
    let run = age().as_secs_f64();
    if page.uptime_secs > run + AGE_TOLERANCE.as_secs_f64() {
        return Err(format!(
            "an engine answers that is {:.0} s old, and this run is {run:.0} s old: another prover listens there",
            page.uptime_secs
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
