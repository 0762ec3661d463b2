//! The command line. Each command has its arguments, their documentation and what it does in one file.

mod prove;
mod serve;
mod setup;
mod verify;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sexton_groth16::KeyError;
use sexton_groth16::format::Format;
use sexton_model::units::Human;

use crate::exit::{self, Failure};
use crate::keys::{KeyStore, Notice, StoreError};
use crate::output::say;

/// Makes and verifies Groth16 proofs over BLS12-381, on the command line or as a server.
#[derive(Debug, Parser)]
#[command(name = "prover", version, propagate_version = true, arg_required_else_help = true)]
#[command(max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 ok, 1 the thing asked for failed (or the proof is not valid), 2 usage, \
                        3 no server listens, 65 a file is malformed, 66 a file cannot be read, \
                        73 an output cannot be created, 74 reading or writing failed, 75 refused for now, \
                        76 a server's answer is wrong, 78 configuration."
)]
pub struct Cli {
    /// Print one JSON document instead of text
    #[arg(long, global = true, display_order = 900)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Setup(setup::Arguments),
    Prove(prove::Arguments),
    Verify(verify::Arguments),
    Serve(serve::Arguments),
}

/// Runs one command to its end and says why on stderr when it fails.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let Cli { json, command } = cli;
    let outcome = match command {
        Command::Setup(arguments) => setup::run(&arguments, json),
        Command::Prove(arguments) => prove::run(&arguments, json),
        Command::Verify(arguments) => verify::run(&arguments, json),
        Command::Serve(arguments) => serve::run(&arguments, json),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                say(&failure.message);
            }
            ExitCode::from(failure.code)
        }
    }
}

/// Where keys are kept when no file is named.
#[derive(Debug, Args)]
struct KeyFolder {
    /// Folder of keys, each made once per circuit and size [default: /var/lib/sexton/keys for root, else
    /// $XDG_DATA_HOME/sexton/keys]
    #[arg(long, value_name = "DIR", env = "SEXTON_KEYS", hide_env_values = true)]
    keys: Option<PathBuf>,
}

impl KeyFolder {
    fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(folder) = &self.keys {
            return Ok(folder.clone());
        }
        if nix::unistd::geteuid().is_root() {
            return Ok(PathBuf::from("/var/lib/sexton/keys"));
        }
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data =
            variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")));
        data.map(|data| data.join("sexton/keys")).ok_or_else(|| {
            Failure::new(exit::CONFIG, "no folder for keys: set HOME or SEXTON_KEYS, or give --keys DIR")
        })
    }

    /// The store, which tells a person at a terminal what takes long.
    fn open(&self) -> Result<KeyStore, Failure> {
        let folder = self.path()?;
        let shown = folder.display().to_string();
        let terminal = std::io::stderr().is_terminal();
        Ok(KeyStore::new(folder, move |notice| match notice {
            Notice::SettingUp(shape) => {
                say(&format!("no key for {shape} in {shown} yet: making a development key, once"));
            }
            Notice::Waiting(shape) => {
                say(&format!("another process makes the key for {shape}: waiting for it"))
            }
            Notice::SetUp(shape, took) if terminal => {
                say(&format!("key for {shape} made in {}", Human(took)))
            }
            Notice::Loaded(shape, took) if terminal => {
                say(&format!("key for {shape} read in {}", Human(took)))
            }
            Notice::SetUp(..) | Notice::Loaded(..) => {}
        }))
    }
}

/// What proofs, keys and inputs are written as.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum FormatArgument {
    /// Ours: compressed points in hexadecimal, with the circuit
    #[default]
    Native,
    /// That of snarkjs (curve bls12381)
    Snarkjs,
}

impl From<FormatArgument> for Format {
    fn from(argument: FormatArgument) -> Self {
        match argument {
            FormatArgument::Native => Self::Native,
            FormatArgument::Snarkjs => Self::Snarkjs,
        }
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        let code = match &error {
            KeyError::Io { action: "open", .. } => exit::NO_INPUT,
            KeyError::Io { action: "create", .. } => exit::CANNOT_CREATE,
            KeyError::Io { .. } => exit::IO,
            _ => exit::DATA,
        };
        Self::new(code, error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Key(error) => error.into(),
            StoreError::Io { .. } => Self::new(exit::CANNOT_CREATE, error),
            StoreError::Setup(_) => Self::new(exit::SOFTWARE, error),
        }
    }
}

/// The warning that goes with every key made without a ceremony.
const DEVELOPMENT_KEY: &str =
    "development key: made without a ceremony, so whoever made it could forge proofs";

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
