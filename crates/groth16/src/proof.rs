//! The proof itself: three points that have been checked.

use ark_bls12_381::{G1Affine, G2Affine};

use crate::point::{PointError, check_g1, check_g2};

/// Which point of a proof is not acceptable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{point}: {source}")]
pub struct ProofError {
    /// `a`, `b` or `c`.
    pub point: &'static str,
    /// Why.
    pub source: PointError,
}

/// A Groth16 proof (Groth, "On the Size of Pairing-based Non-interactive Arguments", 2016).
///
/// Its points are on their curves, in the prime-order subgroups, and not infinity: [`Proof::new`] and the readers in
/// [`format`](crate::format) make sure, so a verifier need not ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    a: G1Affine,
    b: G2Affine,
    c: G1Affine,
}

impl Proof {
    /// A proof of three points from elsewhere.
    ///
    /// # Errors
    /// [`ProofError`] for the first point that is not in the prime-order subgroup or is infinity.
    pub fn new(a: G1Affine, b: G2Affine, c: G1Affine) -> Result<Self, ProofError> {
        check_g1(&a).map_err(|source| ProofError { point: "a", source })?;
        check_g2(&b).map_err(|source| ProofError { point: "b", source })?;
        check_g1(&c).map_err(|source| ProofError { point: "c", source })?;
        Ok(Self { a, b, c })
    }

    /// Points computed here from checked ones.
    pub(crate) fn computed(a: G1Affine, b: G2Affine, c: G1Affine) -> Self {
        Self { a, b, c }
    }

    /// `A` in G1.
    pub fn a(&self) -> &G1Affine {
        &self.a
    }

    /// `B` in G2.
    pub fn b(&self) -> &G2Affine {
        &self.b
    }

    /// `C` in G1.
    pub fn c(&self) -> &G1Affine {
        &self.c
    }
}
