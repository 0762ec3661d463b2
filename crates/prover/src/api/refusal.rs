//! Every answer that is not 2xx: a status code and one line.

use axum::Json;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use sexton_control::prover::Refusal;
use sexton_model::SCHEMA_VERSION;

use crate::engine;
use crate::engine::ledger::SubmitError;
use crate::statement::StatementError;

/// Seconds after which a refused client may try again.
const RETRY_AFTER_SECONDS: &str = "5";

/// A refusal on its way out.
#[derive(Debug)]
pub(super) struct Refused {
    code: StatusCode,
    error: String,
}

impl Refused {
    pub(super) fn new(code: StatusCode, error: impl ToString) -> Self {
        Self { code, error: error.to_string() }
    }

    /// 400: the request is wrong.
    pub(super) fn bad_request(error: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// 404: no such job, or forgotten.
    pub(super) fn no_such_job(id: &str) -> Self {
        let error = format!("no job {id:?}: never submitted here, or its answer was dropped for newer ones");
        Self::new(StatusCode::NOT_FOUND, error)
    }

    pub(super) async fn no_such_route(uri: Uri) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("no route {:?}", uri.path()))
    }

    pub(super) async fn wrong_method(method: Method, uri: Uri) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not for {:?}", uri.path()))
    }
}

impl From<engine::Refused> for Refused {
    fn from(error: engine::Refused) -> Self {
        let code = match &error {
            engine::Refused::Submit(SubmitError::Conflict(_)) => StatusCode::CONFLICT,
            engine::Refused::Submit(_) => StatusCode::SERVICE_UNAVAILABLE,
            engine::Refused::Statement(StatementError::Random(_)) => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(code, error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = Json(Refusal { schema_version: SCHEMA_VERSION, error: self.error });
        if self.code == StatusCode::SERVICE_UNAVAILABLE {
            return (self.code, [(header::RETRY_AFTER, RETRY_AFTER_SECONDS)], body).into_response();
        }
        (self.code, body).into_response()
    }
}
