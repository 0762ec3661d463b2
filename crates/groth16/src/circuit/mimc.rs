//! MiMC chain: the dense workload, of any size.
//!
//! Statement: "I know `x` such that chain(x) + x = y", where the chain repeats t ← (t + cᵢ)⁵. Exponent 5, since 3
//! divides r − 1 and x³ would be no permutation (Albrecht et al., "MiMC", 2016, section 2.1). Adding x at the end
//! makes it one-way: the chain alone can be walked backwards. Public input: y.
//!
//! The chain is as long as its domain allows, so every witness value is a full 255-bit number: the worst case for
//! multi-scalar multiplication. Three constraints a round.

use std::iter;

use ark_ff::PrimeField;
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{ConstraintSystemRef, SynthesisError};
use sha2::{Digest, Sha256};

use crate::Scalar;
use crate::shape::{Shape, ShapeError};

/// Constraints a round: t², t⁴, t⁵.
const CONSTRAINTS_PER_ROUND: usize = 3;
/// Rows of the domain that are no round: the two instance variables (one, y) and the last equation.
const OTHER_ROWS: usize = 3;

/// An input of the chain and the output claimed for it.
#[derive(Clone, Debug)]
pub struct Preimage {
    log2_size: u32,
    /// x, private.
    pub input: Scalar,
    /// y, public.
    pub output: Scalar,
}

impl Preimage {
    /// The instance that `input` gives in a domain of 2^`log2_size`.
    ///
    /// # Errors
    /// As [`Shape::mimc`].
    pub fn new(log2_size: u32, input: Scalar) -> Result<Self, ShapeError> {
        Shape::mimc(log2_size)?;
        Ok(Self { log2_size, input, output: hash(input, log2_size) })
    }

    pub(crate) fn blank(log2_size: u32) -> Self {
        Self { log2_size, input: Scalar::from(0), output: Scalar::from(0) }
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::Mimc { log2_size: self.log2_size }
    }

    pub(crate) fn public_inputs(&self) -> Vec<Scalar> {
        vec![self.output]
    }

    pub(crate) fn constrain(&self, cs: ConstraintSystemRef<Scalar>) -> Result<(), SynthesisError> {
        let output = FpVar::new_input(cs.clone(), || Ok(self.output))?;
        let input = FpVar::new_witness(cs, || Ok(self.input))?;
        let mut state = input.clone();
        for constant in round_constants(self.log2_size) {
            state += constant;
            let fourth = state.square()?.square()?;
            state *= fourth;
        }
        (state + input).enforce_equal(&output)
    }
}

/// chain(`input`) + `input` over as many rounds as fit a domain of 2^`log2_size`.
fn hash(input: Scalar, log2_size: u32) -> Scalar {
    let chain = round_constants(log2_size).fold(input, |state, constant| {
        let sum = state + constant;
        let square = sum * sum;
        square * square * sum
    });
    chain + input
}

/// cᵢ = SHA-256("sexton/mimc5/" ‖ i as 8 bytes big-endian) mod r.
fn round_constants(log2_size: u32) -> impl Iterator<Item = Scalar> {
    let rounds = ((1_usize << log2_size) - OTHER_ROWS) / CONSTRAINTS_PER_ROUND;
    iter::successors(Some(0_u64), |round| Some(round + 1)).take(rounds).map(|round| {
        let digest =
            Sha256::new().chain_update(b"sexton/mimc5/").chain_update(round.to_be_bytes()).finalize();
        Scalar::from_be_bytes_mod_order(&digest)
    })
}
