//! The fixed header of a key file.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | magic `SXTNGKEY` |
//! | 8 | 4 | format version |
//! | 12 | 4 | kind: 1 development, 2 ceremony |
//! | 16 | 64 | circuit id (a [`Shape`]'s text), padded with zeros |
//! | 80 | 8 | constraints |
//! | 88 | 8 | domain |
//! | 96 | 8 | public inputs |
//! | 104 | 8 | witness variables |
//! | 112 | 8 | payload bytes |
//! | 120 | 32 | SHA-256 of the payload |
//! | 152 | 32 | SHA-256 of bytes 0 to 151 |
//!
//! Numbers are little-endian. The hashes find damage; they are no signature, so every length is still checked.

use std::fmt;

use sha2::{Digest, Sha256};

use super::KeyKind;
use crate::Shape;
use crate::shape::ShapeError;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 184;
/// The version written, and the only one read.
pub const FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"SXTNGKEY";
const CIRCUIT_BYTES: usize = 64;
const CHECKED_BYTES: usize = HEADER_BYTES - 32;

/// Bytes of an uncompressed point of G1.
pub(super) const G1_BYTES: u64 = 96;
/// Bytes of an uncompressed point of G2.
pub(super) const G2_BYTES: u64 = 192;

/// The sizes of a circuit, which fix the length of every section of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySize {
    constraints: u64,
    domain: u64,
    public_inputs: u64,
    witness: u64,
}

impl KeySize {
    /// The domain is the power of two that holds the constraints, the inputs and the constant; `None` if there is
    /// none or its key would not fit 64 bits of length.
    pub(crate) fn new(constraints: usize, public_inputs: usize, witness: usize) -> Option<Self> {
        Self::from_counts(constraints as u64, public_inputs as u64, witness as u64)
    }

    fn from_counts(constraints: u64, public_inputs: u64, witness: u64) -> Option<Self> {
        let rows = constraints.checked_add(public_inputs)?.checked_add(1)?;
        let size = Self { constraints, domain: rows.checked_next_power_of_two()?, public_inputs, witness };
        size.payload_bytes().map(|_| size)
    }

    /// Constraints: the rows of the system.
    pub fn constraints(&self) -> u64 {
        self.constraints
    }

    /// Points of the evaluation domain, a power of two.
    pub fn domain(&self) -> u64 {
        self.domain
    }

    /// Public inputs, the constant not counted.
    pub fn public_inputs(&self) -> u64 {
        self.public_inputs
    }

    /// Private variables.
    pub fn witness(&self) -> u64 {
        self.witness
    }

    /// The constant, the public inputs and the witness.
    pub(super) fn variables(&self) -> u64 {
        1 + self.public_inputs + self.witness
    }

    /// α, β, δ in G1; ic, a, b, h and l.
    fn payload_bytes(&self) -> Option<u64> {
        let inputs = self.public_inputs.checked_add(1)?;
        let variables = inputs.checked_add(self.witness)?;
        let in_g1 = [3, inputs, variables, variables, self.domain - 1, self.witness];
        let in_g1 = in_g1.iter().try_fold(0_u64, |sum, points| sum.checked_add(*points))?;
        let in_g2 = variables.checked_add(3)?;
        in_g1.checked_mul(G1_BYTES)?.checked_add(in_g2.checked_mul(G2_BYTES)?)
    }
}

/// What a key file says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHeader {
    /// The circuit and its size: what the key proves.
    pub shape: Shape,
    /// How the setup was made.
    pub kind: KeyKind,
    /// Constraints, domain, inputs, witness.
    pub size: KeySize,
    /// Bytes after the header.
    pub payload_bytes: u64,
    /// SHA-256 of the bytes after the header.
    pub payload_sha256: [u8; 32],
}

impl fmt::Display for KeyHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeySize { constraints, domain, public_inputs, .. } = self.size;
        write!(
            f,
            "{}: {constraints} constraints, domain {domain}, {public_inputs} public inputs, ",
            self.shape
        )?;
        write!(f, "{} payload bytes; {}", self.payload_bytes, self.kind)
    }
}

/// Why bytes are no header of a key that we can use. Offsets count from the file's beginning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The file ends inside the header.
    #[error(
        "file ends after {found} bytes, inside the header of {HEADER_BYTES}: copy it again or make the key anew"
    )]
    Truncated {
        /// Bytes that were there.
        found: usize,
    },
    /// Something else than a key of ours.
    #[error("not a proving key: the magic number at offset 0 is missing")]
    NotAKey,
    /// Written by another version.
    #[error(
        "key format version {found} at offset 8 is not the supported {FORMAT_VERSION}: make the key anew"
    )]
    Version {
        /// The version found.
        found: u32,
    },
    /// The header was altered.
    #[error(
        "header is damaged (its SHA-256 at offset {CHECKED_BYTES} does not match): copy the file again or make the key anew"
    )]
    Damaged,
    /// A kind that this version does not know.
    #[error("key kind {found} at offset 12 is neither 1 (development) nor 2 (ceremony)")]
    Kind {
        /// The number found.
        found: u32,
    },
    /// The circuit id is no text, or not the one spelling of a shape.
    #[error("circuit id at offset 16 is not canonical text")]
    CircuitText,
    /// The circuit id names no shape.
    #[error("circuit id at offset 16: {0}")]
    Circuit(ShapeError),
    /// The sizes contradict each other or the circuit.
    #[error("{field} at offset {offset} contradicts the other sizes in the header")]
    Size {
        /// Which number.
        field: &'static str,
        /// Where it stands.
        offset: usize,
    },
}

