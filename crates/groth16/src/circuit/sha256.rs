//! SHA-256 preimage: the workload whose witness is nearly all zeros and ones.
//!
//! Statement: "I know a message, of a length that takes exactly n blocks, whose SHA-256 digest is this one." The
//! padding is checked inside the circuit and the message's length stays private, so the digest is the one `sha256sum`
//! prints for any message of up to 64·n − 9 bytes. Public inputs: the digest's first and last 16 bytes, each as a
//! big-endian number below 2^128 (one element of 256 bits would have two encodings, x and x + r).
//!
//! Choice and majority cost one and two constraints a bit, and each round's sums are merged into two, so one block
//! takes about 27,000 constraints and fits a domain of 2^15.

use std::array;
use std::ops::Range;

use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::boolean::Boolean;
use ark_r1cs_std::convert::ToBitsGadget;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_r1cs_std::select::CondSelectGadget;
use ark_r1cs_std::uint8::UInt8;
use ark_r1cs_std::uint32::UInt32;
use ark_relations::gr1cs::{ConstraintSystemRef, SynthesisError};
use sha2::{Digest, Sha256};

use crate::Scalar;
use crate::shape::{Shape, ShapeError};

const BLOCK_BYTES: usize = 64;
/// The message's length in bits, at the end of the last block.
const LENGTH_BYTES: usize = 8;

/// A message and the digest claimed for it.
#[derive(Clone, Debug)]
pub struct Preimage {
    blocks: u32,
    message: Vec<u8>,
    /// Public.
    pub digest: [u8; 32],
}

impl Preimage {
    /// The instance that `message` gives; its length selects the shape.
    ///
    /// # Errors
    /// As [`Shape::sha256_for_message`].
    pub fn new(message: impl Into<Vec<u8>>) -> Result<Self, ShapeError> {
        let message = message.into();
        match Shape::sha256_for_message(message.len())? {
            Shape::Sha256 { blocks } => Ok(Self { blocks, digest: Sha256::digest(&message).into(), message }),
            other => Err(ShapeError::UnknownCircuit(other.to_string())),
        }
    }

    pub(crate) fn blank(blocks: u32) -> Self {
        Self { blocks, message: vec![0; message_lengths(blocks).start], digest: [0; 32] }
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::Sha256 { blocks: self.blocks }
    }

    pub(crate) fn public_inputs(&self) -> Vec<Scalar> {
        digest_halves(self.digest).into()
    }

    pub(crate) fn constrain(&self, cs: ConstraintSystemRef<Scalar>) -> Result<(), SynthesisError> {
        let claimed = digest_halves(self.digest);
        let claimed = [
            FpVar::new_input(cs.clone(), || Ok(claimed[0]))?,
            FpVar::new_input(cs.clone(), || Ok(claimed[1]))?,
        ];
        let padded = UInt8::new_witness_vec(cs.clone(), &padded(&self.message))?;
        constrain_padding(cs, &padded, self.message.len(), message_lengths(self.blocks))?;

        let mut state = INITIAL_STATE.map(UInt32::constant);
        for block in padded.chunks_exact(BLOCK_BYTES) {
            state = compress(state, block)?;
        }
        for (half, claimed) in state.chunks_exact(4).zip(&claimed) {
            let mut bits = Vec::with_capacity(128);
            for word in half.iter().rev() {
                bits.extend(word.to_bits_le()?);
            }
            Boolean::le_bits_to_fp(&bits)?.enforce_equal(claimed)?;
        }
        Ok(())
    }
}

/// The public inputs that stand for `digest`.
fn digest_halves(digest: [u8; 32]) -> [Scalar; 2] {
    let half = |start: usize| {
        let number =
            digest[start..start + 16].iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
        Scalar::from(number)
    };
    [half(0), half(16)]
}

/// Lengths in bytes of the messages that take exactly `blocks` blocks.
fn message_lengths(blocks: u32) -> Range<usize> {
    let end = BLOCK_BYTES * blocks as usize - LENGTH_BYTES;
    end.saturating_sub(BLOCK_BYTES)..end
}

/// FIPS 180-4, 5.1.1: 0x80, zeros, and the length in bits as 64 bits big-endian.
fn padded(message: &[u8]) -> Vec<u8> {
    let mut padded = message.to_vec();
    padded.push(0x80);
    let end = (padded.len() + LENGTH_BYTES).next_multiple_of(BLOCK_BYTES);
    padded.resize(end - LENGTH_BYTES, 0);
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    padded
}

