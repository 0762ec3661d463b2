//! Reads a prover's `/status`: with patience, since it may be busy, and with bounds, since it may be anything.

use std::time::Duration;

use sexton_control::client::{Answer, Client, ClientError};
use sexton_control::target::Target;
use sexton_model::pipeline::PipelineStatus;

/// The longest page that is read, bytes: cuzk lists failed jobs for ever, 1 KiB each or so.
pub const PAGE_MAX: usize = 2 << 20;

/// How long one answer may take.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Asks one URL.
#[derive(Debug, Clone)]
pub struct Asker {
    client: Client,
    path: String,
}

impl Asker {
    /// Asks `target`, giving each answer `patience`.
    pub fn new(target: &Target, patience: Duration) -> Self {
        let client = Client::new(target.endpoint.clone(), patience).with_answer_max(PAGE_MAX);
        Self { client, path: target.path.clone() }
    }

    /// The whole answer to `method`, of any HTTP status.
    ///
    /// # Errors
    /// [`ClientError`], never `Refused`.
    pub async fn ask(&self, method: hyper::Method) -> Result<Answer, ClientError> {
        self.client.send(method, &self.path, Default::default()).await
    }

    /// What `GET` answers, as a status page.
    ///
    /// # Errors
    /// One line: no answer, another HTTP status, or another document.
    pub async fn status(&self) -> Result<PipelineStatus, String> {
        self.client.get(&self.path).await.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
pub(super) mod served;