impl KeyHeader {
    pub(super) fn new(shape: Shape, kind: KeyKind, size: KeySize, payload_sha256: [u8; 32]) -> Self {
        let payload_bytes = size.payload_bytes().unwrap_or(u64::MAX);
        Self { shape, kind, size, payload_bytes, payload_sha256 }
    }

    /// The header as bytes.
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        let kind: u32 = match self.kind {
            KeyKind::Development => 1,
            KeyKind::Ceremony => 2,
        };
        bytes.extend(MAGIC);
        bytes.extend(FORMAT_VERSION.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(self.shape.to_string().bytes());
        bytes.resize(16 + CIRCUIT_BYTES, 0);
        let KeySize { constraints, domain, public_inputs, witness } = self.size;
        for number in [constraints, domain, public_inputs, witness, self.payload_bytes] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.payload_sha256);
        let check = Sha256::digest(&bytes);
        bytes.extend(check);

        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(&bytes);
        header
    }

    /// Reads a header; a shorter slice is a file that ends early.
    ///
    /// # Errors
    /// [`HeaderError`] for the first thing that is wrong. What it accepts is consistent: the payload length is the
    /// one that the sizes give.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let truncated = HeaderError::Truncated { found: bytes.len() };
        let present = bytes.len().min(MAGIC.len());
        if bytes[..present] != MAGIC[..present] {
            return Err(HeaderError::NotAKey);
        }
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(truncated)?;
        let found = u32_at(bytes, 8);
        if found != FORMAT_VERSION {
            return Err(HeaderError::Version { found });
        }
        if Sha256::digest(&bytes[..CHECKED_BYTES])[..] != bytes[CHECKED_BYTES..] {
            return Err(HeaderError::Damaged);
        }
        let kind = match u32_at(bytes, 12) {
            1 => KeyKind::Development,
            2 => KeyKind::Ceremony,
            found => return Err(HeaderError::Kind { found }),
        };
        let shape = shape_at(&bytes[16..16 + CIRCUIT_BYTES])?;
        let size = KeySize::from_counts(u64_at(bytes, 80), u64_at(bytes, 96), u64_at(bytes, 104));
        let size = size.ok_or(HeaderError::Size { field: "constraints", offset: 80 })?;
        if u64_at(bytes, 88) != size.domain {
            return Err(HeaderError::Size { field: "domain", offset: 88 });
        }
        if size.public_inputs != shape.public_inputs() as u64 {
            return Err(HeaderError::Size { field: "public inputs", offset: 96 });
        }
        let mut payload_sha256 = [0; 32];
        payload_sha256.copy_from_slice(&bytes[120..152]);
        let header = Self::new(shape, kind, size, payload_sha256);
        if u64_at(bytes, 112) != header.payload_bytes {
            return Err(HeaderError::Size { field: "payload length", offset: 112 });
        }
        Ok(header)
    }
}

fn shape_at(bytes: &[u8]) -> Result<Shape, HeaderError> {
    let text = std::str::from_utf8(bytes).map_err(|_| HeaderError::CircuitText)?;
    let text = text.trim_end_matches('\0');
    let shape: Shape = text.parse().map_err(HeaderError::Circuit)?;
    if shape.to_string() == text { Ok(shape) } else { Err(HeaderError::CircuitText) }
}

fn u32_at(bytes: &[u8; HEADER_BYTES], offset: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8; HEADER_BYTES], offset: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_header_with_a_right_hash_is_refused_or_means_what_it_says(
            circuit in prop::sample::select(vec!["mimc-2^4", "sha256-1", "merkle-3", "other"]),
            kind in 0..4_u32,
            numbers in prop::array::uniform5(prop_oneof![0..64_u64, any::<u64>()]),
        ) {
            let mut bytes = [MAGIC.as_slice(), &FORMAT_VERSION.to_le_bytes(), &kind.to_le_bytes()].concat();
            bytes.extend(circuit.bytes());
            bytes.resize(16 + CIRCUIT_BYTES, 0);
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            bytes.extend([7; 32]);
            let check = Sha256::digest(&bytes);
            bytes.extend(check);
            if let Ok(header) = KeyHeader::decode(&bytes) {
                prop_assert_eq!(&header.encode()[..], &bytes[..]);
            }
        }
    }

    #[test]
    fn a_header_is_read_back() {
        let shape = Shape::merkle(3, 512).expect("in range");
        let size = KeySize::new(721, 3, 720).expect("small");
        let header = KeyHeader::new(shape, KeyKind::Ceremony, size, [9; 32]);
        assert_eq!(KeyHeader::decode(&header.encode()), Ok(header));
        assert_eq!(size.domain(), 1024);
    }
}
