//! Proofs: submit, wait for, cancel.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use sexton_control::prover::{
    Accepted, Cancellation, ProofAnswer, ProofFormat, ProofRequest, WAIT_MAX_SECONDS,
};
use sexton_model::pipeline::JobState;
use sexton_model::units::parse_duration;

use super::refusal::Refused;
use super::{Api, BODY_MAX_BYTES};

/// `POST /v1/proofs`. The body is read as JSON whatever its content type says: `curl -d` says something else.
pub(super) async fn submit(
    State(api): State<Api>,
    body: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Accepted>), Refused> {
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refused::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format_args!("the body is larger than {BODY_MAX_BYTES} bytes"),
        ),
        code => Refused::new(code, rejection.body_text()),
    })?;
    let request: ProofRequest = serde_json::from_slice(&body)
        .map_err(|error| Refused::bad_request(format_args!("body is not a proof request: {error}")))?;
    // Off this thread: the size of a file may be asked for, and a file system may not answer.
    let submitted = tokio::task::spawn_blocking(move || api.engine.submit(request, api.files_allowed)).await;
    let submitted = submitted.map_err(|error| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    Ok((StatusCode::ACCEPTED, Json(submitted?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetQuery {
    wait: Option<String>,
    #[serde(default)]
    format: ProofFormat,
}

/// `GET /v1/proofs/{id}?wait=30s&format=snarkjs`: the answer as it is, or as it is when the job ends or `wait` is over.
pub(super) async fn get(
    State(api): State<Api>,
    Path(id): Path<String>,
    query: Result<Query<GetQuery>, QueryRejection>,
) -> Result<Json<ProofAnswer>, Refused> {
    let Query(query) = query.map_err(|rejection| Refused::bad_request(rejection.body_text()))?;
    if let Some(wait) = &query.wait {
        let wait = parse_wait(wait)?;
        let mut states = api.engine.watch(&id).ok_or_else(|| Refused::no_such_job(&id))?;
        // An error means that the job was forgotten meanwhile, which the answer below tells.
        let _ = tokio::time::timeout(wait, states.wait_for(|state: &JobState| state.is_ended())).await;
    }
    api.engine.answer(&id, query.format).map(Json).ok_or_else(|| Refused::no_such_job(&id))
}

/// `DELETE /v1/proofs/{id}`.
pub(super) async fn cancel(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Json<Cancellation>, Refused> {
    api.engine.cancel(&id).map(Json).ok_or_else(|| Refused::no_such_job(&id))
}

fn parse_wait(text: &str) -> Result<Duration, Refused> {
    let wait = parse_duration(text).map_err(|error| Refused::bad_request(format_args!("wait: {error}")))?;
    if wait > Duration::from_secs(WAIT_MAX_SECONDS) {
        let error = format_args!("wait: {text:?} is more than {WAIT_MAX_SECONDS}s: ask again instead");
        return Err(Refused::bad_request(error));
    }
    Ok(wait)
}
