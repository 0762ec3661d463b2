//! What a key is for: a circuit and its size.

use std::fmt;
use std::str::FromStr;

/// Bytes of a block of a file where a [`Shape::Merkle`] does not say otherwise.
pub const DEFAULT_BLOCK_BYTES: u32 = 4096;

const MIMC_LOG2_SIZE: std::ops::RangeInclusive<u32> = 4..=24;
const SHA256_BLOCKS: std::ops::RangeInclusive<u32> = 1..=64;
const MERKLE_DEPTH: std::ops::RangeInclusive<u32> = 1..=32;
const MERKLE_BLOCK_BYTES: std::ops::RangeInclusive<u32> = 1..=1 << 24;

/// A circuit and its size. Two instances of one shape have the same constraints, so they share one key.
///
/// Its text form is the *circuit id* of key files and of our JSON: `mimc-2^12`, `sha256-1`, `merkle-16`
/// (blocks of [`DEFAULT_BLOCK_BYTES`]), `merkle-16x65536` (blocks of 65,536 bytes). Every shape has exactly one.
///
/// Variants are matched but not built from outside: the constructors keep sizes within their ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// A MiMC chain that fills an evaluation domain of 2^`log2_size` (4 to 24) with a dense witness.
    #[non_exhaustive]
    Mimc {
        /// Base-2 logarithm of the domain's size.
        log2_size: u32,
    },
    /// The SHA-256 preimage of a message that takes `blocks` (1 to 64) calls of the compression function.
    #[non_exhaustive]
    Sha256 {
        /// Blocks of 64 bytes, padding included.
        blocks: u32,
    },
    /// A file's block in a Poseidon tree of `depth` levels (1 to 32) over its blocks.
    #[non_exhaustive]
    Merkle {
        /// Levels between leaf and root: the tree has 2^`depth` leaves.
        depth: u32,
        /// Bytes a block (1 to 2^24); the last one of a file may be shorter.
        block_bytes: u32,
    },
}

/// Why a text or a size is no [`Shape`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The circuit's name is not one of ours.
    #[error(
        "unknown circuit `{}`: known are mimc-2^K, sha256-BLOCKS, merkle-DEPTH and merkle-DEPTHxBLOCKBYTES",
        .0.escape_debug()
    )]
    UnknownCircuit(String),
    /// The name is known, what follows is no size in the one accepted spelling.
    #[error("`{}` has no size that can be read: write it like `{example}`", text.escape_debug())]
    Malformed {
        /// The text as given.
        text: String,
        /// A valid shape of the same circuit.
        example: &'static str,
    },
    /// The size is outside what the circuit supports.
    #[error("{what} {value} is out of range: use {least} to {most}")]
    OutOfRange {
        /// Which size.
        what: &'static str,
        /// The value as given.
        value: u64,
        /// Smallest accepted value.
        least: u32,
        /// Largest accepted value.
        most: u32,
    },
}

impl Shape {
    /// A MiMC chain filling a domain of 2^`log2_size`.
    ///
    /// # Errors
    /// [`ShapeError::OutOfRange`] outside 4 to 24.
    pub fn mimc(log2_size: u32) -> Result<Self, ShapeError> {
        let log2_size = within("mimc log2 size", log2_size.into(), MIMC_LOG2_SIZE)?;
        Ok(Self::Mimc { log2_size })
    }

    /// SHA-256 over `blocks` blocks of 64 bytes, padding included.
    ///
    /// # Errors
    /// [`ShapeError::OutOfRange`] outside 1 to 64.
    pub fn sha256(blocks: u32) -> Result<Self, ShapeError> {
        let blocks = within("sha256 block count", blocks.into(), SHA256_BLOCKS)?;
        Ok(Self::Sha256 { blocks })
    }

    /// The shape that proves the SHA-256 preimage of a message of `message_bytes` bytes.
    ///
    /// # Errors
    /// [`ShapeError::OutOfRange`] for messages over 4,087 bytes (64 blocks).
    pub fn sha256_for_message(message_bytes: usize) -> Result<Self, ShapeError> {
        // A message is followed by 0x80 and its length in 8 bytes (FIPS 180-4, 5.1.1).
        let blocks = (message_bytes as u64).saturating_add(9).div_ceil(64);
        let blocks = within("sha256 block count", blocks, SHA256_BLOCKS)?;
        Ok(Self::Sha256 { blocks })
    }

    /// Inclusion in a tree of 2^`depth` leaves over blocks of `block_bytes` bytes.
    ///
    /// # Errors
    /// [`ShapeError::OutOfRange`] for a depth outside 1 to 32 or a block outside 1 to 2^24 bytes.
    pub fn merkle(depth: u32, block_bytes: u32) -> Result<Self, ShapeError> {
        let depth = within("merkle depth", depth.into(), MERKLE_DEPTH)?;
        let block_bytes = within("merkle block bytes", block_bytes.into(), MERKLE_BLOCK_BYTES)?;
        Ok(Self::Merkle { depth, block_bytes })
    }

