//! Nothing but the proof itself passes the verifier.

use ark_bls12_381::{Fq, Fq2, Fr, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{PrimeField, Zero};
use proptest::prelude::*;
use serde_json::{Value, json};
use sexton_groth16::format::{self, Format, FormatError};
use sexton_groth16::point::{self, PointError};
use sexton_groth16::{Proof, ProofError, Scalar, VerifyError, VerifyingKey};

use crate::SAMPLE;

/// A point of small or composite order: r times a point of the whole curve, so that no part of G1 is left in it.
fn g1_outside() -> G1Affine {
    let on_curve = (1_u64..).find_map(|x| G1Affine::get_point_from_x_unchecked(Fq::from(x), false));
    on_curve.map(|point| point.mul_bigint(Fr::MODULUS).into_affine()).expect("the curve has points")
}

fn g2_outside() -> G2Affine {
    let on_curve = (1_u64..)
        .find_map(|x| G2Affine::get_point_from_x_unchecked(Fq2::new(Fq::from(x), Fq::zero()), false));
    on_curve.map(|point| point.mul_bigint(Fr::MODULUS).into_affine()).expect("the curve has points")
}

fn add_g1(point: &G1Affine, other: G1Affine) -> G1Affine {
    (G1Projective::from(*point) + other).into_affine()
}

fn add_g2(point: &G2Affine, other: G2Affine) -> G2Affine {
    (G2Projective::from(*point) + other).into_affine()
}

#[test]
fn points_outside_the_subgroup_are_refused_however_they_come() {
    let (a, b, c) = (SAMPLE.proven.proof.a(), SAMPLE.proven.proof.b(), SAMPLE.proven.proof.c());
    assert!(g1_outside().is_on_curve() && g2_outside().is_on_curve());
    let outside = PointError::OutsideSubgroup;
    // The component outside is killed by the final exponentiation or not: it must not come that far.
    for (bad_a, bad_c) in [(g1_outside(), g1_outside()), (add_g1(a, g1_outside()), add_g1(c, g1_outside()))] {
        assert_eq!(Proof::new(bad_a, *b, *c), Err(ProofError { point: "a", source: outside }));
        assert_eq!(Proof::new(*a, *b, bad_c), Err(ProofError { point: "c", source: outside }));
        assert_eq!(point::g1(bad_a.x, bad_a.y), Err(outside));
    }
    for bad_b in [g2_outside(), add_g2(b, g2_outside())] {
        assert_eq!(Proof::new(*a, bad_b, *c), Err(ProofError { point: "b", source: outside }));
        assert_eq!(point::g2(bad_b.x, bad_b.y), Err(outside));
    }
}

#[test]
fn points_outside_the_subgroup_are_refused_in_files_with_their_field() {
    let refused = |error: FormatError, name: &str| {
        let expected = FormatError::Point { field: name.to_owned(), source: PointError::OutsideSubgroup };
        assert_eq!(error, expected);
    };
    let (g1, g2) = (g1_outside(), g2_outside());
    let g1_json = json!([g1.x.to_string(), g1.y.to_string(), "1"]);
    let g2_json = json!([
        [g2.x.c0.to_string(), g2.x.c1.to_string()],
        [g2.y.c0.to_string(), g2.y.c1.to_string()],
        ["1", "0"]
    ]);
    let proof = format::write_proofs(Format::Snarkjs, None, &[SAMPLE.proven.proof]).expect("writes");
    let key = format::write_verifying_key(Format::Snarkjs, SAMPLE.key.verifying_key());
    let with = |text: &str, field: &str, value: &Value| {
        let mut document: Value = serde_json::from_str(text).expect("JSON");
        document[field] = value.clone();
        document.to_string()
    };
    for (field, value) in [("pi_a", &g1_json), ("pi_b", &g2_json), ("pi_c", &g1_json)] {
        refused(format::read_proofs(&with(&proof, field, value)).expect_err(field), field);
    }
    for (field, value) in [
        ("vk_alpha_1", &g1_json),
        ("vk_beta_2", &g2_json),
        ("vk_gamma_2", &g2_json),
        ("vk_delta_2", &g2_json),
    ] {
        refused(format::read_verifying_key(&with(&key, field, value)).expect_err(field), field);
    }

    let native = format::write_proofs(Format::Native, None, &[SAMPLE.proven.proof]).expect("writes");
    let hex = |point: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        point(&mut bytes);
        json!(hex::encode(bytes))
    };
    use ark_serialize::CanonicalSerialize;
    let a = hex(&|bytes| g1.serialize_compressed(bytes).expect("to memory"));
    let b = hex(&|bytes| g2.serialize_compressed(bytes).expect("to memory"));
    for (field, value) in [("a", a), ("b", b)] {
        let mut document: Value = serde_json::from_str(&native).expect("JSON");
        document["proofs"][0][field] = value;
        refused(format::read_proofs(&document.to_string()).expect_err(field), &format!("proofs[0].{field}"));
    }
}

#[test]
fn points_off_the_curve_are_refused() {
    let a = SAMPLE.proven.proof.a();
    assert_eq!(point::g1(a.x, a.y + Fq::from(1)), Err(PointError::NotOnCurve));
    let b = SAMPLE.proven.proof.b();
    assert_eq!(point::g2(b.x, b.y + Fq2::from(1)), Err(PointError::NotOnCurve));
    // (0, 0) is how EIP-2537 and arkworks spell infinity.
    assert_eq!(point::g1(Fq::zero(), Fq::zero()), Err(PointError::Infinity));
}

