//! Keys: what clients need to verify a proof themselves.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use sexton_control::prover::{KeyList, LoadedKey, ProofFormat, VerifyingKeyAnswer};
use sexton_groth16::Shape;
use sexton_groth16::format::Format;
use sexton_model::SCHEMA_VERSION;

use super::Api;
use super::refusal::Refused;
use crate::cpu::verifying_key_document;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FormatQuery {
    #[serde(default)]
    format: ProofFormat,
}

/// `GET /v1/circuits/{circuit}/vk?format=snarkjs`. No key is made for it: that can take minutes.
pub(super) async fn verifying_key(
    State(api): State<Api>,
    Path(circuit): Path<String>,
    query: Result<Query<FormatQuery>, QueryRejection>,
) -> Result<Json<VerifyingKeyAnswer>, Refused> {
    let Query(FormatQuery { format }) =
        query.map_err(|rejection| Refused::bad_request(rejection.body_text()))?;
    let shape: Shape = circuit.parse().map_err(Refused::bad_request)?;
    let keys = api.keys;
    let found = tokio::task::spawn_blocking(move || keys.find(shape)).await;
    let found = found.map_err(|error| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    let found = found.map_err(|error| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    let key = found.ok_or_else(|| {
        let error =
            format!("no key for {shape} yet: it is made with the first proof, or by `prover setup {shape}`");
        Refused::new(StatusCode::NOT_FOUND, error)
    })?;
    let document = match format {
        ProofFormat::Native => Format::Native,
        ProofFormat::Snarkjs => Format::Snarkjs,
    };
    Ok(Json(VerifyingKeyAnswer {
        schema_version: SCHEMA_VERSION,
        circuit: shape.to_string(),
        key_id: key.key_id.clone(),
        development_key: key.is_development(),
        format,
        vk: verifying_key_document(document, key.key.verifying_key()),
    }))
}

/// `GET /v1/keys`.
pub(super) async fn list(State(api): State<Api>) -> Json<KeyList> {
    let keys = api.keys.loaded();
    let keys = keys.iter().map(|key| LoadedKey {
        circuit: key.key.shape().to_string(),
        key_id: key.key_id.clone(),
        development_key: key.is_development(),
        bytes: key.bytes,
    });
    Json(KeyList { schema_version: SCHEMA_VERSION, keys: keys.collect() })
}
