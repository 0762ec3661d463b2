//! The CPU prover: `ark-groth16` over a synthesized instance.

use std::time::{Duration, Instant};

use ark_bls12_381::Bls12_381;
use ark_ff::PrimeField;
use ark_groth16::Groth16;
use ark_relations::gr1cs::SynthesisError;
use ark_std::rand::RngCore;
use ark_std::rand::rngs::OsRng;

use crate::synthesis::{SynthesisFailure, Synthesized, synthesize};
use crate::{Instance, Proof, ProvingKey, Scalar, Shape};

/// Why no proof was made.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The instance has no witness.
    #[error(transparent)]
    Synthesis(#[from] SynthesisFailure),
    /// The key belongs to another shape.
    #[error("key is for {key}, the instance is {instance}: make a key with `prover setup {instance}`")]
    WrongKey {
        /// The key's shape.
        key: Shape,
        /// The instance's shape.
        instance: Shape,
    },
    /// The key's sizes are not those of the circuit, so it comes from another version of it.
    #[error(
        "key for {shape} was made for another version of this circuit: make it anew with `prover setup {shape}`"
    )]
    StaleKey {
        /// The shape.
        shape: Shape,
    },
    /// The operating system gave no random numbers.
    #[error("cannot get randomness from the operating system: {0}")]
    Randomness(ark_std::rand::Error),
    /// The domain does not exist, which is a defect of the circuit.
    #[error("cannot prove {shape}: {source}")]
    Reduction {
        /// The shape.
        shape: Shape,
        /// What arkworks said.
        source: SynthesisError,
    },
}

/// How long the parts of a proof took, by the wall clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Witness, matrices and the check of every constraint.
    pub synthesis: Duration,
    /// h(x) and the multi-scalar multiplications.
    pub prove: Duration,
}

/// A proof with what it proves.
#[derive(Debug, Clone)]
pub struct Proven {
    /// The proof.
    pub proof: Proof,
    /// The public inputs that it verifies against.
    pub public_inputs: Vec<Scalar>,
    /// How long it took.
    pub timings: Timings,
}

/// Proves `instance`: [`synthesize`], then [`prove_synthesized`].
///
/// # Errors
/// [`ProveError`]; an instance whose claim is wrong is refused, never proved.
pub fn prove(key: &ProvingKey, instance: &Instance) -> Result<Proven, ProveError> {
    check_shape(key, instance.shape())?;
    prove_synthesized(key, &synthesize(instance)?)
}

/// Proves a synthesized instance, with fresh randomness from the operating system.
///
/// # Errors
/// [`ProveError::WrongKey`], [`ProveError::StaleKey`], [`ProveError::Randomness`] or [`ProveError::Reduction`].
pub fn prove_synthesized(key: &ProvingKey, synthesized: &Synthesized) -> Result<Proven, ProveError> {
    prove_with(key, synthesized, random_scalar()?, random_scalar()?)
}

/// Proves with given r and s. Two proofs with the same r and s give their witnesses away: not for outside tests.
pub(crate) fn prove_with(
    key: &ProvingKey,
    synthesized: &Synthesized,
    r: Scalar,
    s: Scalar,
) -> Result<Proven, ProveError> {
    let start = Instant::now();
    let shape = synthesized.shape;
    check_shape(key, shape)?;
    if !key.fits(synthesized) {
        return Err(ProveError::StaleKey { shape });
    }
    let proof = Groth16::<Bls12_381>::create_proof_with_reduction_and_matrices(
        key.ark(),
        r,
        s,
        &synthesized.matrices,
        synthesized.public_inputs + 1,
        synthesized.constraints,
        &synthesized.assignment,
    )
    .map_err(|source| ProveError::Reduction { shape, source })?;
    Ok(Proven {
        proof: Proof::computed(proof.a, proof.b, proof.c),
        public_inputs: synthesized.public_inputs().to_vec(),
        timings: Timings { synthesis: synthesized.elapsed, prove: start.elapsed() },
    })
}

/// 512 bits reduced modulo r: no further from uniform than 2^-257, and a failing generator is an error, not a panic.
fn random_scalar() -> Result<Scalar, ProveError> {
    let mut bytes = [0; 64];
    OsRng.try_fill_bytes(&mut bytes).map_err(ProveError::Randomness)?;
    Ok(Scalar::from_le_bytes_mod_order(&bytes))
}

fn check_shape(key: &ProvingKey, instance: Shape) -> Result<(), ProveError> {
    let key = key.shape();
    if key == instance { Ok(()) } else { Err(ProveError::WrongKey { key, instance }) }
}

#[cfg(test)]
mod tests {
    use ark_ff::UniformRand;
    use ark_std::rand::SeedableRng;
    use ark_std::rand::rngs::StdRng;

    use super::*;
    use crate::circuit::{mimc, sha256};
    use crate::{Tree, setup};

    /// arkworks' own path from circuit to proof, which synthesizes by itself.
    fn equals_arkworks(instance: &Instance) {
        let mut rng = StdRng::seed_from_u64(5);
        let (r, s) = (Scalar::rand(&mut rng), Scalar::rand(&mut rng));
        let key = setup(instance.shape()).expect("set up");
        let ours = prove_with(&key, &synthesize(instance).expect("satisfied"), r, s).expect("proves").proof;
        let theirs =
            Groth16::<Bls12_381>::create_proof_with_reduction(instance, key.ark(), r, s).expect("proves");
        assert_eq!((ours.a(), ours.b(), ours.c()), (&theirs.a, &theirs.b, &theirs.c));
    }

    #[test]
    fn proofs_equal_those_of_arkworks_with_the_same_randomness() {
        equals_arkworks(&mimc::Preimage::new(7, Scalar::from(9)).expect("in range").into());
        equals_arkworks(&sha256::Preimage::new(*b"abc").expect("one block").into());
        let tree = Tree::read(&b"abcdef"[..], Shape::merkle(3, 1).expect("in range")).expect("fits");
        equals_arkworks(&tree.open(5).expect("present").into());
    }

    #[test]
    fn a_key_made_for_other_sizes_is_refused() {
        let instance: Instance = mimc::Preimage::new(4, Scalar::from(9)).expect("in range").into();
        let key = setup(instance.shape()).expect("set up");
        let mut synthesized = synthesize(&instance).expect("satisfied");
        synthesized.constraints -= 1;
        let error = prove_synthesized(&key, &synthesized).expect_err("another version");
        assert!(matches!(error, ProveError::StaleKey { .. }), "{error}");
    }
}
