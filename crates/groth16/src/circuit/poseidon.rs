//! Poseidon over BLS12-381's scalar field: x⁵, rate 2, capacity 1, 8 full and 56 partial rounds.
//!
//! Grassi et al., "Poseidon: A New Hash Function for Zero-Knowledge Proof Systems" (2021). Round constants and matrix
//! come from the Grain LFSR of its appendix, as arkworks generates them. The two-to-one compression is the sponge's
//! second state element after one permutation of (0, left, right); its inputs have fixed length, so nothing is padded.

use std::sync::LazyLock;

use ark_crypto_primitives::sponge::poseidon::{PoseidonConfig, find_poseidon_ark_and_mds};
use ark_ff::PrimeField;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;

use crate::Scalar;

/// Rounds that apply the S-box to the whole state, half of them before the partial ones.
pub const FULL_ROUNDS: usize = 8;
/// Rounds that apply it to the first element only.
pub const PARTIAL_ROUNDS: usize = 56;
/// Field elements absorbed by one permutation.
pub const RATE: usize = 2;
const WIDTH: usize = RATE + 1;
const ALPHA: u64 = 5;

type State<T> = [T; WIDTH];

/// Round constants and MDS matrix, fixed-size so that a permutation allocates nothing.
struct Parameters {
    round_constants: Vec<State<Scalar>>,
    mds: State<State<Scalar>>,
}

static PARAMETERS: LazyLock<Parameters> = LazyLock::new(|| {
    let config = config();
    let row = |row: &Vec<Scalar>| -> State<Scalar> { std::array::from_fn(|column| row[column]) };
    Parameters {
        round_constants: config.ark.iter().map(row).collect(),
        mds: std::array::from_fn(|index| row(&config.mds[index])),
    }
});

/// The same parameters in arkworks' form.
pub fn config() -> PoseidonConfig<Scalar> {
    let bits = u64::from(Scalar::MODULUS_BIT_SIZE);
    let (ark, mds) = find_poseidon_ark_and_mds(bits, RATE, FULL_ROUNDS as u64, PARTIAL_ROUNDS as u64, 0);
    PoseidonConfig::new(FULL_ROUNDS, PARTIAL_ROUNDS, ALPHA, mds, ark, RATE, WIDTH - RATE)
}

/// Two field elements to one.
pub fn compress(left: Scalar, right: Scalar) -> Scalar {
    let mut state = [Scalar::from(0), left, right];
    for (round, constants) in PARAMETERS.round_constants.iter().enumerate() {
        for (element, constant) in state.iter_mut().zip(constants) {
            *element += constant;
        }
        for element in &mut state[..s_boxes(round)] {
            let square = *element * *element;
            *element *= square * square;
        }
        state = PARAMETERS.mds.map(|row| row[0] * state[0] + row[1] * state[1] + row[2] * state[2]);
    }
    state[1]
}

/// [`compress`] as constraints: 3 for each of 80 S-boxes but the first, which sees the constant 0: 237 in all.
///
/// # Errors
/// Those of the constraint system.
pub fn constrain_compress(
    left: FpVar<Scalar>,
    right: FpVar<Scalar>,
) -> Result<FpVar<Scalar>, SynthesisError> {
    let mut state = [FpVar::Constant(Scalar::from(0)), left, right];
    for (round, constants) in PARAMETERS.round_constants.iter().enumerate() {
        for (element, constant) in state.iter_mut().zip(constants) {
            *element += *constant;
        }
        for element in &mut state[..s_boxes(round)] {
            let fourth = element.square()?.square()?;
            *element *= fourth;
        }
        state = PARAMETERS.mds.map(|row| &state[0] * row[0] + &state[1] * row[1] + &state[2] * row[2]);
    }
    let [_, hash, _] = state;
    Ok(hash)
}

/// How many elements of the state pass the S-box in `round`.
fn s_boxes(round: usize) -> usize {
    let partial = FULL_ROUNDS / 2..FULL_ROUNDS / 2 + PARTIAL_ROUNDS;
    if partial.contains(&round) { 1 } else { WIDTH }
}

#[cfg(test)]
mod tests {
    use ark_crypto_primitives::crh::TwoToOneCRHScheme;
    use ark_crypto_primitives::crh::poseidon::TwoToOneCRH;
    use ark_ff::{BigInteger, UniformRand};
    use ark_std::rand::SeedableRng;
    use ark_std::rand::rngs::StdRng;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_grain_parameters_are_pinned() {
        let config = config();
        let mut digest = Sha256::new();
        for element in config.ark.iter().chain(&config.mds).flatten() {
            digest.update(element.to_string().as_bytes());
            digest.update(b"\n");
        }
        assert_eq!(
            hex::encode(digest.finalize()),
            "32c6cd4a96c0aa9caa5d92da0e8bd695e81f662f0792ac40df8f4938a728834a"
        );
    }

    /// The authors' own instance for a 255-bit field, t = 3, has 57 partial rounds (`poseidonperm_x5_255_3.sage`).
    #[test]
    fn the_generator_gives_the_constants_of_the_reference_instance() {
        let (ark, _) = find_poseidon_ark_and_mds::<Scalar>(255, RATE, 8, 57, 0);
        let first = ark[0][0].into_bigint().to_bytes_be();
        assert_eq!(hex::encode(first), "6c4ffa723eaf1a7bf74905cc7dae4ca9ff4a2c3bc81d42e09540d1f250910880");
    }

    #[test]
    fn compression_agrees_with_the_sponge_of_arkworks() {
        let config = config();
        let mut rng = StdRng::seed_from_u64(7);
        for _ in 0..20 {
            let (left, right) = (Scalar::rand(&mut rng), Scalar::rand(&mut rng));
            let expected = TwoToOneCRH::<Scalar>::compress(&config, left, right).expect("compresses");
            assert_eq!(compress(left, right), expected);
        }
    }
}
