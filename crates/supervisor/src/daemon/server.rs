//! The control socket.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use sexton_control::prover::Refusal;
use sexton_control::supervisor::{self as routes, EventList, LIMIT_MAX, RunList};
use sexton_model::SCHEMA_VERSION;
use sexton_model::status::SupervisorStatus;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot, watch};

use super::metrics::{self, Counters, OwnProcess};
use super::{Command, Request};
use crate::place::Place;
use crate::runs::Detail;
use crate::{journal, runs};

/// How many runs one answer lists where nobody says how many.
const RUNS_BY_DEFAULT: usize = 100;

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
        .route(routes::START, post(start))
        .route(routes::RESTART, post(|state| command(state, Command::Restart)))
        .route(routes::DRAIN, post(|state| command(state, Command::Drain)))
        .route(routes::QUIESCE, post(|state| command(state, Command::Quiesce)))
        .route(routes::UNQUIESCE, post(|state| command(state, Command::Unquiesce)))
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
        Ok(Ok(status)) => (StatusCode::ACCEPTED, Json(status)).into_response(),
        Ok(Err(why)) => refuse(StatusCode::CONFLICT, why),
        Err(_) => refuse(StatusCode::SERVICE_UNAVAILABLE, "the supervisor is leaving"),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartQuery {
    /// Without waiting for memory, or for anything else.
    #[serde(default)]
    now: bool,
}

async fn start(state: Context, query: Result<Query<StartQuery>, QueryRejection>) -> Response {
    match query {
        Ok(Query(StartQuery { now: false })) => command(state, Command::Start).await,
        Ok(Query(StartQuery { now: true })) => command(state, Command::StartNow).await,
        Err(_) => refuse(StatusCode::BAD_REQUEST, "the only parameter is now=true|false"),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunsQuery {
    limit: Option<usize>,
}

async fn list(State(shared): Context, query: Result<Query<RunsQuery>, QueryRejection>) -> Response {
    let limit = query.ok().and_then(|Query(query)| limit(query.limit, RUNS_BY_DEFAULT));
    let Some(limit) = limit else {
        return refuse(StatusCode::BAD_REQUEST, format!("the only parameter is limit=1..{LIMIT_MAX}"));
    };
    match runs::newest_in(&shared.place.runs_dir(), limit, Detail::Listed) {
        Ok(newest) => Json(RunList { schema_version: SCHEMA_VERSION, runs: newest.entries }).into_response(),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, error),
    }
}

/// `None` where what is asked for is out of bounds.
fn limit(asked: Option<usize>, default: usize) -> Option<usize> {
    Some(asked.unwrap_or(default)).filter(|limit| (1..=LIMIT_MAX).contains(limit))
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
    limit: Option<usize>,
}

async fn events(State(shared): Context, query: Result<Query<EventsQuery>, QueryRejection>) -> Response {
    let query = query.ok().and_then(|Query(query)| Some((query.after, limit(query.limit, LIMIT_MAX)?)));
    let Some((after, limit)) = query else {
        let known = format!("the only parameters are after=NUMBER and limit=1..{LIMIT_MAX}");
        return refuse(StatusCode::BAD_REQUEST, known);
    };
    match journal::read(&shared.place.journal(), after.map_or(0, |after| after.saturating_add(1)), limit) {
        Ok(events) => Json(EventList { schema_version: SCHEMA_VERSION, events }).into_response(),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, error),
    }
}
