//! The control socket.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use axum::extract::{Path as UrlPath, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use sexton_control::prover::Refusal;
use sexton_control::supervisor::{self as routes, EventList, RunList};
use sexton_model::SCHEMA_VERSION;
use sexton_model::status::SupervisorStatus;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot, watch};

use super::metrics::{self, Counters, OwnProcess};
use super::{Command, Request};
use crate::place::Place;
use crate::{journal, runs};

/// How many runs one answer lists.
const RUNS_MAX: usize = 1000;

/// What the handlers need.
#[derive(Debug)]
pub struct Shared {
    /// Whose records to read.
    pub place: Place,
    /// The status as last published.
    pub status: watch::Receiver<SupervisorStatus>,
    /// What was counted so far.
    pub counters: watch::Receiver<Counters>,
    /// To the loop.
    pub commands: mpsc::Sender<Request>,
}

/// Listens on `socket`, for this user alone. Whoever listened there before is gone: the caller holds the lock.
///
/// # Errors
/// The file system's.
pub fn bind(socket: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

/// Serves until the sender of `left` is gone, then until the answers under way are written.
///
/// # Errors
/// The listener's.
pub async fn serve(listener: UnixListener, shared: Shared, left: oneshot::Receiver<()>) -> io::Result<()> {
    let app = Router::new()
        .route(routes::STATUS, get(status))
        .route(routes::RUNS, get(list))
        .route(&routes::run_path("{id}"), get(one))
        .route(routes::EVENTS, get(events))
        .route(routes::METRICS, get(metrics))
        .route(routes::STOP, post(|state| command(state, Command::Stop)))
        .route(routes::START, post(|state| command(state, Command::Start)))
        .route(routes::RESTART, post(|state| command(state, Command::Restart)))
        .route(routes::SHUTDOWN, post(|state| command(state, Command::Shutdown)))
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, "there is no such route") })
        .method_not_allowed_fallback(|| async {
            refuse(StatusCode::METHOD_NOT_ALLOWED, "not with this method")
        })
        .with_state(Arc::new(shared));
    axum::serve(listener, app).with_graceful_shutdown(async { drop(left.await) }).await
}

type Context = State<Arc<Shared>>;

fn refuse(status: StatusCode, error: impl std::fmt::Display) -> Response {
    (status, Json(Refusal { schema_version: SCHEMA_VERSION, error: error.to_string() })).into_response()
}

async fn status(State(shared): Context) -> Json<SupervisorStatus> {
    Json(shared.status.borrow().clone())
}

async fn metrics(State(shared): Context) -> Response {
    let page = metrics::page(&shared.status.borrow(), &shared.counters.borrow(), OwnProcess::read());
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], page).into_response()
}

async fn command(State(shared): Context, command: Command) -> Response {
    let (reply, answer) = oneshot::channel();
    if shared.commands.send((command, reply)).await.is_err() {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the supervisor is leaving");
    }
    match answer.await {
        Ok(status) => (StatusCode::ACCEPTED, Json(status)).into_response(),
        Err(_) => refuse(StatusCode::SERVICE_UNAVAILABLE, "the supervisor is leaving"),
    }
}

async fn list(State(shared): Context) -> Response {
    match runs::newest(&shared.place.runs_dir(), RUNS_MAX) {
        Ok(newest) => Json(RunList { schema_version: SCHEMA_VERSION, runs: newest.entries }).into_response(),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, error),
    }
}

async fn one(State(shared): Context, UrlPath(id): UrlPath<String>) -> Response {
    let found = runs::find(&shared.place.runs_dir(), &id).and_then(|dir| {
        let missing = || runs::RunError::NoSuchRun(id.clone());
        runs::entry(&dir)?.ok_or_else(missing)
    });
    match found {
        Ok(entry) => Json(entry).into_response(),
        Err(error @ (runs::RunError::NoSuchRun(_) | runs::RunError::Ambiguous(_))) => {
            refuse(StatusCode::NOT_FOUND, error)
        }
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, error),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Events with a higher number only.
    after: Option<u64>,
}

async fn events(
    State(shared): Context,
    query: Result<Query<EventsQuery>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let Ok(Query(query)) = query else {
        return refuse(StatusCode::BAD_REQUEST, "the only parameter is after=NUMBER");
    };
    match journal::read(&shared.place.journal(), query.after.map_or(0, |after| after.saturating_add(1))) {
        Ok(events) => Json(EventList { schema_version: SCHEMA_VERSION, events }).into_response(),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, error),
    }
}
