//! A process that serves an engine: sockets, signals, drain, service manager.
//!
//! It ends by a drain only: SIGTERM, SIGINT, SIGHUP or `POST /drain`. What waits is handed back at once, what runs is
//! finished, answers wait a little for their clients, and the exit code is 0. A second signal hastens: what runs is
//! handed back too.

pub mod socket;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::middleware::from_fn;
use axum::serve::Listener;
use sexton_control::notify::notify;
use sexton_groth16::Shape;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use self::socket::{Socket, SocketError, bind_tcp};
use crate::api::{Api, refuse_browsers};
use crate::cpu::CpuBackend;
use crate::engine::{Drain, Engine, Settings};
use crate::exit::{self, Failure};
use crate::keys::{KeyStore, Notice, StoreError};
use crate::log;

/// How long connections may take to end once everything is answered.
const CLOSING: Duration = Duration::from_secs(2);

/// What to serve, and where.
#[derive(Debug)]
pub struct Options {
    /// The Unix socket.
    pub socket: PathBuf,
    /// A loopback address, if TCP is wanted too.
    pub listen: Option<SocketAddr>,
    /// The folder of keys.
    pub keys: PathBuf,
    /// Keys that are in memory before the server is ready.
    pub preload: Vec<Shape>,
    /// How long after a job's end its answer waits for the client while draining.
    pub linger: Duration,
    /// The engine.
    pub engine: Settings,
}

/// Serves until a drain is over.
///
/// # Errors
/// [`Failure`] when it cannot start: a socket in use, a key that is damaged.
pub fn serve(options: Options) -> Result<(), Failure> {
    let socket = Socket::bind(&options.socket).map_err(|error| Failure::new(exit::FAILED, error))?;
    let tcp = options.listen.map(bind_tcp).transpose();
    let tcp = tcp.map_err(|error| {
        let code = if matches!(error, SocketError::NotLoopback(_)) { exit::USAGE } else { exit::FAILED };
        Failure::new(code, error)
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let outcome = runtime.block_on(run(&socket, tcp, options));
    // Threads that still compute are abandoned: whatever they make is discarded.
    runtime.shutdown_background();
    outcome
}

async fn run(socket: &Socket, tcp: Option<std::net::TcpListener>, options: Options) -> Result<(), Failure> {
    let mut signals = Signals::new().map_err(system)?;
    let keys = Arc::new(KeyStore::new(options.keys.clone(), log_key));
    let backend = Arc::new(CpuBackend::new(Arc::clone(&keys)));
    let engine = Engine::start(options.engine.clone(), backend, true).map_err(system)?;
    let mut preloaded = preload(Arc::clone(&keys), options.preload.clone()).map_err(system)?;

    let mut servers = JoinSet::new();
    let (stop, stopped) = watch::channel(false);
    let api = |files_allowed| Api { engine: engine.clone(), keys: Arc::clone(&keys), files_allowed };
    servers.spawn(listen(socket.listener().map_err(system)?, api(true).router(), stopped.clone()));
    if let Some(tcp) = tcp {
        let tcp = tokio::net::TcpListener::from_std(tcp).map_err(system)?;
        let address = tcp.local_addr().map_err(system)?;
        log::event("listening", format_args!("tcp={address}"));
        servers.spawn(listen(tcp, api(false).router().layer(from_fn(refuse_browsers)), stopped));
    }
    log_start(&options);

    let mut changed = engine.changed();
    let (mut starting, mut stopping, mut signalled) = (true, false, false);
    let mut outcome = Ok(());
    loop {
        let mut wake = engine.expire();
        if engine.is_draining() && !stopping {
            stopping = true;
            tell("STOPPING=1");
        }
        match engine.drain_progress(options.linger) {
            Drain::Over => break,
            Drain::Answering(until) => wake = Some(wake.map_or(until, |wake| wake.min(until))),
            Drain::None | Drain::Running => {}
        }
        tokio::select! {
            name = signals.next() => {
                engine.drain(name, signalled);
                signalled = true;
            }
            result = &mut preloaded, if starting => {
                starting = false;
                outcome = preload_outcome(result);
                if outcome.is_err() {
                    engine.drain("key_failed", true);
                    continue;
                }
                engine.started();
                tell("READY=1");
                log::event("ready", format_args!("keys={}", options.preload.len()));
            }
            _ = changed.changed() => {}
            () = sleep_until(wake) => {}
        }
    }
    stop.send_replace(true);
    // Not for ever: a client may hold its connection open.
    let _ = tokio::time::timeout(CLOSING, servers.join_all()).await;
    let jobs = engine.status().jobs.unwrap_or_default();
    log::event(
        "exit",
        format_args!(
            "accepted={} done={} failed={} cancelled={} handed_back={}",
            jobs.accepted, jobs.done, jobs.failed, jobs.cancelled, jobs.handed_back
        ),
    );
    outcome
}

async fn listen<L>(listener: L, router: Router, mut stopped: watch::Receiver<bool>)
where
    L: Listener,
    L::Addr: std::fmt::Debug,
{
    let stop = async move {
        // An error means that the sender is gone, which is a stop as well.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(stop).await {
        log::event("listener_failed", format_args!("error={:?}", error.to_string()));
    }
}

/// Loads keys on a thread of its own; the receiver is told when all are there.
fn preload(
    keys: Arc<KeyStore>,
    shapes: Vec<Shape>,
) -> std::io::Result<oneshot::Receiver<Result<(), StoreError>>> {
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new().name("preload".to_owned()).spawn(move || {
        let outcome = shapes.into_iter().try_for_each(|shape| keys.get(shape).map(|_| ()));
        // Nobody listens any more when the server drains meanwhile.
        let _ = sender.send(outcome);
    })?;
    Ok(receiver)
}

fn preload_outcome(result: Result<Result<(), StoreError>, oneshot::error::RecvError>) -> Result<(), Failure> {
    match result {
        Ok(outcome) => outcome.map_err(Failure::from),
        Err(_) => Err(Failure::new(exit::SOFTWARE, "loading the keys panicked")),
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake.into()).await,
        None => std::future::pending().await,
    }
}

/// The signals that drain.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hang_up.recv() => "SIGHUP",
        }
    }
}

fn tell(message: &str) {
    if let Err(error) = notify(message) {
        log::event("notify_failed", format_args!("error={error:?}"));
    }
}

fn log_start(options: &Options) {
    let budget = options.engine.budget_bytes.map_or_else(|| "none".to_owned(), |bytes| bytes.to_string());
    log::event(
        "start",
        format_args!(
            "version={} pid={} workers={} socket={:?} keys={:?} budget_bytes={budget} run_id={:?}",
            env!("CARGO_PKG_VERSION"),
            std::process::id(),
            options.engine.workers,
            options.socket,
            options.keys,
            options.engine.run_id.as_deref().unwrap_or_default(),
        ),
    );
}

fn log_key(notice: Notice) {
    match notice {
        Notice::Waiting(shape) => log::event("key_waiting", format_args!("circuit={shape}")),
        Notice::SettingUp(shape) => log::event("key_setup", format_args!("circuit={shape} kind=development")),
        Notice::SetUp(shape, took) => {
            log::event(
                "key_made",
                format_args!("circuit={shape} kind=development took_us={}", took.as_micros()),
            );
        }
        Notice::Loaded(shape, took) => {
            log::event("key_loaded", format_args!("circuit={shape} took_us={}", took.as_micros()));
        }
    }
}

fn system(error: std::io::Error) -> Failure {
    Failure::new(exit::SYSTEM, format_args!("cannot start: {error}"))
}
