//! The command line: `supervisor COMMAND`.
//!
//! Data goes to standard output, messages to standard error. Exit codes: 0 ok, 1 failed, 2 usage, 3 not running, 65 not
//! a script, 66 no such script, 75 not finished in time, 77 not readable, 78 configuration; `run` ends with its prover's
//! own code.

mod check;
mod color;
mod config;
mod control;
mod diag;
mod doctor;
mod events;
mod pages;
mod run;
mod runs;
mod show;
mod status;
mod why;
mod why_bundle;
mod why_pid;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use sexton_control::client::ClientError;

use crate::config::Faults;
use crate::daemon::DaemonError;
use crate::place::{PlaceArgs, PlaceError};
use crate::runs::RunError;

/// Starts a GPU prover, keeps it alive, and says why it died
#[derive(Debug, Parser)]
#[command(name = "supervisor", version, propagate_version = true, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    place: PlaceArgs,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,
    /// Configuration [default: $XDG_CONFIG_HOME/sexton/sexton.toml, then /etc/sexton/sexton.toml]
    #[arg(long, value_name = "FILE", env = "SEXTON_CONFIG", global = true)]
    config: Option<PathBuf>,
    /// Whether to colour text: auto (on a terminal where NO_COLOR is not set), always or never
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        global = true,
        hide_possible_values = true
    )]
    color: color::Color,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Status(status::StatusArgs),
    Why(why::WhyArgs),
    Runs(runs::RunsArgs),
    Events(events::EventsArgs),
    Doctor(doctor::DoctorArgs),
    Diag(diag::DiagArgs),
    Check(check::CheckArgs),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Stop the prover and keep it down
    Stop(control::WaitArgs),
    /// Start the prover when it is down
    Start(control::StartArgs),
    /// Stop the prover and start it again
    Restart(control::WaitArgs),
    /// Let the prover finish its work, then stop it and keep it down
    ///
    /// It takes no new work meanwhile. Where it does not finish in time ([stop] quiesce_timeout), it takes work again, and
    /// this ends with exit code 75.
    Drain(control::WaitArgs),
    /// Let the prover finish its work and take no more; it stays up
    Quiesce(control::WaitArgs),
    /// Let the prover take work again
    Unquiesce,
    /// Stop the prover and end the supervisor
    Shutdown(control::WaitArgs),
    #[command(hide = true)]
    Completions(pages::CompletionsArgs),
    #[command(hide = true)]
    Man(pages::ManArgs),
}

/// Exit code of a configuration that is wrong (`EX_CONFIG` of sysexits).
const CONFIGURATION: u8 = 78;

/// What ends a command with something else than 0.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// Exit code 1.
    #[error("{0}")]
    Failed(String),
    /// Exit code 3.
    #[error("{0}")]
    NotRunning(String),
    /// Exit code 75.
    #[error("{0}")]
    NotInTime(String),
    /// Exit code 65.
    #[error("{0}")]
    BadData(String),
    /// Exit code 77.
    #[error("{0}")]
    NotReadable(String),
    /// Exit code 78.
    #[error(transparent)]
    Config(#[from] Faults),
    /// Exit code 78.
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// Standard output is gone, or full.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] std::io::Error),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::NotRunning(_) | Self::Client(ClientError::NotRunning(_)) => 3,
            Self::BadData(_) => 65,
            Self::NotInTime(_) | Self::Client(ClientError::Timeout(..)) => 75,
            Self::NotReadable(_) | Self::Run(RunError::Read { .. } | RunError::Decode { .. }) => 77,
            Self::Config(_) | Self::Place(_) | Self::Daemon(DaemonError::Place(_)) => CONFIGURATION,
            Self::Failed(_) | Self::Client(_) | Self::Run(_) | Self::Daemon(_) | Self::Output(_) => 1,
        }
    }
}

/// `supervisor`'s `main`.
pub fn main() -> ExitCode {
    let color = color::Color::ahead(std::env::args_os()).of_clap();
    let matches = Arguments::command().color(color).get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(dispatch(arguments)),
        Err(error) => Err(Failure::Failed(format!("cannot start the runtime: {error}"))),
    };
    match result {
        Ok(code) => code,
        // `supervisor runs | head`: whoever read has had enough.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Config(Faults(faults))) => {
            let _ = show::faults(&faults);
            ExitCode::from(CONFIGURATION)
        }
        Err(failure) => {
            // Not `eprintln!`: that panics where standard error is gone, and the code matters more.
            let _ = show::complaint(&failure);
            ExitCode::from(failure.code())
        }
    }
}

async fn dispatch(arguments: Arguments) -> Result<ExitCode, Failure> {
    let (json, file) = (arguments.json, arguments.config.as_deref());
    let paint = arguments.color.paint(&std::io::stdout());
    match &arguments.command {
        // These are about no place.
        Command::Config(command) => return config::config(command, file, json, paint),
        Command::Completions(args) => return Ok(pages::completions(args).map(|()| ExitCode::SUCCESS)?),
        Command::Man(args) => return pages::man(args).map(|()| ExitCode::SUCCESS),
        _ => {}
    }
    let place = arguments.place.resolve()?;
    match arguments.command {
        Command::Config(_) | Command::Completions(_) | Command::Man(_) => {}
        Command::Run(args) => return run::run(place, args, file).await,
        Command::Status(args) => return status::status(&place, &args, json).await,
        Command::Doctor(args) => return doctor::doctor(&place, &args, json).await,
        Command::Why(args) => why::why(&place, &args, json)?,
        Command::Runs(args) => runs::list(&place, &args, json)?,
        Command::Events(args) => events::events(&place, &args, json).await?,
        Command::Diag(args) => diag::diag(&place, &args, json).await?,
        Command::Check(args) => return check::check(&args, json),
        Command::Stop(args) => control::stop(&place, &args, json).await?,
        Command::Start(args) => control::start(&place, &args, json).await?,
        Command::Drain(args) => control::drain(&place, &args, json).await?,
        Command::Quiesce(args) => control::quiesce(&place, &args, json).await?,
        Command::Unquiesce => control::unquiesce(&place, json).await?,
        Command::Restart(args) => control::restart(&place, &args, json).await?,
        Command::Shutdown(args) => control::shutdown(&place, &args, json).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Parser of durations for clap.
fn duration(text: &str) -> Result<std::time::Duration, sexton_model::units::UnitError> {
    sexton_model::units::parse_duration(text)
}
