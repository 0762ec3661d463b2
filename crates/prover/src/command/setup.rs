//! `prover setup`: makes a key.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use sexton_groth16::{KeyHeader, Shape, setup};
use sexton_model::SCHEMA_VERSION;
use sexton_model::units::{Bytes, Human};

use super::{DEVELOPMENT_KEY, KeyFolder, micros};
use crate::exit::{self, Failure};
use crate::output::{print, say, target};

/// Make a development key for a circuit in one size
///
/// The key is made by one party, who could have kept the secrets that forge proofs: use it for development and
/// measurement only. It is written whole, with a header that names the circuit and guards against damage.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  prover setup mimc-2^12 --key mimc.key\n  prover setup sha256-1\n  prover setup merkle-16"
)]
pub(super) struct Arguments {
    /// mimc-2^K, sha256-BLOCKS, merkle-DEPTH, or merkle-DEPTHxBLOCKBYTES
    #[arg(value_name = "CIRCUIT", value_parser = |text: &str| text.parse::<Shape>())]
    circuit: Shape,
    /// File to write; without it the key goes to the folder of keys, unless one is there
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Replace FILE if it exists: proofs made with the old key no longer verify with the new one
    #[arg(long, requires = "key")]
    force: bool,
    #[command(flatten)]
    keys: KeyFolder,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let shape = arguments.circuit;
    let start = Instant::now();
    let (path, header, made) = match &arguments.key {
        Some(path) => {
            let path = target(path)?;
            if path.exists() && !arguments.force {
                let message =
                    format!("{} exists: choose another file, or replace it with --force", path.display());
                return Err(Failure::new(exit::CANNOT_CREATE, message));
            }
            let key = setup(shape).map_err(|error| Failure::new(exit::SOFTWARE, error))?;
            let header = key.save(&path)?;
            (path, header, true)
        }
        None => {
            let store = arguments.keys.open()?;
            let path = store.path(shape);
            let made = !path.exists();
            store.get(shape)?;
            let header = KeyHeader::read(&path)?;
            (path, header, made)
        }
    };
    let took = start.elapsed();
    let bytes = header.payload_bytes + sexton_groth16::key::HEADER_BYTES as u64;
    let development_key = header.kind == sexton_groth16::KeyKind::Development;
    if development_key {
        say(DEVELOPMENT_KEY);
    }
    let key_id = hex::encode(header.payload_sha256);
    if json {
        return print(
            &json!({
                "schema_version": SCHEMA_VERSION,
                "circuit": shape.to_string(),
                "key": path,
                "key_id": key_id,
                "development_key": development_key,
                "made": made,
                "bytes": bytes,
                "constraints": header.size.constraints(),
                "duration_us": micros(took),
            })
            .to_string(),
        );
    }
    let made = if made { "made" } else { "already there, checked" };
    print(&format!("{}: key for {shape}, {}, {made} in {}", path.display(), Bytes(bytes), Human(took)))?;
    print(&format!("key id {key_id}{}", if development_key { " (development key)" } else { "" }))
}