    /// The shallowest tree that holds a file of `file_bytes` bytes in blocks of `block_bytes`.
    ///
    /// # Errors
    /// [`ShapeError::OutOfRange`] if the block size is, or if the file needs more than 2^32 blocks.
    pub fn merkle_for_file(file_bytes: u64, block_bytes: u32) -> Result<Self, ShapeError> {
        let block_bytes = within("merkle block bytes", block_bytes.into(), MERKLE_BLOCK_BYTES)?;
        let blocks = file_bytes.div_ceil(block_bytes.into()).max(1);
        let depth = u64::from(64 - (blocks - 1).leading_zeros()).max(1);
        Self::merkle(within("merkle depth", depth, MERKLE_DEPTH)?, block_bytes)
    }

    /// Public inputs of an instance, the constant one not counted.
    pub fn public_inputs(&self) -> usize {
        match self {
            Self::Mimc { .. } => 1,
            Self::Sha256 { .. } => 2,
            Self::Merkle { .. } => 3,
        }
    }

    /// The circuit without its size: `mimc`, `sha256` or `merkle`.
    pub fn circuit(&self) -> &'static str {
        match self {
            Self::Mimc { .. } => "mimc",
            Self::Sha256 { .. } => "sha256",
            Self::Merkle { .. } => "merkle",
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mimc { log2_size } => write!(f, "mimc-2^{log2_size}"),
            Self::Sha256 { blocks } => write!(f, "sha256-{blocks}"),
            Self::Merkle { depth, block_bytes: DEFAULT_BLOCK_BYTES } => write!(f, "merkle-{depth}"),
            Self::Merkle { depth, block_bytes } => write!(f, "merkle-{depth}x{block_bytes}"),
        }
    }
}

impl FromStr for Shape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (circuit, size) = text.split_once('-').unwrap_or((text, ""));
        match circuit {
            "mimc" => {
                let example = "mimc-2^12";
                let log2_size = size.strip_prefix("2^").and_then(number);
                Self::mimc(log2_size.ok_or_else(|| malformed(text, example))?)
            }
            "sha256" => Self::sha256(number(size).ok_or_else(|| malformed(text, "sha256-1"))?),
            "merkle" => {
                let (depth, block_bytes) = match size.split_once('x') {
                    Some((depth, block)) => (number(depth), number(block)),
                    None => (number(size), Some(DEFAULT_BLOCK_BYTES)),
                };
                let malformed = || malformed(text, "merkle-16");
                Self::merkle(depth.ok_or_else(malformed)?, block_bytes.ok_or_else(malformed)?)
            }
            _ => Err(ShapeError::UnknownCircuit(text.to_owned())),
        }
    }
}

/// Decimal without sign, blanks or leading zeros; what overflows is "very large" and refused by the range.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    Some(text.parse().unwrap_or(u32::MAX))
}

fn malformed(text: &str, example: &'static str) -> ShapeError {
    ShapeError::Malformed { text: text.to_owned(), example }
}

fn within(what: &'static str, value: u64, range: std::ops::RangeInclusive<u32>) -> Result<u32, ShapeError> {
    let (least, most) = range.into_inner();
    match u32::try_from(value) {
        Ok(fits) if (least..=most).contains(&fits) => Ok(fits),
        _ => Err(ShapeError::OutOfRange { what, value, least, most }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_read_back_from_its_text() {
        for text in
            ["mimc-2^4", "mimc-2^24", "sha256-1", "sha256-64", "merkle-1", "merkle-32x1", "merkle-16x65536"]
        {
            assert_eq!(text.parse::<Shape>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn the_default_block_size_is_left_out() {
        let spelled_out: Shape = "merkle-16x4096".parse().expect("valid");
        assert_eq!(spelled_out.to_string(), "merkle-16");
    }

    #[test]
    fn unknown_and_oversized_shapes_are_refused_with_a_way_out() {
        let message = |text: &str| text.parse::<Shape>().expect_err(text).to_string();
        assert!(message("keccak-1").contains("known are mimc-2^K"));
        assert!(message("").contains("known are"));
        assert_eq!(message("mimc-2^25"), "mimc log2 size 25 is out of range: use 4 to 24");
        assert!(message("mimc-2^99999999999999").contains("out of range"));
        for text in [
            "mimc-12",
            "mimc-2^012",
            "mimc-2^+12",
            "mimc",
            "sha256-",
            "sha256- 1",
            "merkle-16x",
            "merkle-x16",
        ] {
            assert!(message(text).contains("write it like"), "{text}");
        }
        assert!(message("merkle-33").contains("use 1 to 32"));
        assert!(message("merkle-4x0").contains("block bytes 0"));
    }

    #[test]
    fn a_message_or_file_finds_the_smallest_shape_that_holds_it() {
        let sha256 = |bytes| Shape::sha256_for_message(bytes).expect("fits").to_string();
        assert_eq!(
            [sha256(0), sha256(55), sha256(56), sha256(119), sha256(120)].join(" "),
            "sha256-1 sha256-1 sha256-2 sha256-2 sha256-3"
        );
        assert!(Shape::sha256_for_message(4088).is_err());

        let merkle = |bytes| Shape::merkle_for_file(bytes, 4096).expect("fits").to_string();
        assert_eq!(
            [merkle(0), merkle(8192), merkle(8193), merkle(4096 << 16)].join(" "),
            "merkle-1 merkle-1 merkle-2 merkle-16"
        );
        assert!(Shape::merkle_for_file(u64::MAX, 1).is_err());
    }
}
