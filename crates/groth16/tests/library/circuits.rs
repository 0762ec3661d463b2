//! Every circuit proves what it says, and nothing else.

use ark_ff::UniformRand;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use sexton_groth16::circuit::{merkle, mimc, poseidon, sha256};
use sexton_groth16::{
    Instance, ProveError, ProvingKey, Scalar, SynthesisFailure, Tree, TreeError, prove, setup, synthesize,
};

use crate::shape;

fn refused(instance: impl Into<Instance>) -> bool {
    matches!(synthesize(&instance.into()), Err(SynthesisFailure::Unsatisfied { .. }))
}

fn proves_and_verifies(instance: &Instance) -> ProvingKey {
    let key = setup(instance.shape()).expect("set up");
    let proven = prove(&key, instance).expect("proves");
    println!("{}: {:?} {:?}", instance.shape(), key.size(), proven.timings);
    assert_eq!(proven.public_inputs, instance.public_inputs());
    key.verifying_key().verify(&proven.proof, &proven.public_inputs).expect("verifies");
    key
}

#[test]
fn a_mimc_chain_of_any_size_proves_and_fills_its_domain() {
    let mut rng = StdRng::seed_from_u64(1);
    for log2_size in [4, 8, 12] {
        let instance = mimc::Preimage::new(log2_size, Scalar::rand(&mut rng)).expect("in range").into();
        let key = proves_and_verifies(&instance);
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
    // The path of 2 in a tree of 8 leaves, under another name.
    wrong.index = 2 + 8;
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

#[test]
fn one_sha256_block_fits_a_domain_of_2_to_15() {
    let instance = sha256::Preimage::new(*b"").expect("one block").into();
    let synthesized = synthesize(&instance).expect("satisfied");
    assert!(synthesized.constraints() + 3 <= 1 << 15, "{} constraints", synthesized.constraints());
}

#[test]
fn a_merkle_level_costs_239_constraints() {
    let constraints = |text: &str| {
        let tree = Tree::read(&b"x"[..], shape(text)).expect("fits");
        synthesize(&tree.open(0).expect("present").into()).expect("satisfied").constraints()
    };
    assert_eq!(constraints("merkle-9") - constraints("merkle-8"), 239);
}

#[test]
fn the_empty_file_is_one_empty_block_and_the_rest_of_a_tree_is_padding() {
    let empty = Tree::read(&b""[..], shape("merkle-3")).expect("fits");
    assert_eq!(empty.blocks(), 1);
    assert_eq!(empty.open(0).expect("present").leaf, merkle::leaf_of_block(b""));
    proves_and_verifies(&empty.open(0).expect("present").into());
    assert!(matches!(empty.open(1), Err(TreeError::NoSuchBlock { index: 1, blocks: 1 })));

    // A file whose blocks end with the file has no empty block after them.
    let exact = Tree::read(&[0; 8192][..], shape("merkle-1")).expect("fits");
    assert_eq!(exact.blocks(), 2);
}

#[test]
fn a_root_is_the_one_computed_by_hand() {
    let leaves: Vec<Scalar> = [&b"ab"[..], b"cd", b"e"].map(merkle::leaf_of_block).into();
    let root = poseidon::compress(
        poseidon::compress(leaves[0], leaves[1]),
        poseidon::compress(leaves[2], merkle::PADDING_LEAF),
    );
    let tree = Tree::read(&b"abcde"[..], shape("merkle-2x2")).expect("fits");
    assert_eq!(tree.root(), root);
    let deeper = Tree::read(&b"abcde"[..], shape("merkle-3x2")).expect("fits");
    let padding = poseidon::compress(merkle::PADDING_LEAF, merkle::PADDING_LEAF);
    assert_eq!(deeper.root(), poseidon::compress(root, poseidon::compress(padding, padding)));
}

#[test]
fn a_file_with_too_many_blocks_is_refused_without_reading_it_all() {
    let error = Tree::read(std::io::repeat(7), shape("merkle-2x1024")).expect_err("endless");
    assert!(matches!(error, TreeError::TooManyBlocks { depth: 2, block_bytes: 1024 }), "{error}");
}

#[test]
fn a_tree_over_65_536_leaves_takes_seconds() {
    let start = std::time::Instant::now();
    let tree = Tree::read(&vec![1; 1 << 20][..], shape("merkle-16x16")).expect("fits");
    println!("tree of 65,536 leaves: {:?}", start.elapsed());
    assert_eq!(tree.blocks(), 1 << 16);
    assert!(start.elapsed().as_secs() < 60);
}
