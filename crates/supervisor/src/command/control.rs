//! `supervisor stop | start | restart | shutdown`

use std::io::IsTerminal;
use std::time::Duration;

use sexton_control::client::ClientError;
use sexton_control::supervisor as routes;
use sexton_model::status::{State, SupervisorStatus};
use sexton_model::units::Human;
use tokio::time::Instant;

use super::status::{client, not_running};
use super::{Failure, duration, show};
use crate::place::Place;

/// How often the state is asked for while waiting.
const ASK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, clap::Args)]
pub(super) struct WaitArgs {
    /// How long to wait for it; then exit code 75, and the stop goes on
    #[arg(long, value_name = "DUR", default_value = "5m", value_parser = duration)]
    timeout: Duration,
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

fn last_exit(status: &SupervisorStatus) -> String {
    status.last_exit.as_ref().map(|exit| format!(": the prover {}", exit.wait)).unwrap_or_default()
}

/// Asks until `done`; `None` where the supervisor is gone.
async fn wait(
    place: &Place,
    timeout: Duration,
    done: impl Fn(&SupervisorStatus) -> bool,
) -> Result<Option<SupervisorStatus>, Failure> {
    let (begun, progress) = (Instant::now(), std::io::stderr().is_terminal());
    loop {
        match client(place).get::<SupervisorStatus>(routes::STATUS).await {
            Ok(status) if done(&status) => break Ok(Some(status)),
            Ok(status) if begun.elapsed() >= timeout => {
                let after = Human(timeout);
                break Err(Failure::NotInTime(format!("still {} after {after}; it goes on", status.state)));
            }
            Ok(status) if progress => {
                eprint!("\r\x1b[K{} for {:.0} s", status.state, begun.elapsed().as_secs_f64());
            }
            Ok(_) => {}
            Err(ClientError::NotRunning(_) | ClientError::Http(..) | ClientError::Io(..)) => break Ok(None),
            Err(error) => break Err(error.into()),
        }
        tokio::time::sleep(ASK_INTERVAL).await;
    }
    .inspect(|_| {
        if progress {
            eprint!("\r\x1b[K");
        }
    })
}

pub(super) async fn stop(place: &Place, args: &WaitArgs, json: bool) -> Result<(), Failure> {
    post(place, routes::STOP).await?;
    match wait(place, args.timeout, |status| status.state != State::Stopping).await? {
        Some(status) if status.state == State::Stopped => {
            report(&status, json, &format!("stopped{}", last_exit(&status)))
        }
        Some(status) => {
            Err(Failure::Failed(format!("the prover is {} again: somebody started it", status.state)))
        }
        None => Err(Failure::NotRunning("the supervisor left".to_owned())),
    }
}

pub(super) async fn start(place: &Place, json: bool) -> Result<(), Failure> {
    let status = post(place, routes::START).await?;
    let pid = status.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    match status.state {
        State::Starting | State::Ready => report(&status, json, &format!("{}{pid}", status.state)),
        State::Stopping => report(&status, json, "stopping still; it starts after that"),
        other => {
            let why = status.reason.clone().map(|why| format!(" ({why})")).unwrap_or_default();
            Err(Failure::Failed(format!("{other}{}{why}", last_exit(&status))))
        }
    }
}

pub(super) async fn restart(place: &Place, args: &WaitArgs, json: bool) -> Result<(), Failure> {
    let before = post(place, routes::RESTART).await?;
    let old = before.run_id.filter(|_| before.state == State::Stopping);
    let renewed = |status: &SupervisorStatus| status.state != State::Stopping && status.run_id != old;
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
    let status = post(place, routes::SHUTDOWN).await?;
    match wait(place, args.timeout, |_| false).await? {
        None => report(&status, json, "the supervisor has left"),
        Some(_) => Ok(()),
    }
}
