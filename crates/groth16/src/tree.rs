//! The Poseidon tree over a file's blocks, built natively: it gives roots and the openings to prove.
//!
//! A file of n > 0 bytes has ⌈n / block⌉ blocks, the last one as short as it is; the empty file has one empty block.
//! Only nodes above real blocks are stored: a deep tree over a small file costs what the file costs.

use std::io::{self, Read};

use rayon::prelude::*;

use crate::Scalar;
use crate::circuit::merkle::{Opening, PADDING_LEAF, leaf_of_block};
use crate::circuit::poseidon;
use crate::shape::Shape;

/// Bytes read at once, so that blocks are hashed on all cores while memory stays flat.
const READ_BYTES: usize = 8 << 20;

/// Why there is no tree or no opening.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The shape is not a Merkle shape.
    #[error("a file's blocks need a merkle shape, not {0}")]
    NotMerkle(Shape),
    /// More blocks than leaves.
    #[error(
        "file has more than the 2^{depth} blocks of {block_bytes} bytes that merkle depth {depth} holds: use a greater depth"
    )]
    TooManyBlocks {
        /// Levels of the tree.
        depth: u32,
        /// Bytes a block.
        block_bytes: u32,
    },
    /// No such block.
    #[error("no block {index}: the file has {blocks}, counted from 0")]
    NoSuchBlock {
        /// The index asked for.
        index: u64,
        /// Blocks in the file.
        blocks: u64,
    },
    /// The file cannot be read.
    #[error("cannot read block {block}: {source}")]
    Read {
        /// Index of the first block that was not read.
        block: u64,
        /// What the system said.
        source: io::Error,
    },
}

/// A tree of 2^depth leaves over the blocks of one file.
#[derive(Clone, Debug)]
pub struct Tree {
    block_bytes: u32,
    /// Nodes above real blocks, from the leaves to the root.
    levels: Vec<Vec<Scalar>>,
    /// The root of an empty subtree, by its height.
    padding: Vec<Scalar>,
}

impl Tree {
    /// Reads a file to its end and builds the tree of `shape` over it.
    ///
    /// # Errors
    /// [`TreeError::NotMerkle`], [`TreeError::TooManyBlocks`] (noticed without reading further) or
    /// [`TreeError::Read`].
    pub fn read(mut file: impl Read, shape: Shape) -> Result<Self, TreeError> {
        let Shape::Merkle { depth, block_bytes } = shape else { return Err(TreeError::NotMerkle(shape)) };
        let block = block_bytes as usize;
        let mut chunk = vec![0; block.max(READ_BYTES / block * block)];
        let mut leaves = Vec::new();
        loop {
            let read = read_full(&mut file, &mut chunk)
                .map_err(|source| TreeError::Read { block: leaves.len() as u64, source })?;
            leaves.par_extend(chunk[..read].par_chunks(block).map(leaf_of_block));
            if leaves.len() as u64 > 1 << depth {
                return Err(TreeError::TooManyBlocks { depth, block_bytes });
            }
            if read < chunk.len() {
                break;
            }
        }
        if leaves.is_empty() {
            leaves.push(leaf_of_block(&[]));
        }
        Ok(Self::build(leaves, depth, block_bytes))
    }

    /// `leaves` holds 1 to 2^`depth` elements.
    fn build(leaves: Vec<Scalar>, depth: u32, block_bytes: u32) -> Self {
        let mut levels = vec![leaves];
        let mut padding = vec![PADDING_LEAF];
        for height in 0..depth as usize {
            let empty = padding[height];
            let parents = levels[height].par_chunks(2).map(|children| {
                let right = children.get(1).copied().unwrap_or(empty);
                poseidon::compress(children[0], right)
            });
            let parents = parents.collect();
            levels.push(parents);
            padding.push(poseidon::compress(empty, empty));
        }
        Self { block_bytes, levels, padding }
    }

    /// Hash of the whole tree.
    pub fn root(&self) -> Scalar {
        self.levels.last().and_then(|top| top.first()).copied().unwrap_or(PADDING_LEAF)
    }

    /// Blocks of the file, at least 1.
    pub fn blocks(&self) -> u64 {
        self.levels[0].len() as u64
    }

    /// The shape that its openings have.
    pub fn shape(&self) -> Shape {
        Shape::Merkle { depth: self.levels.len() as u32 - 1, block_bytes: self.block_bytes }
    }

    /// The instance that proves block `index`.
    ///
    /// # Errors
    /// [`TreeError::NoSuchBlock`] beyond the file's last block, padding included.
    pub fn open(&self, index: u64) -> Result<Opening, TreeError> {
        let no_such_block = || TreeError::NoSuchBlock { index, blocks: self.blocks() };
        let position = usize::try_from(index).map_err(|_| no_such_block())?;
        let leaf = *self.levels[0].get(position).ok_or_else(no_such_block)?;
        let below_root = self.levels.iter().zip(&self.padding).take(self.levels.len() - 1);
        let path = below_root.enumerate().map(|(height, (level, empty))| {
            let sibling = (position >> height) ^ 1;
            level.get(sibling).copied().unwrap_or(*empty)
        });
        Ok(Opening { block_bytes: self.block_bytes, root: self.root(), index, leaf, path: path.collect() })
    }
}

/// Fills `buffer` unless the file ends first; says how much was read.
fn read_full(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
