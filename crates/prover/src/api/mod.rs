//! The HTTP routes over an engine. Paths, bodies and answers are defined in `sexton_control::prover`.
//!
//! | module | routes |
//! |---|---|
//! | `proofs` | submit, wait for, cancel |
//! | `keys` | verifying keys |
//! | `operations` | status, health, readiness, quiesce, drain |
//! | `metrics` | Prometheus text |
//! | `browser` | what a web page in a browser of this host must not reach |
//! | `refusal` | every answer that is not 2xx |

mod browser;
mod keys;
pub mod metrics;
mod operations;
mod proofs;
mod refusal;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use sexton_control::prover::{DRAIN, HEALTHZ, KEYS, METRICS, PROOFS, QUIESCE, READYZ, STATUS};

pub(crate) use self::browser::refuse_browsers;
use self::refusal::Refused;
use crate::engine::Engine;
use crate::keys::KeyStore;

/// The longest request body in bytes. The largest message that can be proved takes 8 KiB in hexadecimal.
pub const BODY_MAX_BYTES: usize = 64 << 10;

/// What the routes work on.
#[derive(Clone)]
pub struct Api {
    /// The jobs.
    pub engine: Engine,
    /// The keys.
    pub keys: Arc<KeyStore>,
    /// Whether a request may name a file of this host: only for those who could read it themselves.
    pub files_allowed: bool,
}

impl Api {
    /// The routes.
    pub fn router(self) -> Router {
        Router::new()
            .route(PROOFS, post(proofs::submit))
            .route(&format!("{PROOFS}/{{id}}"), get(proofs::get).delete(proofs::cancel))
            .route(KEYS, get(keys::list))
            .route("/v1/circuits/{circuit}/vk", get(keys::verifying_key))
            .route(STATUS, get(operations::status))
            .route(METRICS, get(metrics::get))
            .route(HEALTHZ, get(operations::healthz))
            .route(READYZ, get(operations::readyz))
            .route(QUIESCE, post(operations::quiesce).delete(operations::unquiesce))
            .route(DRAIN, post(operations::drain))
            .fallback(Refused::no_such_route)
            .method_not_allowed_fallback(Refused::wrong_method)
            .layer(DefaultBodyLimit::max(BODY_MAX_BYTES))
            .with_state(self)
    }
}
