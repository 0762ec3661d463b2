//! `supervisor stop | start | restart | drain | quiesce | unquiesce | shutdown`

use std::io::{ErrorKind, IsTerminal};
use std::time::Duration;

use sexton_control::client::ClientError;
use sexton_control::supervisor as routes;
use sexton_model::event::{Event, EventKind};
use sexton_model::status::{Descendant, State, SupervisorStatus};
use sexton_model::units::{Bytes, Human};
use sexton_process::Pidfd;
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::status::{client, not_running};
use super::{Failure, duration, show};
use crate::daemon::descendants::named;
use crate::daemon::locks;
use crate::journal;
use crate::place::Place;

/// How often the state is asked for while waiting.
const ASK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, clap::Args)]
pub(super) struct WaitArgs {
    /// How long to wait for it; then exit code 75, and the stop goes on
    #[arg(long, value_name = "DUR", default_value = "5m", value_parser = duration)]
    timeout: Duration,
}

#[derive(Debug, clap::Args)]
pub(super) struct StartArgs {
    /// Wait neither for memory nor for a delay
    #[arg(long)]
    now: bool,
}

async fn post(place: &Place, route: &str) -> Result<SupervisorStatus, Failure> {
    match client(place).post(route, &serde_json::json!({})).await {
        Err(ClientError::NotRunning(_)) => Err(Failure::NotRunning(not_running(place)?)),
        other => Ok(other?),
    }
}

fn report(status: &SupervisorStatus, json: bool, text: &str) -> Result<(), Failure> {
    if json {
        show::json(status)?
    } else {
        show::text(&format!("{text}\n"))?
    }
    Ok(())
}

fn why(status: &SupervisorStatus) -> String {
    status.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default()
}

fn last_exit(status: &SupervisorStatus) -> String {
    status.last_exit.as_ref().map(|exit| format!(": the prover {}", exit.wait)).unwrap_or_default()
}

fn left_behind(descendants: &[Descendant]) -> String {
    if descendants.is_empty() { String::new() } else { format!("; these go on: {}", named(descendants)) }
}

/// What the journal says that a run has left behind. A journal that cannot be read says nothing.
fn left_at_the_end(place: &Place, run_id: Option<&str>) -> Vec<Descendant> {
    let is_it = |event: &Event| {
        event.kind == EventKind::DescendantsLeft && run_id.is_some() && event.run_id.as_deref() == run_id
    };
    let event = journal::events(&place.journal()).ok().and_then(|mut events| events.find(is_it));
    let left = event.and_then(|mut event| event.details.remove("descendants"));
    left.and_then(|left| serde_json::from_value(left).ok()).unwrap_or_default()
}

/// Whether the supervisor may just have left in the middle of its answer: whoever asks again finds out.
fn broke_off(error: &ClientError) -> bool {
    match error {
        ClientError::Http(..) => true,
        ClientError::Io(_, error) => {
            matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
        }
        _ => false,
    }
}

/// Asks until `done`; `None` where nobody listens any more.
async fn wait(
    place: &Place,
    timeout: Duration,
    done: impl Fn(&SupervisorStatus) -> bool,
) -> Result<Option<SupervisorStatus>, Failure> {
    let (begun, progress) = (Instant::now(), std::io::stderr().is_terminal());
    let mut seen = None;
    loop {
        match client(place).get::<SupervisorStatus>(routes::STATUS).await {
            Ok(status) if done(&status) => break Ok(Some(status)),
            Ok(status) => seen = Some(status),
            Err(ClientError::NotRunning(_)) => break Ok(None),
            Err(error) if broke_off(&error) => {}
            Err(error) => break Err(error.into()),
        }
        let waiting = seen.as_ref().map_or("leaving".to_owned(), |status| status.state.to_string());
        if begun.elapsed() >= timeout {
            break Err(not_in_time(&waiting, timeout));
        }
        if progress {
            let detail = seen.as_ref().map(under_way).unwrap_or_default();
            eprint!("\r\x1b[K{waiting} for {:.0} s{detail}", begun.elapsed().as_secs_f64());
        }
        tokio::time::sleep(ASK_INTERVAL).await;
    }
    .inspect(|_| {
        if progress {
            eprint!("\r\x1b[K");
        }
    })
}

/// What is known of the wait, for a terminal's one line.
fn under_way(status: &SupervisorStatus) -> String {
    if status.state == State::Quiescing {
        let jobs = status.in_flight.map(|jobs| format!(", {jobs} in flight"));
        return jobs.unwrap_or_default();
    }
    let Some(drain) = &status.drain else { return String::new() };
    let held = drain.held_bytes.value().map(|bytes| format!(", {} to come back", Bytes(*bytes)));
    let eta = drain.eta_seconds.map(|seconds| format!(", about {seconds:.0} s"));
    held.into_iter().chain(eta).collect()
}

fn not_in_time(what: &str, timeout: Duration) -> Failure {
    Failure::NotInTime(format!("still {what} after {}; it goes on", Human(timeout)))
}

/// Whether the prover is on its way out, its memory included.
fn is_ending(state: State) -> bool {
    use State::{Exiting, Quiescing, Releasing, Stalled, Stopping};
    matches!(state, Quiescing | Stopping | Exiting | Releasing | Stalled)
}

