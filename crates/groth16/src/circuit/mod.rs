//! The circuits, each with the native computation that it proves, and the one way to synthesize any of them.

pub mod merkle;
pub mod mimc;
pub mod poseidon;
pub mod sha256;

use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};

use crate::{Instance, Scalar};

impl ConstraintSynthesizer<Scalar> for &Instance {
    fn generate_constraints(self, cs: ConstraintSystemRef<Scalar>) -> Result<(), SynthesisError> {
        match self {
            Instance::Mimc(preimage) => preimage.constrain(cs),
            Instance::Sha256(preimage) => preimage.constrain(cs),
            Instance::Merkle(opening) => opening.constrain(cs),
        }
    }
}
