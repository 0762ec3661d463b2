//! Every circuit proves what it says, and nothing else.

use ark_ff::UniformRand;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use sexton_groth16::circuit::{mimc, sha256};
use sexton_groth16::{Instance, ProveError, Scalar, Shape, SynthesisFailure, Tree, prove, setup, synthesize};

fn shape(text: &str) -> Shape {
    text.parse().expect("valid shape")
}

fn refused(instance: impl Into<Instance>) -> bool {
    matches!(synthesize(&instance.into()), Err(SynthesisFailure::Unsatisfied { .. }))
}

fn proves_and_verifies(instance: &Instance) {
    let key = setup(instance.shape()).expect("set up");
    let proven = prove(&key, instance).expect("proves");
    eprintln!("{}: {:?} {:?}", instance.shape(), key.size(), proven.timings);
    assert_eq!(proven.public_inputs, instance.public_inputs());
    key.verifying_key().verify(&proven.proof, &proven.public_inputs).expect("verifies");
}

#[test]
fn a_mimc_chain_of_any_size_proves_and_fills_its_domain() {
    let mut rng = StdRng::seed_from_u64(1);
    for log2_size in [4, 8, 10] {
        let instance = mimc::Preimage::new(log2_size, Scalar::rand(&mut rng)).expect("in range").into();
        proves_and_verifies(&instance);
        let key = setup(instance.shape()).expect("set up");
        assert_eq!(key.size().domain(), 1 << log2_size);
    }
}

#[test]
fn a_wrong_mimc_claim_is_refused_before_proving() {
    let mut wrong = mimc::Preimage::new(8, Scalar::from(3)).expect("in range");
    wrong.output += Scalar::from(1);
    assert!(refused(wrong));
}

#[test]
fn a_sha256_preimage_proves() {
    let instance = sha256::Preimage::new(*b"abc").expect("one block");
    // FIPS 180-4's own example.
    assert_eq!(instance.digest[..4], [0xba, 0x78, 0x16, 0xbf]);
    proves_and_verifies(&instance.into());
}

#[test]
fn every_message_length_that_fits_its_blocks_is_accepted_with_the_true_digest() {
    for bytes in [0, 1, 54, 55, 56, 63, 64, 65, 118, 119, 120] {
        let message: Vec<u8> = (0..bytes).collect();
        let instance = sha256::Preimage::new(message).expect("fits").into();
        assert!(synthesize(&instance).is_ok(), "{bytes} bytes");
    }
}

#[test]
fn a_wrong_digest_is_refused_before_proving() {
    let mut wrong = sha256::Preimage::new(*b"abc").expect("one block");
    wrong.digest[31] ^= 1;
    assert!(refused(wrong));
}

#[test]
fn a_block_of_a_file_proves() {
    let file: Vec<u8> = (0..5000_u32).flat_map(u32::to_le_bytes).collect();
    let tree = Tree::read(&file[..], shape("merkle-4x2048")).expect("fits");
    assert_eq!(tree.blocks(), 10);
    proves_and_verifies(&tree.open(9).expect("the last, short block").into());
}

#[test]
fn a_wrong_root_leaf_or_index_is_refused_before_proving() {
    let tree = Tree::read(&[7; 4096][..], shape("merkle-3x1024")).expect("fits");
    let opening = tree.open(2).expect("present");
    let mut wrong = opening.clone();
    wrong.root += Scalar::from(1);
    assert!(refused(wrong));
    let mut wrong = opening.clone();
    wrong.leaf += Scalar::from(1);
    assert!(refused(wrong));
    let mut wrong = opening;
    wrong.index = 3 + 8;
    assert!(refused(wrong));
}

#[test]
fn a_key_of_another_shape_is_refused() {
    let key = setup(shape("mimc-2^4")).expect("set up");
    let instance = mimc::Preimage::new(5, Scalar::from(3)).expect("in range").into();
    let error = prove(&key, &instance).expect_err("wrong key");
    assert!(matches!(error, ProveError::WrongKey { .. }));
    assert_eq!(
        error.to_string(),
        "key is for mimc-2^4, the instance is mimc-2^5: make a key with `prover setup mimc-2^5`"
    );
}
