//! The prover's HTTP interface: its paths, requests and answers.
//!
//! Served by `prover serve`; asked by the supervisor, `deploy`, the dashboard and everybody who wants a proof.
//! Requests refuse unknown names (a misspelt `deadline` must not be ignored); answers may gain names.
//! Every answer that is not 2xx carries a [`Refusal`], except that of [`READYZ`].

pub mod client;

use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use sexton_model::pipeline::{EngineState, JobState, JobTimings, PipelineStatus, Priority};

/// `POST` a [`ProofRequest`]: 202 [`Accepted`], 400, 409, 413, or 503 with `Retry-After` (whole seconds).
pub const PROOFS: &str = "/v1/proofs";
/// `GET`: the keys in memory, as [`KeyList`].
pub const KEYS: &str = "/v1/keys";
/// `GET`: [`PipelineStatus`].
pub const STATUS: &str = "/status";
/// `GET`: Prometheus text.
pub const METRICS: &str = "/metrics";
/// `GET`: 200 while the process serves.
pub const HEALTHZ: &str = "/healthz";
/// `GET`: 200 while the keys asked for at the start are in memory and jobs are admitted, else 503; both [`Admission`].
pub const READYZ: &str = "/readyz";
/// `POST` stops admission, `DELETE` opens it again (409 while draining); both answer [`Admission`].
pub const QUIESCE: &str = "/quiesce";
/// `POST`: quiesce for good, finish what runs, hand back what waits, exit 0. 202 [`Admission`].
pub const DRAIN: &str = "/drain";

/// The longest `wait` that one `GET` of a proof may ask for, in seconds. A longer one is refused, not shortened.
pub const WAIT_MAX_SECONDS: u64 = 600;

/// The path of one proof: `GET` [`ProofAnswer`], `DELETE` [`Cancellation`]. `query` is empty or the whole of
/// `wait=30s`, `format=snarkjs`, or both joined by `&`.
#[must_use]
pub fn proof_path(id: &str, query: &str) -> String {
    if query.is_empty() { format!("{PROOFS}/{id}") } else { format!("{PROOFS}/{id}?{query}") }
}

/// The path of the verifying key of a circuit in a given size, such as `mimc-2^12`:
/// `GET` [`VerifyingKeyAnswer`].
#[must_use]
pub fn verifying_key_path(shape: &str, format: ProofFormat) -> String {
    format!("/v1/circuits/{}/vk?format={}", shape.replace('^', "%5E"), format.name())
}

/// What a proof, public inputs or a verifying key is written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProofFormat {
    /// Ours.
    #[default]
    Native,
    /// That of snarkjs, curve `bls12381`.
    Snarkjs,
}

impl ProofFormat {
    /// The name used in JSON, queries and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Snarkjs => "snarkjs",
        }
    }
}

/// A job to be proved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProofRequest {
    /// 1 to 128 of `A–Z a–z 0–9 . _ : -`; the engine makes one when it is absent. The same id with the same request is
    /// the same job (so a request whose answer was lost can be sent again), with another request it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `mimc`, `sha256` or `merkle`.
    pub circuit: String,
    /// What the circuit needs, by its own names.
    pub inputs: Value,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Priority,
    /// Seconds from acceptance after which nobody wants the proof any more: the job fails then, waiting or running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<f64>,
}

/// A job was taken, or was there already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// [`sexton_model::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Its id.
    pub id: String,
    /// Where it is now.
    pub state: JobState,
}

/// Where a job is and, when it ended, its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProofAnswer {
    /// [`sexton_model::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Its id.
    pub id: String,
    /// The circuit with its size, such as `mimc-2^12`.
    pub circuit: String,
    /// Its priority.
    pub priority: Priority,
    /// Where it is.
    pub state: JobState,
    /// `done`: how `proof` and `public` are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ProofFormat>,
    /// `done`: the proof, a document that `prover verify` reads when it is written to a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Value>,
    /// `done`: the public inputs, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<Value>,
    /// `done`: which key made it (the same value as in [`VerifyingKeyAnswer`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// `done`: true when that key was made without a ceremony, so that whoever made it can forge proofs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub development_key: Option<bool>,
    /// `failed`: why. `cancelled`, `handed_back`: in which state the job was at that moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `handed_back`: the request as it was, to be submitted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ProofRequest>,
    /// How long it took, by stage.
    pub timings: JobTimings,
}

/// What a `DELETE` of a proof did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancellation {
    /// [`sexton_model::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The job.
    pub id: String,
    /// Where it is now: `cancelled`, or the ending that it had reached before.
    pub state: JobState,
    /// Where it was when the request came.
    pub was: JobState,
    /// True when a worker has it still in hand: its result will be discarded when it comes.
    pub result_discarded: bool,
}

/// Whether the engine takes work, and what it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// [`sexton_model::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Whether it takes work.
    pub state: EngineState,
    /// True while nothing new is admitted.
    pub quiesced: bool,
    /// Jobs waiting.
    pub queued: u64,
    /// Jobs with a worker.
    pub running: u64,
}

/// A verifying key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerifyingKeyAnswer {
    /// [`sexton_model::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The circuit with its size.
    pub circuit: String,
    /// Which key this is.
    pub key_id: String,
    /// True when it was made without a ceremony.
    pub development_key: bool,
    /// How `vk` is written.
    pub format: ProofFormat,
    /// The verifying key, a document that `prover verify` reads when it is written to a file.
    pub vk: Value,
}

/// The proving keys in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyList {
    /// [`sexton_model::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Each of them.
    pub keys: Vec<LoadedKey>,
}

/// A proving key in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedKey {
    /// The circuit with its size.
    pub circuit: String,
    /// Which key this is.
    pub key_id: String,
    /// True when it was made without a ceremony.
    pub development_key: bool,
    /// Size of its file.
    pub bytes: u64,
}

/// The body of every answer that is not 2xx.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// [`sexton_model::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// One line: what was wrong and what to do.
    pub error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_needs_a_circuit_and_inputs_only() {
        let request: ProofRequest = serde_json::from_str(r#"{"circuit":"mimc","inputs":{}}"#).unwrap();
        assert_eq!((request.priority, request.id, request.deadline_seconds), (Priority::Normal, None, None));
    }

    #[test]
    fn a_misspelt_name_is_refused() {
        let body = r#"{"circuit":"mimc","inputs":{},"deadline":3}"#;
        let error = serde_json::from_str::<ProofRequest>(body).unwrap_err().to_string();
        assert!(error.contains("unknown field `deadline`"), "{error}");
    }

    #[test]
    fn a_power_in_a_path_is_escaped() {
        assert_eq!(
            verifying_key_path("mimc-2^12", ProofFormat::Snarkjs),
            "/v1/circuits/mimc-2%5E12/vk?format=snarkjs"
        );
    }
}
