//! `supervisor run`

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use super::{Failure, duration};
use crate::daemon::{self, Settings};
use crate::place::Place;
use crate::policy::{BackOff, Intensity, Policy, Restart, StopTimes};

/// Supervise a prover in the foreground
///
/// Without COMMAND: `prover serve`, with the prover beside this executable, else on PATH. Over a living run of the same
/// name it takes that run over instead of starting a second one; COMMAND is used from the next start on.
///
/// Ends with the prover's own exit code (128+n for signals, 127 not found, 126 not executable) when policy says no more
/// restarts. SIGTERM and SIGINT stop the prover first, then end with 0; a second one kills it.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// When to restart the prover after it ends by itself
    #[arg(long, value_enum, default_value = "on-failure", env = "SEXTON_RESTART")]
    restart: Restart,
    /// Time between SIGTERM and SIGKILL when the prover is stopped
    #[arg(long, value_name = "DUR", default_value = "90s", value_parser = duration, env = "SEXTON_STOP_TIMEOUT")]
    stop_timeout: Duration,
    /// Delay before the first restart; it doubles with each one
    #[arg(long, value_name = "DUR", default_value = "1s", value_parser = duration)]
    backoff: Duration,
    /// Longest delay before a restart
    #[arg(long, value_name = "DUR", default_value = "60s", value_parser = duration)]
    backoff_max: Duration,
    /// A run that lasts this long resets the delay
    #[arg(long, value_name = "DUR", default_value = "60s", value_parser = duration)]
    stable_after: Duration,
    /// Failures within --period after which it stays down until `supervisor start`; 0 stands for any number
    #[arg(long, value_name = "N", default_value_t = 30)]
    intensity: u32,
    /// See --intensity
    #[arg(long, value_name = "DUR", default_value = "1h", value_parser = duration)]
    period: Duration,
    /// Let the prover dump core (by default its soft limit is 0)
    #[arg(long)]
    core: bool,
    /// Trace who sends SIGKILL on this host (needs root; makes a small tracefs instance named "sexton")
    #[arg(long, env = "SEXTON_SIGNAL_TRACE")]
    signal_trace: bool,
    /// The prover and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(super) async fn run(place: Place, args: RunArgs) -> Result<ExitCode, Failure> {
    let bundled = args.command.is_empty();
    let defaults = Policy::default();
    let policy = Policy {
        restart: args.restart,
        back_off: BackOff { first: args.backoff, most: args.backoff_max.max(args.backoff) },
        stable_after: args.stable_after,
        intensity: Intensity { failures: args.intensity, period: args.period },
        stop: StopTimes { exit: args.stop_timeout, ..defaults.stop },
        // Only the bundled prover is known to answer /readyz.
        awaits_readiness: bundled,
        ..defaults
    };
    let command = if bundled { vec![bundled_prover().into(), "serve".into()] } else { args.command };
    Ok(daemon::run(Settings { place, command, policy, core: args.core, signal_trace: args.signal_trace })
        .await?)
}

fn bundled_prover() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("prover")));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| "prover".into())
}
