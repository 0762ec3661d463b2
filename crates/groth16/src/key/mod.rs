//! Keys: made by a setup, kept in a file, loaded to prove.

mod file;
mod header;

use std::cell::Cell;
use std::fmt;

use ark_bls12_381::Bls12_381;
use ark_groth16::Groth16;
use ark_groth16::r1cs_to_qap::LibsnarkReduction;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};
use ark_std::rand::rngs::{OsRng, StdRng};
use ark_std::rand::{CryptoRng, RngCore, SeedableRng};

pub use file::KeyError;
pub use header::{FORMAT_VERSION, HEADER_BYTES, HeaderError, KeyHeader, KeySize};

use crate::synthesis::Synthesized;
use crate::verify::VerifyingKeyError;
use crate::{Instance, Scalar, Shape, VerifyingKey, VerifyingPoints};

/// How a key's setup was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// By one party, who could have kept the secrets that forge proofs: for development and measurement only.
    Development,
    /// By a ceremony of several parties, of whom one honest one suffices.
    Ceremony,
}

impl KeyKind {
    /// The word used in files: `development` or `ceremony`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Development => "development",
            Self::Ceremony => "ceremony",
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Development => {
                "development key (setup without a ceremony: whoever ran it could forge proofs)"
            }
            Self::Ceremony => "key from a ceremony",
        })
    }
}

/// Why no key was made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The constraint system refused the circuit, which is a defect of the circuit.
    #[error("cannot set up {shape}: {source}")]
    Circuit {
        /// The shape asked for.
        shape: Shape,
        /// What it said.
        source: SynthesisError,
    },
    /// The operating system gave no random numbers.
    #[error("cannot get randomness from the operating system: {0}")]
    Randomness(ark_std::rand::Error),
    /// The generator gave a degenerate key (probability about 2^-250, or a broken generator).
    #[error("setup of {shape} gave a key that cannot be used ({source}): check the random generator")]
    Degenerate {
        /// The shape asked for.
        shape: Shape,
        /// Which point.
        source: VerifyingKeyError,
    },
}

/// Everything that proving a [`Shape`] needs, with its verifying key.
#[derive(Clone, Debug)]
pub struct ProvingKey {
    shape: Shape,
    kind: KeyKind,
    size: KeySize,
    verifying_key: VerifyingKey,
    ark: ark_groth16::ProvingKey<Bls12_381>,
}

impl ProvingKey {
    fn new(
        shape: Shape,
        kind: KeyKind,
        size: KeySize,
        ark: ark_groth16::ProvingKey<Bls12_381>,
    ) -> Result<Self, VerifyingKeyError> {
        let points = VerifyingPoints {
            alpha_g1: ark.vk.alpha_g1,
            beta_g2: ark.vk.beta_g2,
            gamma_g2: ark.vk.gamma_g2,
            delta_g2: ark.vk.delta_g2,
            ic: ark.vk.gamma_abc_g1.clone(),
        };
        let verifying_key = VerifyingKey::new(points, Some(shape), Some(kind))?;
        Ok(Self { shape, kind, size, verifying_key, ark })
    }

    /// The shape it proves.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How its setup was made.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Constraints, domain, inputs and witness.
    pub fn size(&self) -> KeySize {
        self.size
    }

    /// What verifies its proofs.
    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.verifying_key
    }

    pub(crate) fn ark(&self) -> &ark_groth16::ProvingKey<Bls12_381> {
        &self.ark
    }

    /// Whether the circuit that gave `synthesized` has the sizes of the one that gave this key.
    pub(crate) fn fits(&self, synthesized: &Synthesized) -> bool {
        let witness = synthesized.assignment.len() - 1 - synthesized.public_inputs;
        KeySize::new(synthesized.constraints, synthesized.public_inputs, witness) == Some(self.size)
    }
}

/// Makes a development key for `shape`, from a seed of 256 bits of the operating system's. About 1.1 s for 2^14 on two cores.
///
/// # Errors
/// [`SetupError`], which points to a defect of the system or of a circuit rather than to a wrong argument.
pub fn setup(shape: Shape) -> Result<ProvingKey, SetupError> {
    let mut rng = StdRng::from_rng(OsRng).map_err(SetupError::Randomness)?;
    setup_with_rng(shape, &mut rng)
}

/// Makes a development key for `shape`: whoever can repeat `rng` can forge proofs.
///
/// # Errors
/// As [`setup`].
pub fn setup_with_rng(shape: Shape, rng: &mut (impl RngCore + CryptoRng)) -> Result<ProvingKey, SetupError> {
    type Setup = Groth16<Bls12_381, LibsnarkReduction>;
    let (instance, size) = (Instance::blank(shape), Cell::new(None));
    let counted = Counted { instance: &instance, size: &size };
    let circuit = |source| SetupError::Circuit { shape, source };
    let ark = Setup::generate_random_parameters_with_reduction(counted, rng).map_err(circuit)?;
    let size = size.get().ok_or(circuit(SynthesisError::PolynomialDegreeTooLarge))?;
    ProvingKey::new(shape, KeyKind::Development, size, ark)
        .map_err(|source| SetupError::Degenerate { shape, source })
}

/// A circuit that notes its size when it is synthesized.
struct Counted<'a> {
    instance: &'a Instance,
    size: &'a Cell<Option<KeySize>>,
}

impl ConstraintSynthesizer<Scalar> for Counted<'_> {
    fn generate_constraints(self, cs: ConstraintSystemRef<Scalar>) -> Result<(), SynthesisError> {
        self.instance.generate_constraints(cs.clone())?;
        let public_inputs = cs.num_instance_variables() - 1;
        self.size.set(KeySize::new(cs.num_constraints(), public_inputs, cs.num_witness_variables()));
        Ok(())
    }
}
