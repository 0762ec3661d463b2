//! Verification: one product of pairings.

use std::sync::OnceLock;

use ark_bls12_381::{Bls12_381, Fq12, G1Affine, G1Projective, G2Affine};
use ark_ec::CurveGroup;
use ark_ec::pairing::Pairing;

use crate::key::KeyKind;
use crate::point::{PointError, check_g1, check_g2};
use crate::{Proof, Scalar, Shape};

/// Why a proof is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The number of public inputs is not the key's.
    #[error("{given} public inputs given, the verifying key has {expected}")]
    InputCount {
        /// Inputs given.
        given: usize,
        /// Inputs that the key has.
        expected: usize,
    },
    /// The equation does not hold: wrong proof, wrong inputs or wrong key.
    #[error("proof is not valid for these public inputs and this verifying key")]
    Rejected,
}

/// What verifies the proofs of one key. Its points have been checked, none is infinity.
#[derive(Clone, Debug)]
pub struct VerifyingKey {
    shape: Option<Shape>,
    kind: Option<KeyKind>,
    points: VerifyingPoints,
    /// e(α, β), computed at the first use.
    alpha_beta: OnceLock<Fq12>,
}

/// The points of a verifying key, in Groth's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingPoints {
    /// α in G1.
    pub alpha_g1: G1Affine,
    /// β in G2.
    pub beta_g2: G2Affine,
    /// γ in G2.
    pub gamma_g2: G2Affine,
    /// δ in G2.
    pub delta_g2: G2Affine,
    /// One for the constant, then one for each public input.
    pub ic: Vec<G1Affine>,
}

/// Which point of a verifying key is not acceptable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyingKeyError {
    /// A point that may not enter a pairing. An `ic` of infinity would leave its public input unbound.
    #[error("{point}: {source}")]
    Point {
        /// `alpha_g1`, `ic[3]`, …
        point: String,
        /// Why.
        source: PointError,
    },
    /// Not even the constant's point.
    #[error("ic is empty: a verifying key has one point more than public inputs")]
    NoInputPoints,
}

impl VerifyingKey {
    /// A key of points from elsewhere; `shape` and `kind` where they are known (snarkjs does not say).
    ///
    /// # Errors
    /// [`VerifyingKeyError`] for the first point that is off the curve, outside the subgroup or infinity.
    pub fn new(
        points: VerifyingPoints,
        shape: Option<Shape>,
        kind: Option<KeyKind>,
    ) -> Result<Self, VerifyingKeyError> {
        let named = |point: &str| {
            let point = point.to_owned();
            move |source| VerifyingKeyError::Point { point, source }
        };
        check_g1(&points.alpha_g1).map_err(named("alpha_g1"))?;
        check_g2(&points.beta_g2).map_err(named("beta_g2"))?;
        check_g2(&points.gamma_g2).map_err(named("gamma_g2"))?;
        check_g2(&points.delta_g2).map_err(named("delta_g2"))?;
        for (index, point) in points.ic.iter().enumerate() {
            check_g1(point).map_err(named(&format!("ic[{index}]")))?;
        }
        if points.ic.is_empty() {
            return Err(VerifyingKeyError::NoInputPoints);
        }
        Ok(Self { shape, kind, points, alpha_beta: OnceLock::new() })
    }

    /// The shape it belongs to, if its file said.
    pub fn shape(&self) -> Option<Shape> {
        self.shape
    }

    /// How its setup was made, if its file said.
    pub fn kind(&self) -> Option<KeyKind> {
        self.kind
    }

    /// The points.
    pub fn points(&self) -> &VerifyingPoints {
        &self.points
    }

    /// Public inputs that a proof is checked against.
    pub fn public_inputs(&self) -> usize {
        self.points.ic.len() - 1
    }

    /// Accepts if e(A, B) = e(α, β) · e(Σ inputᵢ·icᵢ, γ) · e(C, δ). About 2 ms.
    ///
    /// # Errors
    /// [`VerifyError::InputCount`] or [`VerifyError::Rejected`].
    pub fn verify(&self, proof: &Proof, public_inputs: &[Scalar]) -> Result<(), VerifyError> {
        let expected = self.public_inputs();
        if public_inputs.len() != expected {
            return Err(VerifyError::InputCount { given: public_inputs.len(), expected });
        }
        let points = &self.points;
        let inputs: G1Projective =
            points.ic[1..].iter().zip(public_inputs).map(|(ic, input)| *ic * input).sum();
        let inputs = (inputs + points.ic[0]).into_affine();
        let alpha_beta =
            self.alpha_beta.get_or_init(|| Bls12_381::pairing(points.alpha_g1, points.beta_g2).0);

        let product = Bls12_381::multi_pairing(
            [*proof.a(), -inputs, -*proof.c()],
            [*proof.b(), points.gamma_g2, points.delta_g2],
        );
        if product.0 == *alpha_beta { Ok(()) } else { Err(VerifyError::Rejected) }
    }
}