/// Holds `padded` to the padding rule for one of the `lengths`, without saying which.
///
/// One of the flags "the message ends here" is set. With `here` the flag of a position and `before` the sum of the
/// flags of earlier ones (each 0 or 1, never both 1), byte · (here + before) = 0x80 · here says: the byte is 0x80 at
/// the end, 0 after it, and anything before.
fn constrain_padding(
    cs: ConstraintSystemRef<Scalar>,
    padded: &[UInt8<Scalar>],
    message_bytes: usize,
    lengths: Range<usize>,
) -> Result<(), SynthesisError> {
    let mut before = FpVar::Constant(Scalar::from(0));
    let mut length = FpVar::Constant(Scalar::from(0));
    for position in lengths {
        let here = FpVar::from(Boolean::new_witness(cs.clone(), || Ok(position == message_bytes))?);
        let byte = Boolean::le_bits_to_fp(&padded[position].to_bits_le()?)?;
        let reached = &before + &here;
        byte.mul_equals(&reached, &(&here * Scalar::from(0x80)))?;
        length += here * Scalar::from(position as u64);
        before = reached;
    }
    before.enforce_equal(&FpVar::Constant(Scalar::from(1)))?;

    let mut length_bits = Vec::with_capacity(8 * LENGTH_BYTES);
    for byte in padded[padded.len() - LENGTH_BYTES..].iter().rev() {
        length_bits.extend(byte.to_bits_le()?);
    }
    Boolean::le_bits_to_fp(&length_bits)?.enforce_equal(&(length * Scalar::from(8)))
}

/// The compression function (FIPS 180-4, 6.2.2).
fn compress(
    state: [UInt32<Scalar>; 8],
    block: &[UInt8<Scalar>],
) -> Result<[UInt32<Scalar>; 8], SynthesisError> {
    let mut schedule: Vec<UInt32<Scalar>> = Vec::with_capacity(64);
    for word in block.chunks_exact(4) {
        schedule.push(UInt32::from_bytes_be(word)?);
    }
    for t in 16..64 {
        let (early, late) = (&schedule[t - 15], &schedule[t - 2]);
        let sigma0 = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3_u8);
        let sigma1 = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10_u8);
        let terms = [sigma1, schedule[t - 7].clone(), sigma0, schedule[t - 16].clone()];
        schedule.push(UInt32::wrapping_add_many(&terms)?);
    }

    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state.clone();
    for (constant, word) in ROUND_CONSTANTS.iter().zip(schedule) {
        let sum1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let sum0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let choice = select_bits(&e, &f, &g)?;
        // Where a and b differ, c decides; where they agree, either of them does.
        let majority = select_bits(&(&a ^ &b), &c, &a)?;

        let temporary = [h, sum1, choice, UInt32::constant(*constant), word];
        let new_e = UInt32::wrapping_add_many(&[&temporary[..], &[d]].concat())?;
        let new_a = UInt32::wrapping_add_many(&[&temporary[..], &[sum0, majority]].concat())?;
        (h, g, f, e, d, c, b, a) = (g, f, e, new_e, c, b, a, new_a);
    }

    let mixed = [a, b, c, d, e, f, g, h];
    Ok(array::from_fn(|index| state[index].wrapping_add(&mixed[index])))
}

/// Bit by bit, `yes` where `condition` is set and `no` where it is not: one constraint a bit.
fn select_bits(
    condition: &UInt32<Scalar>,
    yes: &UInt32<Scalar>,
    no: &UInt32<Scalar>,
) -> Result<UInt32<Scalar>, SynthesisError> {
    let (yes, no) = (yes.to_bits_le()?, no.to_bits_le()?);
    let mut bits = Vec::with_capacity(32);
    for (index, condition) in condition.to_bits_le()?.iter().enumerate() {
        bits.push(Boolean::conditionally_select(condition, &yes[index], &no[index])?);
    }
    Ok(UInt32::from_bits_le(&bits))
}

/// First 32 bits of the fractional parts of the square roots of the first 8 primes.
const INITIAL_STATE: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// First 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUND_CONSTANTS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

#[cfg(test)]
mod tests {
    use ark_relations::gr1cs::ConstraintSystem;

    use super::*;

    /// Whether a cheating prover may use `padded` as its blocks, claiming that the message ends at `end`.
    fn accepts(padded: &[u8], end: usize) -> bool {
        let cs = ConstraintSystem::new_ref();
        let bytes = UInt8::new_witness_vec(cs.clone(), padded).expect("allocates");
        let blocks = (padded.len() / BLOCK_BYTES) as u32;
        constrain_padding(cs.clone(), &bytes, end, message_lengths(blocks)).expect("constrains");
        cs.is_satisfied().expect("has a witness")
    }

    #[test]
    fn every_length_has_one_padding() {
        for length in [0, 1, 31, 55, 56, 63, 64, 119, 120] {
            let padded = padded(&vec![0xaa; length]);
            for end in message_lengths((padded.len() / BLOCK_BYTES) as u32) {
                assert_eq!(accepts(&padded, end), end == length, "{length} as {end}");
            }
        }
    }

    #[test]
    fn altered_padding_is_refused() {
        for length in [0, 54, 55, 56, 119] {
            let good = padded(&vec![0xaa; length]);
            for position in length..good.len() {
                let mut bad = good.clone();
                bad[position] ^= 1;
                assert!(!accepts(&bad, length), "byte {position} of a message of {length}");
            }
        }
    }

    #[test]
    fn a_message_that_ends_nowhere_is_refused() {
        assert!(!accepts(&[0; 64], 64));
    }
}
