//! The CPU backend: keys from the store, the mathematics of `sexton-groth16`, every proof verified before it is given away.

use std::sync::Arc;

use serde_json::Value;
use sexton_groth16::format::{self, Format, FormatError};
use sexton_groth16::{Proven, VerifyingKey, prove_synthesized, synthesize};
use sexton_model::pipeline::Allocation;

use crate::engine::backend::{Backend, Document, Proved, Stage};
use crate::keys::{KeyStore, LoadedKey, StoreError};
use crate::statement::{Statement, StatementError};

/// Why there is no proof.
#[derive(Debug, thiserror::Error)]
pub enum ProveFailure {
    /// No key.
    #[error(transparent)]
    Key(#[from] StoreError),
    /// The inputs give no instance.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// The proof was not made.
    #[error(transparent)]
    Prove(#[from] sexton_groth16::ProveError),
    /// The proof was made and is wrong: a defect, or broken hardware.
    #[error(
        "the proof that was made does not verify ({0}): run it again, and suspect this host's memory if it helps"
    )]
    SelfCheck(sexton_groth16::VerifyError),
    /// The proof was made and cannot be written.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Proves `statement` with `key` and verifies the proof. `enter` is called at the start of each stage after the key's.
///
/// # Errors
/// [`ProveFailure`].
pub fn prove(
    key: &LoadedKey,
    statement: &Statement,
    enter: &mut dyn FnMut(Stage),
) -> Result<Proven, ProveFailure> {
    enter(Stage::Synthesis);
    let instance = statement.instance()?;
    let synthesized = synthesize(&instance).map_err(sexton_groth16::ProveError::from)?;
    enter(Stage::Prove);
    let proven = prove_synthesized(&key.key, &synthesized)?;
    enter(Stage::Verify);
    let verified = key.key.verifying_key().verify(&proven.proof, &proven.public_inputs);
    verified.map_err(ProveFailure::SelfCheck)?;
    Ok(proven)
}

/// Proves on the CPU.
pub struct CpuBackend {
    keys: Arc<KeyStore>,
}

impl CpuBackend {
    /// Over a store of keys.
    #[must_use]
    pub fn new(keys: Arc<KeyStore>) -> Self {
        Self { keys }
    }

    fn prove(&self, statement: &Statement, enter: &mut dyn FnMut(Stage)) -> Result<Proved, ProveFailure> {
        enter(Stage::Key);
        let key = self.keys.get(statement.shape())?;
        let proven = prove(&key, statement, enter)?;
        Ok(Proved {
            key_id: key.key_id.clone(),
            development_key: key.is_development(),
            native: document(Format::Native, statement, &proven)?,
            snarkjs: document(Format::Snarkjs, statement, &proven)?,
        })
    }
}

impl Backend for CpuBackend {
    fn prove(&self, statement: &Statement, enter: &mut dyn FnMut(Stage)) -> Result<Proved, String> {
        self.prove(statement, enter).map_err(|error| error.to_string())
    }

    fn resident(&self) -> Vec<Allocation> {
        self.keys.allocations()
    }
}

fn document(format: Format, statement: &Statement, proven: &Proven) -> Result<Document, FormatError> {
    let shape = Some(statement.shape());
    let proof = format::write_proofs(format, shape, &[proven.proof])?;
    let public = format::write_public_inputs(format, shape, std::slice::from_ref(&proven.public_inputs))?;
    Ok(Document { proof: json(&proof), public: json(&public) })
}

/// A verifying key as a document.
#[must_use]
pub fn verifying_key_document(format: Format, key: &VerifyingKey) -> Value {
    json(&format::write_verifying_key(format, key))
}

/// What the writers of `sexton_groth16::format` give is JSON.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
