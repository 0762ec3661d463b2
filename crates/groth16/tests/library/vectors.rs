//! What others made: a circom circuit proved by snarkjs, and the points of EIP-2537.

use std::fs;

use ark_bls12_381::G2Affine;
use ark_ec::AffineRepr;
use ark_ff::{BigInt, BigInteger};
use serde_json::{Value, json};
use sexton_groth16::Scalar;
use sexton_groth16::format::{self, FormatError};
use sexton_groth16::point::PointError;

use crate::vector;

#[test]
fn a_snarkjs_proof_of_a_circom_circuit_verifies_and_no_other_input_does() {
    let Some(folder) = vector("circom-multiplier2") else { return };
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    let key = format::read_verifying_key(&read("verification_key.json")).expect("key");
    let proofs = format::read_proofs(&read("circom.proof")).expect("proof").proofs;
    let inputs = format::read_public_inputs(&read("public.json")).expect("inputs").inputs;
    assert_eq!(inputs, [[Scalar::from(33)]]);
    key.verify(&proofs[0], &inputs[0]).expect("verifies");
    key.verify(&proofs[0], &[Scalar::from(34)]).expect_err("another product");
}

/// A snarkjs proof with one point of G1 from a vector, as hexadecimal (two coordinates of 64 bytes).
fn proof_with(point: &str) -> Result<(), FormatError> {
    let coordinate = |text: &str| {
        let mut number = BigInt::<8>::zero();
        for digit in text.chars() {
            number <<= 4;
            number.add_with_carry(&BigInt::from(digit.to_digit(16).expect("hexadecimal")));
        }
        number.to_string()
    };
    let (x, y) = point.split_at(128);
    let point = json!([coordinate(x), coordinate(y), "1"]);
    let b = G2Affine::generator();
    let fq2 = |element: ark_bls12_381::Fq2| json!([element.c0.to_string(), element.c1.to_string()]);
    let proof = json!({
        "pi_a": point, "pi_b": [fq2(b.x), fq2(b.y), ["1", "0"]], "pi_c": point,
        "protocol": "groth16", "curve": "bls12381",
    });
    format::read_proofs(&proof.to_string()).map(|_| ())
}

fn cases(name: &str) -> Vec<(String, String)> {
    let Some(path) = vector(name) else { return Vec::new() };
    let cases: Vec<Value> = serde_json::from_str(&fs::read_to_string(path).expect(name)).expect("JSON");
    let text = |case: &Value, field: &str| case[field].as_str().expect("text").to_owned();
    cases.iter().map(|case| (text(case, "Name"), text(case, "Input"))).collect()
}

#[test]
fn points_of_eip_2537_are_read() {
    for name in ["eip2537-mul_G1_bls.json", "eip2537-msm_G1_bls.json"] {
        for (name, input) in cases(name) {
            // Pairs of a point (two coordinates of 64 bytes) and a scalar (32 bytes); infinity is all zeros.
            for pair in 0..input.len() / 320 {
                let point = &input[pair * 320..][..256];
                let infinity = point.bytes().all(|digit| digit == b'0');
                assert_eq!(proof_with(point).is_ok(), !infinity, "{name}");
            }
        }
    }
}

#[test]
fn points_that_eip_2537_refuses_are_refused_for_the_same_reason() {
    for (name, input) in cases("eip2537-fail-msm_G1_bls.json") {
        if input.len() != 320 {
            continue;
        }
        let error = proof_with(&input[..256]).expect_err(&name);
        let point = |source| FormatError::Point { field: "pi_a".to_owned(), source };
        match name.trim_start_matches("bls_g1msm_") {
            "invalid_field_element" | "violate_top_bytes" => {
                assert!(matches!(error, FormatError::CoordinateTooLarge { .. }), "{name}: {error}");
            }
            "point_not_on_curve" | "point_in_correct_subgroup_invalid_curve" => {
                assert_eq!(error, point(PointError::NotOnCurve), "{name}");
            }
            "g1_not_in_correct_subgroup" => assert_eq!(error, point(PointError::OutsideSubgroup), "{name}"),
            other => panic!("new vector {other}: {error}"),
        }
    }
}
