//! Points from outside: what must hold before one may enter a pairing.
//!
//! A point off the curve or outside the prime-order subgroup voids the proof system's argument. arkworks' own checked
//! reading of *uncompressed* BLS12-381 points tests the subgroup only, and its test assumes that the point is on the
//! curve; so both are asked for here.

use ark_bls12_381::{Fq, Fq2, G1Affine, G2Affine};
use ark_ec::AffineRepr;

/// Why a point is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointError {
    /// The coordinates do not satisfy the curve's equation, or no y belongs to the x.
    #[error("point is not on the curve")]
    NotOnCurve,
    /// The point's order is not r.
    #[error("point is on the curve but outside the prime-order subgroup")]
    OutsideSubgroup,
    /// The neutral element, which would make the verifier's equation say less than it should.
    #[error("point is infinity, which no valid proof or key has here")]
    Infinity,
}

/// A point of G1 from its coordinates.
///
/// # Errors
/// [`PointError`] where it may not enter a pairing.
pub fn g1(x: Fq, y: Fq) -> Result<G1Affine, PointError> {
    let point = G1Affine::new_unchecked(x, y);
    check_g1(&point).map(|()| point)
}

/// A point of G2 from its coordinates.
///
/// # Errors
/// [`PointError`] where it may not enter a pairing.
pub fn g2(x: Fq2, y: Fq2) -> Result<G2Affine, PointError> {
    let point = G2Affine::new_unchecked(x, y);
    check_g2(&point).map(|()| point)
}

/// Accepts points of the prime-order subgroup other than infinity.
pub(crate) fn check_g1(point: &G1Affine) -> Result<(), PointError> {
    if point.is_zero() {
        Err(PointError::Infinity)
    } else if !point.is_on_curve() {
        Err(PointError::NotOnCurve)
    } else if !point.is_in_correct_subgroup_assuming_on_curve() {
        Err(PointError::OutsideSubgroup)
    } else {
        Ok(())
    }
}

/// Accepts points of the prime-order subgroup other than infinity.
pub(crate) fn check_g2(point: &G2Affine) -> Result<(), PointError> {
    if point.is_zero() {
        Err(PointError::Infinity)
    } else if !point.is_on_curve() {
        Err(PointError::NotOnCurve)
    } else if !point.is_in_correct_subgroup_assuming_on_curve() {
        Err(PointError::OutsideSubgroup)
    } else {
        Ok(())
    }
}
