//! Our proofs against another implementation: the verification equation computed with blst alone.

use blst::min_pk::{PublicKey, Signature};
use blst::{MultiPoint, blst_fp12, blst_p1_affine, blst_p2_affine};
use serde_json::Value;
use sexton_groth16::format::{self, Format};

use crate::SAMPLE;

/// Takes what our JSON says, not our types: the encoding is under test as well.
struct Document(Value);

impl Document {
    fn bytes(&self, pointer: &str) -> Vec<u8> {
        let text = self.0.pointer(pointer).and_then(Value::as_str).expect("a string");
        hex::decode(text).expect("hexadecimal")
    }

    fn g1(&self, pointer: &str) -> blst_p1_affine {
        PublicKey::key_validate(&self.bytes(pointer)).expect("in G1").into()
    }

    fn g2(&self, pointer: &str) -> blst_p2_affine {
        Signature::sig_validate(&self.bytes(pointer), true).expect("in G2").into()
    }
}

/// e(A, B) = e(α, β) · e(ic₀ + input · ic₁, γ) · e(C, δ).
fn blst_accepts(proof: &Document, key: &Document, inputs: &Document) -> bool {
    let mut scalar = inputs.bytes("/inputs/0/0");
    scalar.reverse();
    let one = [vec![1], vec![0; 31]].concat();
    let ic = [key.g1("/ic/0"), key.g1("/ic/1")];
    let sum = ic[..].mult(&[one, scalar].concat(), 255);
    let sum = blst::min_pk::AggregatePublicKey::from(sum).to_public_key().into();

    let left = blst_fp12::miller_loop(&proof.g2("/proofs/0/b"), &proof.g1("/proofs/0/a"));
    let mut right = blst_fp12::miller_loop(&key.g2("/beta_g2"), &key.g1("/alpha_g1"));
    right *= blst_fp12::miller_loop(&key.g2("/gamma_g2"), &sum);
    right *= blst_fp12::miller_loop(&key.g2("/delta_g2"), &proof.g1("/proofs/0/c"));
    blst_fp12::finalverify(&left, &right)
}

#[test]
fn blst_accepts_our_proof_and_no_other_input() {
    let document = |text: String| Document(serde_json::from_str(&text).expect("JSON"));
    let proven = &SAMPLE.proven;
    let proof = document(format::write_proofs(Format::Native, None, &[proven.proof]).expect("writes"));
    let key = document(format::write_verifying_key(Format::Native, SAMPLE.key.verifying_key()));
    let inputs = |inputs: &[sexton_groth16::Scalar]| {
        document(format::write_public_inputs(Format::Native, None, &[inputs.to_vec()]).expect("writes"))
    };
    assert!(blst_accepts(&proof, &key, &inputs(&proven.public_inputs)));
    let other = proven.public_inputs[0] + sexton_groth16::Scalar::from(1);
    assert!(!blst_accepts(&proof, &key, &inputs(&[other])));
}
