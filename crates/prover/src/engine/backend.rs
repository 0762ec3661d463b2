//! What the engine asks of whatever makes proofs.

use serde_json::Value;
use sexton_control::prover::ProofFormat;
use sexton_model::pipeline::Allocation;

use crate::statement::Statement;

/// The stages of one proof, in their order. Each ends where the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The proving key is read, or made.
    Key,
    /// The witness is made.
    Synthesis,
    /// The proof is computed.
    Prove,
    /// The proof is verified before it is given away.
    Verify,
}

/// Makes proofs. Called by several workers at once; a call takes seconds and blocks its thread.
pub trait Backend: Send + Sync + 'static {
    /// Proves `statement` and verifies the proof. `enter` is called at the start of each stage.
    ///
    /// # Errors
    /// One line that says why there is no proof; it holds nothing of the private inputs.
    fn prove(&self, statement: &Statement, enter: &mut dyn FnMut(Stage)) -> Result<Proved, String>;

    /// Proving keys in memory.
    fn resident(&self) -> Vec<Allocation>;
}

/// A proof that verified, in every format that a client may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Proved {
    /// Which key made it.
    pub key_id: String,
    /// True when that key was made without a ceremony.
    pub development_key: bool,
    /// In our format.
    pub native: Document,
    /// In snarkjs' format.
    pub snarkjs: Document,
}

impl Proved {
    /// The proof in one format.
    #[must_use]
    pub fn document(&self, format: ProofFormat) -> &Document {
        match format {
            ProofFormat::Native => &self.native,
            ProofFormat::Snarkjs => &self.snarkjs,
        }
    }
}

/// A proof and its public inputs, as they are written to files.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The proof.
    pub proof: Value,
    /// Its public inputs.
    pub public: Value,
}
