//! What operators ask and tell.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sexton_control::prover::Admission;
use sexton_model::pipeline::{EngineState, PipelineStatus};

use super::Api;
use super::refusal::Refused;

/// `GET /status`.
pub(super) async fn status(State(api): State<Api>) -> Json<PipelineStatus> {
    Json(api.engine.status())
}

/// `GET /healthz`: that this is answered is the answer.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: 503 tells a load balancer to send jobs elsewhere.
pub(super) async fn readyz(State(api): State<Api>) -> Response {
    let admission = api.engine.admission();
    let ready = admission.state == EngineState::Ready;
    let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(admission)).into_response()
}

/// `POST /quiesce`.
pub(super) async fn quiesce(State(api): State<Api>) -> Result<Json<Admission>, Refused> {
    admit(&api, true)
}

/// `DELETE /quiesce`.
pub(super) async fn unquiesce(State(api): State<Api>) -> Result<Json<Admission>, Refused> {
    admit(&api, false)
}

/// `POST /drain`. The process ends by itself when everything is answered.
pub(super) async fn drain(State(api): State<Api>) -> (StatusCode, Json<Admission>) {
    (StatusCode::ACCEPTED, Json(api.engine.drain("request", false)))
}

fn admit(api: &Api, closed: bool) -> Result<Json<Admission>, Refused> {
    api.engine.quiesce(closed).map(Json).map_err(|_| {
        Refused::new(
            StatusCode::CONFLICT,
            "draining: this prover is about to exit, which cannot be taken back",
        )
    })
}
