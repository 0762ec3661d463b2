//! Merkle inclusion: a block of a real file in a Poseidon tree over its blocks.
//!
//! Statement: "the tree of this depth with this root has this leaf at this index." Public inputs: root, index, leaf;
//! the path is private. Whoever has the block checks with [`leaf_of_block`] that the leaf is the block's; the size of
//! a block is part of the shape, so one root cannot be read as that of another division of the file.
//!
//! A leaf is the block's SHA-256 with its two highest bits cleared: 254 bits, below r, uniform, and colliding only
//! where 254 bits of SHA-256 do. Inner nodes are [`poseidon::compress`]. Positions without a block hold the leaf 0, for
//! which nobody knows a block. [`tree`](crate::tree) builds the tree.

use ark_ff::PrimeField;
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::boolean::Boolean;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{ConstraintSystemRef, SynthesisError};
use sha2::{Digest, Sha256};

use super::poseidon;
use crate::Scalar;
use crate::shape::Shape;

/// The leaf at positions beyond a file's last block.
pub const PADDING_LEAF: Scalar = ark_ff::MontFp!("0");

/// A leaf, its place, and the path from it to the root.
#[derive(Clone, Debug)]
pub struct Opening {
    pub(crate) block_bytes: u32,
    /// Hash of the whole tree; public.
    pub root: Scalar,
    /// Position of the leaf, counted from 0; public.
    pub index: u64,
    /// [`leaf_of_block`] of the block; public.
    pub leaf: Scalar,
    /// The sibling at each level, the leaf's own first; as many as the tree is deep.
    pub(crate) path: Vec<Scalar>,
}

impl Opening {
    pub(crate) fn blank(depth: u32, block_bytes: u32) -> Self {
        let path = vec![PADDING_LEAF; depth as usize];
        Self { block_bytes, root: PADDING_LEAF, index: 0, leaf: PADDING_LEAF, path }
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::Merkle { depth: self.path.len() as u32, block_bytes: self.block_bytes }
    }

    pub(crate) fn public_inputs(&self) -> Vec<Scalar> {
        vec![self.root, Scalar::from(self.index), self.leaf]
    }

    pub(crate) fn constrain(&self, cs: ConstraintSystemRef<Scalar>) -> Result<(), SynthesisError> {
        let root = FpVar::new_input(cs.clone(), || Ok(self.root))?;
        let index = FpVar::new_input(cs.clone(), || Ok(Scalar::from(self.index)))?;
        let mut node = FpVar::new_input(cs.clone(), || Ok(self.leaf))?;

        let mut position = Vec::with_capacity(self.path.len());
        for (level, sibling) in self.path.iter().enumerate() {
            let is_right = Boolean::new_witness(cs.clone(), || Ok(self.index >> level & 1 == 1))?;
            let sibling = FpVar::new_witness(cs.clone(), || Ok(*sibling))?;
            // 0 where the node is the left child, else what takes one of the two to the other.
            let swap = FpVar::from(is_right.clone()) * (&sibling - &node);
            node = poseidon::constrain_compress(&node + &swap, &sibling - &swap)?;
            position.push(is_right);
        }
        Boolean::le_bits_to_fp(&position)?.enforce_equal(&index)?;
        node.enforce_equal(&root)
    }
}

/// The leaf of a block: its SHA-256 as a big-endian number, the two highest bits cleared.
pub fn leaf_of_block(block: &[u8]) -> Scalar {
    let mut digest: [u8; 32] = Sha256::digest(block).into();
    digest[0] &= 0x3f;
    Scalar::from_be_bytes_mod_order(&digest)
}
