//! The proof itself: three points that have been checked.

use ark_bls12_381::{G1Affine, G2Affine};

use crate::point::{PointError, check_g1, check_g2};

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
    /// [`PointError`], with the name of the point, for one that is not in the prime-order subgroup or is infinity.
    pub fn new(a: G1Affine, b: G2Affine, c: G1Affine) -> Result<Self, (&'static str, PointError)> {
        check_g1(&a).map_err(|error| ("a", error))?;
        check_g2(&b).map_err(|error| ("b", error))?;
        check_g1(&c).map_err(|error| ("c", error))?;
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
