//! `prover prove`: makes one proof, or has it made, and writes it with what verifies it.

mod served;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sexton_groth16::{Proof, Scalar, VerifyingKey, format};
use sexton_model::SCHEMA_VERSION;
use sexton_model::units::Human;

use super::{DEVELOPMENT_KEY, FormatArgument, KeyFolder, micros};
use crate::cpu::{self, ProveFailure};
use crate::engine::backend::Stage;
use crate::exit::{self, Failure};
use crate::keys::LoadedKey;
use crate::output::{Output, print, say};
use crate::statement::{Statement, StatementError, parse_block_size, parse_log2_size};

/// Prove a statement and write the proof, its verifying key and its public inputs
///
/// The proof is verified before it is written. Without --key the key is taken from the folder of keys, where it is
/// made first if it is missing. With --socket a running `prover serve` makes the proof, with a key of its own folder.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    circuit: Circuit,
}

#[derive(Debug, Subcommand)]
enum Circuit {
    /// Prove knowledge of x with MiMC(x) = y, in a chain of any length: a dense workload
    Mimc(Of<Mimc>),
    /// Prove knowledge of a message with a certain SHA-256 digest
    Sha256(Of<Sha256>),
    /// Prove that a file has a certain block, against the Poseidon root of its blocks
    Merkle(Of<Merkle>),
}

/// A circuit's own arguments, and those that all share.
#[derive(Debug, Args)]
struct Of<C: Args> {
    #[command(flatten)]
    circuit: C,
    #[command(flatten)]
    files: Files,
}

