//! Typed calls to a prover.

use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;

use super::{
    Accepted, Admission, Cancellation, DRAIN, KEYS, KeyList, METRICS, PROOFS, PipelineStatus, ProofAnswer,
    ProofFormat, ProofRequest, QUIESCE, READYZ, STATUS, VerifyingKeyAnswer, proof_path, verifying_key_path,
};
use crate::client::{Client, ClientError, Endpoint};

/// Asks one prover. Every call fails with [`ClientError`]; what the prover refuses is `Refused` with its own words.
#[derive(Debug, Clone)]
pub struct ProverClient {
    client: Client,
    timeout: Duration,
}

impl ProverClient {
    /// A client that gives each request `timeout`, and one that waits for a proof `timeout` more than it waits.
    #[must_use]
    pub fn new(endpoint: Endpoint, timeout: Duration) -> Self {
        Self { client: Client::new(endpoint, timeout), timeout }
    }

    /// Submits a job.
    pub async fn submit(&self, request: &ProofRequest) -> Result<Accepted, ClientError> {
        self.client.post(PROOFS, request).await
    }

    /// Where a job is, at once.
    pub async fn proof(&self, id: &str, format: ProofFormat) -> Result<ProofAnswer, ClientError> {
        self.client.get(&proof_path(id, &format!("format={}", format.name()))).await
    }

    /// Where a job is when it ends, or after `wait` (at most [`super::WAIT_MAX_SECONDS`]).
    pub async fn wait(
        &self,
        id: &str,
        format: ProofFormat,
        wait: Duration,
    ) -> Result<ProofAnswer, ClientError> {
        let patient = Client::new(self.client.endpoint().clone(), self.timeout + wait);
        patient.get(&proof_path(id, &format!("wait={}ms&format={}", wait.as_millis(), format.name()))).await
    }

    /// Cancels a job.
    pub async fn cancel(&self, id: &str) -> Result<Cancellation, ClientError> {
        self.client.delete(&proof_path(id, "")).await
    }

    /// The verifying key of a circuit in a given size, such as `mimc-2^12`.
    pub async fn verifying_key(
        &self,
        shape: &str,
        format: ProofFormat,
    ) -> Result<VerifyingKeyAnswer, ClientError> {
        self.client.get(&verifying_key_path(shape, format)).await
    }

    /// The keys in memory.
    pub async fn keys(&self) -> Result<KeyList, ClientError> {
        self.client.get(KEYS).await
    }

    /// What the prover says about its work.
    pub async fn status(&self) -> Result<PipelineStatus, ClientError> {
        self.client.get(STATUS).await
    }

    /// Whether it takes work; an answer also when it does not.
    pub async fn ready(&self) -> Result<Admission, ClientError> {
        let answer = self.client.send(Method::GET, READYZ, Bytes::new()).await?;
        serde_json::from_slice(&answer.body)
            .map_err(|error| ClientError::Decode(self.client.endpoint().clone(), error.to_string()))
    }

    /// Prometheus text.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let answer = self.client.send(Method::GET, METRICS, Bytes::new()).await?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// Stops admission.
    pub async fn quiesce(&self) -> Result<Admission, ClientError> {
        self.client.post(QUIESCE, &()).await
    }

    /// Opens admission again.
    pub async fn unquiesce(&self) -> Result<Admission, ClientError> {
        self.client.delete(QUIESCE).await
    }

    /// Quiesces for good; the prover exits by itself when every job is answered.
    pub async fn drain(&self) -> Result<Admission, ClientError> {
        self.client.post(DRAIN, &()).await
    }
}
