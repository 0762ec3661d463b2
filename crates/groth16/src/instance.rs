//! One statement with its witness: what a proof is made of.

use crate::circuit::{merkle, mimc, sha256};
use crate::{Scalar, Shape};

/// A statement of some [`Shape`] together with the private inputs that make it true.
///
/// Engines hold, queue and drop instances without knowing the circuit behind them. The claimed public values are
/// part of the instance: one whose claim does not follow from its witness is refused by
/// [`synthesize`](crate::synthesize), never proved.
#[derive(Clone, Debug)]
pub enum Instance {
    /// "I know `x` with MiMC(x) = y."
    Mimc(mimc::Preimage),
    /// "I know a message with this SHA-256 digest."
    Sha256(sha256::Preimage),
    /// "The file with this root has a block with this leaf at this index."
    Merkle(merkle::Opening),
}

impl Instance {
    /// The shape, which says what key proves this.
    pub fn shape(&self) -> Shape {
        match self {
            Self::Mimc(preimage) => preimage.shape(),
            Self::Sha256(preimage) => preimage.shape(),
            Self::Merkle(opening) => opening.shape(),
        }
    }

    /// The public inputs in the circuit's order, the constant one left out.
    pub fn public_inputs(&self) -> Vec<Scalar> {
        match self {
            Self::Mimc(preimage) => preimage.public_inputs(),
            Self::Sha256(preimage) => preimage.public_inputs(),
            Self::Merkle(opening) => opening.public_inputs(),
        }
    }

    /// An instance of `shape` for setup, which reads the constraints and ignores the values.
    pub(crate) fn blank(shape: Shape) -> Self {
        match shape {
            Shape::Mimc { log2_size } => Self::Mimc(mimc::Preimage::blank(log2_size)),
            Shape::Sha256 { blocks } => Self::Sha256(sha256::Preimage::blank(blocks)),
            Shape::Merkle { depth, block_bytes } => Self::Merkle(merkle::Opening::blank(depth, block_bytes)),
        }
    }
}

impl From<mimc::Preimage> for Instance {
    fn from(preimage: mimc::Preimage) -> Self {
        Self::Mimc(preimage)
    }
}

impl From<sha256::Preimage> for Instance {
    fn from(preimage: sha256::Preimage) -> Self {
        Self::Sha256(preimage)
    }
}

impl From<merkle::Opening> for Instance {
    fn from(opening: merkle::Opening) -> Self {
        Self::Merkle(opening)
    }
}
