//! A prover's HTTP interface for tests: its page is what the test says.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use sexton_control::client::Endpoint;
use sexton_control::target::Target;
use sexton_model::pipeline::PipelineStatus;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What it answers.
#[derive(Debug, Clone)]
pub(in super::super) enum Says {
    /// Nothing, ever.
    Hangs,
    /// This status, with this text.
    Text(u16, String),
    /// 200 and this page.
    Page(Box<PipelineStatus>),
}

/// A listening prover. Dropped, it is gone.
#[derive(Debug)]
pub(in super::super) struct Served {
    endpoint: Endpoint,
    says: Arc<Mutex<Says>>,
    /// Methods and paths other than `GET`, as they came.
    pub(in super::super) asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

type Shared = (Arc<Mutex<Says>>, Arc<Mutex<Vec<String>>>);

impl Served {
    pub(in super::super) async fn start(says: Says) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        let shared: Shared = (Arc::new(Mutex::new(says)), Arc::default());
        let app = Router::new().fallback(answer).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { endpoint, says: shared.0, asked: shared.1, task }
    }

    pub(in super::super) fn target(&self, path: &str) -> Target {
        Target { endpoint: self.endpoint.clone(), path: path.to_owned() }
    }

    pub(in super::super) fn say(&self, says: Says) {
        *self.says.lock().unwrap() = says;
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State((says, asked)): State<Shared>, method: Method, uri: axum::http::Uri) -> Response {
    if method != Method::GET {
        asked.lock().unwrap().push(format!("{method} {uri}"));
    }
    let says = says.lock().unwrap().clone();
    match says {
        Says::Hangs => std::future::pending().await,
        Says::Text(status, text) => (StatusCode::from_u16(status).unwrap(), text).into_response(),
        Says::Page(page) => axum::Json(*page).into_response(),
    }
}

/// A page as cuzk writes it, with one job of so many partitions, so many of them done, and one in work while `busy`.
pub(in super::super) fn page(uptime_secs: f64, partitions: usize, done: usize, busy: bool) -> Says {
    let states = (0..partitions).map(|index| match index {
        index if index < done => "done",
        index if index == done && busy => "gpu",
        _ => "pending",
    });
    let listed: Vec<_> = states
        .enumerate()
        .map(|(index, state)| serde_json::json!({"index": index, "state": state, "synth_ms": null, "gpu_ms": null}))
        .collect();
    let jobs = if partitions == 0 {
        vec![]
    } else {
        vec![serde_json::json!({"job_id": "job-1", "proof_kind": "porep-c2", "started_secs_ago": 1.0,
            "total_partitions": partitions, "partitions_done": done, "partitions": listed})]
    };
    let page = serde_json::json!({
        "uptime_secs": uptime_secs,
        "memory": {"total_bytes": 1, "used_bytes": 0, "available_bytes": 1},
        "synthesis": {"max_concurrent": 4, "active": 0},
        "pipelines": jobs, "gpu_workers": [], "allocations": {"srs": [], "pce": []},
        "counters": {"total_completed": 0, "total_failed": 0, "completed_by_kind": {}, "failed_by_kind": {},
            "queue_depth": 0},
        "buffers": {"synth_in_flight": 0, "provers_in_flight": 0, "aux_in_flight": 0, "shells_in_flight": 0,
            "pending_handles": 0},
    });
    Says::Page(Box::new(serde_json::from_value(page).unwrap()))
}
