//! Asks a starting prover whether it is ready.

use std::path::PathBuf;
use std::time::Duration;

use sexton_control::client::{Client, Endpoint};
use sexton_control::prover::READYZ;
use tokio::task::JoinHandle;

/// How long it waits between two questions.
const INTERVAL: Duration = Duration::from_millis(200);

/// How long one answer may take: a prover that loads its keys may be slow to say so.
const PATIENCE: Duration = Duration::from_secs(5);

/// A task of its own, so that whatever else happens meanwhile breaks off no question. Dropped, it asks no more.
#[derive(Debug)]
pub struct Probe(JoinHandle<()>);

impl Probe {
    /// Asks on `socket` until it is told "ready".
    pub fn start(socket: PathBuf) -> Self {
        Self(tokio::spawn(async move {
            let client = Client::new(Endpoint::Unix(socket), PATIENCE);
            loop {
                let answer = client.send(hyper::Method::GET, READYZ, Default::default()).await;
                if answer.is_ok_and(|answer| answer.status == 200) {
                    return;
                }
                tokio::time::sleep(INTERVAL).await;
            }
        }))
    }

    /// Returns once, when the prover is ready: not to be awaited again after that. May be broken off.
    pub async fn ready(&mut self) {
        // Only the runtime's end cancels the task, and that is ours.
        if (&mut self.0).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.abort();
    }
}