#[test]
fn the_number_of_public_inputs_must_be_the_keys() {
    let key = SAMPLE.key.verifying_key();
    let input = SAMPLE.proven.public_inputs[0];
    for inputs in [vec![], vec![input, Scalar::zero()], vec![input; 3]] {
        let error = VerifyError::InputCount { given: inputs.len(), expected: 1 };
        assert_eq!(key.verify(&SAMPLE.proven.proof, &inputs), Err(error));
    }
}

#[test]
fn two_proofs_of_one_instance_differ() {
    let instance = sexton_groth16::circuit::mimc::Preimage::new(5, 42.into()).expect("in range").into();
    let again = sexton_groth16::prove(&SAMPLE.key, &instance).expect("proves");
    assert_eq!(again.public_inputs, SAMPLE.proven.public_inputs);
    assert_ne!(again.proof, SAMPLE.proven.proof);
}

#[test]
fn a_proof_of_another_key_is_rejected() {
    let other = sexton_groth16::setup(SAMPLE.key.shape()).expect("set up");
    let verified = other.verifying_key().verify(&SAMPLE.proven.proof, &SAMPLE.proven.public_inputs);
    assert_eq!(verified, Err(VerifyError::Rejected));
}

#[test]
fn exchanged_points_are_rejected() {
    let proof = &SAMPLE.proven.proof;
    let key = SAMPLE.key.verifying_key();
    let rejects = |a: G1Affine, b: G2Affine, c: G1Affine| {
        let proof = Proof::new(a, b, c).expect("good points");
        assert_eq!(key.verify(&proof, &SAMPLE.proven.public_inputs), Err(VerifyError::Rejected));
    };
    rejects(*proof.c(), *proof.b(), *proof.a());
    rejects(-*proof.a(), *proof.b(), *proof.c());
    rejects(*proof.a(), -*proof.b(), *proof.c());
    rejects(*proof.a(), *proof.b(), -*proof.c());
    rejects(G1Affine::generator(), G2Affine::generator(), G1Affine::generator());
}

/// Whether the three texts are accepted: read without complaint, and verified.
fn accepts(proof: &str, key: &str, inputs: &str) -> bool {
    let key: Option<VerifyingKey> = format::read_verifying_key(key).ok();
    let proof = format::read_proofs(proof).ok().map(|file| file.proofs[0]);
    let inputs = format::read_public_inputs(inputs).ok().map(|file| file.inputs[0].clone());
    matches!((key, proof, inputs), (Some(key), Some(proof), Some(inputs)) if key.verify(&proof, &inputs).is_ok())
}

/// Replaces the `choice`-th digit of a number in `text` by another one.
fn alter_digit(text: &str, choice: usize, by: u8) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    // Digits of field names and of the header are not meant: only long runs are coordinates and scalars.
    let is_digit = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    let long_runs: Vec<usize> = (0..bytes.len())
        .filter(|&index| {
            let before = bytes[..index].iter().rev().take_while(|byte| is_digit(byte)).count();
            let after = bytes[index..].iter().take_while(|byte| is_digit(byte)).count();
            after > 0 && before + after > 30
        })
        .collect();
    let index = long_runs[choice % long_runs.len()];
    let altered = b'0' + (bytes[index] + by) % 10;
    if altered == bytes[index] {
        return None;
    }
    bytes[index] = altered;
    String::from_utf8(bytes).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_altered_digit_of_proof_key_or_inputs_is_refused(
        document in 0..3_usize, native in any::<bool>(), choice in any::<prop::sample::Index>(), by in 1..10_u8,
    ) {
        let format = if native { Format::Native } else { Format::Snarkjs };
        let mut texts = [
            format::write_proofs(format, None, &[SAMPLE.proven.proof]).expect("writes"),
            format::write_verifying_key(format, SAMPLE.key.verifying_key()),
            format::write_public_inputs(format, None, std::slice::from_ref(&SAMPLE.proven.public_inputs)).expect("writes"),
        ];
        prop_assert!(accepts(&texts[0], &texts[1], &texts[2]));
        if let Some(altered) = alter_digit(&texts[document], choice.index(100_000), by) {
            texts[document] = altered;
            prop_assert!(!accepts(&texts[0], &texts[1], &texts[2]));
        }
    }

    #[test]
    fn any_other_point_or_input_is_rejected(which in 0..4_usize, factor in 2..u64::MAX) {
        let (proof, factor) = (&SAMPLE.proven.proof, Scalar::from(factor));
        let (mut a, mut b, mut c) = (*proof.a(), *proof.b(), *proof.c());
        let mut inputs = SAMPLE.proven.public_inputs.clone();
        match which {
            0 => a = (a * factor).into_affine(),
            1 => b = (b * factor).into_affine(),
            2 => c = (c * factor).into_affine(),
            _ => inputs[0] += factor,
        }
        let altered = Proof::new(a, b, c).expect("still in the subgroup");
        prop_assert_eq!(SAMPLE.key.verifying_key().verify(&altered, &inputs), Err(VerifyError::Rejected));
    }

    #[test]
    fn no_text_ends_the_process(index in any::<prop::sample::Index>(), byte in any::<char>(), native in any::<bool>()) {
        let format = if native { Format::Native } else { Format::Snarkjs };
        let key = format::write_verifying_key(format, SAMPLE.key.verifying_key());
        let mut text: Vec<char> = key.chars().collect();
        let index = index.index(text.len());
        text[index] = byte;
        let text: String = text.into_iter().collect();
        if let Ok(read) = format::read_verifying_key(&text) {
            prop_assert_eq!(read.points(), SAMPLE.key.verifying_key().points());
        }
    }
}