#[derive(Debug, Args)]
struct Mimc {
    /// Size of the evaluation domain, a power of two: 2^4 to 2^24
    #[arg(long, value_name = "2^K", value_parser = parse_log2_size)]
    size: u32,
    /// Derive x from a number, to prove the same statement again; otherwise x is random
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Sha256 {
    /// The message; other users of this host can see it in the list of processes
    #[arg(long, value_name = "TEXT")]
    preimage: Option<String>,
    /// File that holds the message, up to 4087 bytes
    #[arg(long, value_name = "FILE")]
    preimage_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Merkle {
    /// The file
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Which of its blocks, counted from 0
    #[arg(long, value_name = "N")]
    block: u64,
    /// Size of a block: 1B to 16MiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = parse_block_size)]
    block_size: u32,
}

#[derive(Debug, Args)]
struct Files {
    /// Have the server at this Unix socket make the proof, with its own key; the answer is verified here
    #[arg(long, value_name = "PATH", conflicts_with = "key")]
    socket: Option<PathBuf>,
    /// Proving key to use, as made by `prover setup`
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    keys: KeyFolder,
    /// Write the proof here
    #[arg(long, value_name = "FILE")]
    proof: PathBuf,
    /// Write the verifying key here
    #[arg(long, value_name = "FILE")]
    vk: PathBuf,
    /// Write the public inputs here
    #[arg(long, value_name = "FILE")]
    public: PathBuf,
    /// What the three files are written as
    #[arg(long, value_enum, default_value_t)]
    format: FormatArgument,
}

/// A proof that was verified here, whoever made it.
struct Made {
    proof: Proof,
    public_inputs: Vec<Scalar>,
    verifying_key: VerifyingKey,
    key_id: String,
    development_key: bool,
    /// Without the key's making or reading, and without the server's queue.
    took: Duration,
    timings: Value,
    /// The server's name for it.
    job_id: Option<String>,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let (statement, files) = match &arguments.circuit {
        Circuit::Mimc(of) => (Statement::mimc(of.circuit.size, of.circuit.seed), &of.files),
        Circuit::Sha256(of) => (Statement::sha256(of.circuit.message()?), &of.files),
        Circuit::Merkle(of) => {
            let Merkle { file, block, block_size } = &of.circuit;
            (Statement::merkle(file, *block, *block_size), &of.files)
        }
    };
    let statement = statement.map_err(statement_failure)?;
    files.refuse_one_for_two()?;
    // Before the long work: a folder that cannot be written is told at once.
    let mut proof = Output::create(&files.proof)?;
    let mut vk = Output::create(&files.vk)?;
    let mut public = Output::create(&files.public)?;

    let made = match &files.socket {
        Some(socket) => served::prove(socket, &statement)?,
        None => prove_here(files, &statement)?,
    };

    let (format, shape) = (files.format.into(), statement.shape());
    let written =
        |text: Result<String, format::FormatError>| text.map_err(|error| prove_failure(error.into()));
    proof.fill(&written(format::write_proofs(format, Some(shape), &[made.proof]))?)?;
    vk.fill(&format::write_verifying_key(format, &made.verifying_key))?;
    public.fill(&written(format::write_public_inputs(format, Some(shape), &[made.public_inputs]))?)?;
    vk.publish()?;
    public.publish()?;
    proof.publish()?;

    if made.development_key {
        say(DEVELOPMENT_KEY);
    }
    if json {
        return print(
            &json!({
                "schema_version": SCHEMA_VERSION,
                "circuit": shape.to_string(),
                "key_id": made.key_id,
                "development_key": made.development_key,
                "format": format.to_string(),
                "proof": files.proof,
                "vk": files.vk,
                "public": files.public,
                "socket": files.socket,
                "job_id": made.job_id,
                "timings": made.timings,
            })
            .to_string(),
        );
    }
    let key = if made.development_key { " with a development key" } else { "" };
    let by = match &files.socket {
        Some(socket) => format!(" by {}", socket.display()),
        None => String::new(),
    };
    let (path, took) = (files.proof.display(), Human(made.took));
    print(&format!("{path}: proof of {shape}{key}, made{by} and verified in {took}"))
}

/// Makes the proof in this process.
fn prove_here(files: &Files, statement: &Statement) -> Result<Made, Failure> {
    let start = Instant::now();
    let key = files.load_key(statement)?;
    let key_took = start.elapsed();
    let start = Instant::now();
    let proven = cpu::prove(&key, statement, &mut progress()).map_err(prove_failure)?;
    let took = start.elapsed();
    Ok(Made {
        proof: proven.proof,
        public_inputs: proven.public_inputs,
        verifying_key: key.key.verifying_key().clone(),
        key_id: key.key_id.clone(),
        development_key: key.is_development(),
        took,
        timings: json!({
            "key_us": micros(key_took),
            "synthesis_us": micros(proven.timings.synthesis),
            "prove_us": micros(proven.timings.prove),
            "total_us": micros(took),
        }),
        job_id: None,
    })
}

impl Sha256 {
    fn message(&self) -> Result<Vec<u8>, Failure> {
        match (&self.preimage, &self.preimage_file) {
            (Some(text), _) => Ok(text.clone().into_bytes()),
            (None, Some(path)) => std::fs::read(path)
                .map_err(|error| Failure::new(exit::NO_INPUT, format!("{}: {error}", path.display()))),
            (None, None) => Err(Failure::new(exit::USAGE, "give --preimage TEXT or --preimage-file FILE")),
        }
    }
}

impl Files {
    fn load_key(&self, statement: &Statement) -> Result<Arc<LoadedKey>, Failure> {
        match &self.key {
            Some(path) => Ok(Arc::new(LoadedKey::read(path, statement.shape())?)),
            None => Ok(self.keys.open()?.get(statement.shape())?),
        }
    }

    /// Two outputs under one name would leave one of them.
    fn refuse_one_for_two(&self) -> Result<(), Failure> {
        let outputs: [(&str, &Path); 3] =
            [("--proof", &self.proof), ("--vk", &self.vk), ("--public", &self.public)];
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            if outputs[one].1 == outputs[other].1 {
                let (first, second, path) = (outputs[one].0, outputs[other].0, outputs[one].1.display());
                let message = format!("{first} and {second} are both {path}: give two files");
                return Err(Failure::new(exit::USAGE, message));
            }
        }
        Ok(())
    }
}

/// Tells a person at a terminal what is being done.
fn progress() -> impl FnMut(Stage) {
    let terminal = std::io::stderr().is_terminal();
    move |stage| {
        let what = match stage {
            Stage::Key => "reading the key",
            Stage::Synthesis => "making the witness",
            Stage::Prove => "proving",
            Stage::Verify => "verifying",
        };
        if terminal {
            say(what);
        }
    }
}

fn statement_failure(error: StatementError) -> Failure {
    let code = match error {
        StatementError::File { .. } => exit::NO_INPUT,
        StatementError::Tree { .. } => exit::FAILED,
        StatementError::Random(_) => exit::SYSTEM,
        _ => exit::USAGE,
    };
    Failure::new(code, error)
}

fn prove_failure(error: ProveFailure) -> Failure {
    match error {
        ProveFailure::Key(error) => error.into(),
        ProveFailure::Statement(error) => statement_failure(error),
        ProveFailure::SelfCheck(_) => Failure::new(exit::SOFTWARE, error),
        ProveFailure::Prove(_) | ProveFailure::Format(_) => Failure::new(exit::FAILED, error),
    }
}
