//! The mathematics: circuits, keys, formats, witnesses and the CPU prover for Groth16 over BLS12-381.
//!
//! Called by the prover engine; knows nothing of jobs, hosts, HTTP or GPUs.
//!
//! ```no_run
//! # use sexton_groth16::{ProvingKey, Shape, Instance, circuit::sha256, format, prove, setup};
//! # use std::path::Path;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A key is made once for a shape, and kept.
//! let shape: Shape = "sha256-1".parse()?;
//! setup(shape)?.save(Path::new("sha256-1.key"))?;
//!
//! // An instance is a statement with its witness, of any circuit.
//! let key = ProvingKey::load_for(Path::new("sha256-1.key"), shape)?;
//! let instance = Instance::from(sha256::Preimage::new(*b"hello")?);
//! let proven = prove(&key, &instance)?;
//! key.verifying_key().verify(&proven.proof, &proven.public_inputs)?;
//!
//! // In and out as JSON, ours or that of snarkjs; what is read may be either.
//! let text = format::write_proofs(format::Format::Snarkjs, Some(shape), &[proven.proof])?;
//! let read = format::read_proofs(&text)?;
//! # Ok(()) }
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`shape`] | circuit and size: what a key is for |
//! | [`circuit`] | MiMC chain, SHA-256 preimage, Merkle inclusion, Poseidon |
//! | [`tree`] | the Merkle tree over a file's blocks |
//! | [`instance`] | a statement with its witness |
//! | [`key`] | setup, key files |
//! | [`synthesis`], [`mod@prove`] | the two stages of a proof: [`synthesize`], [`prove_synthesized`] |
//! | [`proof`], [`verify`], [`point`] | what is verified, and what must hold before |
//! | [`mod@format`] | JSON of proofs, verifying keys, public inputs |

pub mod circuit;
pub mod format;
pub mod instance;
pub mod key;
pub mod point;
pub mod proof;
pub mod prove;
pub mod shape;
pub mod synthesis;
pub mod tree;
pub mod verify;

/// An element of BLS12-381's scalar field, of order r.
pub use ark_bls12_381::Fr as Scalar;

pub use instance::Instance;
pub use key::{KeyError, KeyHeader, KeyKind, KeySize, ProvingKey, SetupError, setup, setup_with_rng};
pub use proof::{Proof, ProofError};
pub use prove::{ProveError, Proven, Timings, prove, prove_synthesized};
pub use shape::{Shape, ShapeError};
pub use synthesis::{SynthesisFailure, Synthesized, synthesize};
pub use tree::{Tree, TreeError};
pub use verify::{VerifyError, VerifyingKey, VerifyingKeyError, VerifyingPoints};