pub(super) async fn stop(place: &Place, args: &WaitArgs, json: bool) -> Result<(), Failure> {
    post(place, routes::STOP).await?;
    match wait(place, args.timeout, |status| !is_ending(status.state)).await? {
        Some(status) if status.state == State::Stopped => {
            let left = left_behind(&status.descendants);
            report(&status, json, &format!("stopped{}{left}", last_exit(&status)))
        }
        Some(status) => {
            Err(Failure::Failed(format!("the prover is {} again: somebody started it", status.state)))
        }
        None => Err(Failure::NotRunning("the supervisor left".to_owned())),
    }
}

/// It is to end once it is idle, and to go on where that takes too long.
pub(super) async fn drain(place: &Place, args: &WaitArgs, json: bool) -> Result<(), Failure> {
    post(place, routes::DRAIN).await?;
    match wait(place, args.timeout, |status| !is_ending(status.state)).await? {
        Some(status) if status.state == State::Stopped => {
            report(&status, json, &format!("drained and stopped{}", last_exit(&status)))
        }
        Some(status) => Err(Failure::NotInTime(format!(
            "it has not finished its work in time and goes on: {}{}",
            status.state,
            why(&status)
        ))),
        None => Err(Failure::NotRunning("the supervisor left".to_owned())),
    }
}

pub(super) async fn quiesce(place: &Place, args: &WaitArgs, json: bool) -> Result<(), Failure> {
    post(place, routes::QUIESCE).await?;
    match wait(place, args.timeout, |status| status.quiesced || status.state != State::Quiescing).await? {
        Some(status) if status.quiesced => report(
            &status,
            json,
            "quiesced: it has finished its work and takes no more until `supervisor unquiesce`",
        ),
        Some(status) => Err(Failure::Failed(format!("not quiesced: it is {}{}", status.state, why(&status)))),
        None => Err(Failure::NotRunning("the supervisor left".to_owned())),
    }
}

pub(super) async fn unquiesce(place: &Place, json: bool) -> Result<(), Failure> {
    let status = post(place, routes::UNQUIESCE).await?;
    report(&status, json, &format!("{}{}", status.state, why(&status)))
}

pub(super) async fn start(place: &Place, args: &StartArgs, json: bool) -> Result<(), Failure> {
    let route = if args.now { format!("{}?now=true", routes::START) } else { routes::START.to_owned() };
    let status = post(place, &route).await?;
    let pid = status.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    match status.state {
        State::Starting | State::Ready => report(&status, json, &format!("{}{pid}", status.state)),
        State::WaitingForMemory => {
            let gate = status.gate.as_ref().map(|gate| format!(": {}", gate.summary));
            report(&status, json, &format!("{}{}", status.state, gate.unwrap_or_else(|| why(&status))))
        }
        state if is_ending(state) => report(&status, json, &format!("{state} still; it starts after that")),
        other => Err(Failure::Failed(format!("{other}{}{}", last_exit(&status), why(&status)))),
    }
}

pub(super) async fn restart(place: &Place, args: &WaitArgs, json: bool) -> Result<(), Failure> {
    let before = post(place, routes::RESTART).await?;
    let old = before.run_id.filter(|_| is_ending(before.state));
    let renewed = |status: &SupervisorStatus| {
        let on_its_way = is_ending(status.state) || status.state == State::WaitingForMemory;
        !on_its_way && status.run_id != old
    };
    match wait(place, args.timeout, renewed).await? {
        Some(status) if matches!(status.state, State::Starting | State::Ready) => {
            let pid = status.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
            report(&status, json, &format!("{}{pid}", status.state))
        }
        Some(status) => Err(Failure::Failed(format!("{}{}", status.state, last_exit(&status)))),
        None => Err(Failure::NotRunning("the supervisor left".to_owned())),
    }
}

pub(super) async fn shutdown(place: &Place, args: &WaitArgs, json: bool) -> Result<(), Failure> {
    let begun = Instant::now();
    let listener = listener(place).await;
    let mut status = post(place, routes::SHUTDOWN).await?;
    wait(place, args.timeout, |_| false).await?;
    // It stops to listen first, and only its end frees the place for the next one.
    let left = args.timeout.saturating_sub(begun.elapsed());
    let gone = tokio::time::timeout(left, end_of(place, listener, status.supervisor_pid)).await;
    gone.map_err(|_| not_in_time("leaving", args.timeout))?;
    // Its answer was given before the prover's end.
    status.descendants.extend(left_at_the_end(place, status.run_id.as_deref()));
    let left = left_behind(&status.descendants);
    report(&status, json, &format!("the supervisor has left{left}"))
}

/// Who listens on the control socket, as a PID of our own namespace, with a handle on it.
async fn listener(place: &Place) -> Option<(i32, Pidfd)> {
    let connection = UnixStream::connect(place.control_socket()).await.ok()?;
    let pid = connection.peer_cred().ok()?.pid().filter(|pid| *pid > 0)?;
    Some((pid, Pidfd::open(pid).ok()?))
}

/// Returns when the supervisor that called itself `pid` has ended. Where its process is not the `listener` that was seen
/// before it answered (another PID namespace, say), its locks have to tell.
async fn end_of(place: &Place, listener: Option<(i32, Pidfd)>, pid: i32) {
    let process = listener.filter(|(listener, _)| *listener == pid).map(|(_, pidfd)| pidfd);
    let is_there = || match &process {
        Some(pidfd) => !pidfd.has_ended().unwrap_or(true),
        None => locks::are_held(place),
    };
    while is_there() {
        tokio::time::sleep(ASK_INTERVAL).await;
    }
}
