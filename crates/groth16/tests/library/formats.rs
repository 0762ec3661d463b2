//! Both formats are read back, told apart by content, and read strictly.

use serde_json::{Value, json};
use sexton_groth16::format::{self, Format, FormatError};
use sexton_groth16::point::PointError;
use sexton_groth16::{KeyKind, Proof, Scalar};

use crate::SAMPLE;

const BOTH: [Format; 2] = [Format::Native, Format::Snarkjs];

fn proof_text(format: Format) -> String {
    format::write_proofs(format, Some(SAMPLE.key.shape()), &[SAMPLE.proven.proof]).expect("one proof")
}

fn key_text(format: Format) -> String {
    format::write_verifying_key(format, SAMPLE.key.verifying_key())
}

fn inputs_text(format: Format) -> String {
    let inputs = [SAMPLE.proven.public_inputs.clone()];
    format::write_public_inputs(format, Some(SAMPLE.key.shape()), &inputs).expect("one list")
}

/// The document with the value at `pointer` replaced.
fn with(text: &str, pointer: &str, value: Value) -> String {
    let mut document: Value = serde_json::from_str(text).expect("JSON");
    *document.pointer_mut(pointer).expect("present") = value;
    document.to_string()
}

/// The document with one more field.
fn with_field(text: &str, field: &str, value: Value) -> String {
    let mut document: Value = serde_json::from_str(text).expect("JSON");
    document.as_object_mut().expect("an object").insert(field.to_owned(), value);
    document.to_string()
}

fn proof_error(text: &str) -> FormatError {
    format::read_proofs(text).expect_err("refused")
}

fn key_error(text: &str) -> FormatError {
    format::read_verifying_key(text).expect_err("refused")
}

fn inputs_error(text: &str) -> FormatError {
    format::read_public_inputs(text).expect_err("refused")
}

#[test]
fn what_is_written_is_read_back_and_told_apart_by_content() {
    for format in BOTH {
        let proofs = format::read_proofs(&proof_text(format)).expect("proof");
        assert_eq!((proofs.format, proofs.proofs), (format, vec![SAMPLE.proven.proof]));
        let inputs = format::read_public_inputs(&inputs_text(format)).expect("inputs");
        assert_eq!((inputs.format, inputs.inputs), (format, vec![SAMPLE.proven.public_inputs.clone()]));
        let key = format::read_verifying_key(&key_text(format)).expect("key");
        assert_eq!(key.points(), SAMPLE.key.verifying_key().points());
        key.verify(&SAMPLE.proven.proof, &SAMPLE.proven.public_inputs).expect("verifies");
    }
}

#[test]
fn native_documents_say_circuit_and_kind() {
    let key = format::read_verifying_key(&key_text(Format::Native)).expect("key");
    assert_eq!((key.shape(), key.kind()), (Some(SAMPLE.key.shape()), Some(KeyKind::Development)));
    assert!(key_text(Format::Native).contains(r#""key_kind": "development""#));
    let proofs = format::read_proofs(&proof_text(Format::Native)).expect("proof");
    assert_eq!(proofs.shape, Some(SAMPLE.key.shape()));
}

#[test]
fn several_proofs_fit_a_native_file_only() {
    let proofs = [SAMPLE.proven.proof; 3];
    let text = format::write_proofs(Format::Native, None, &proofs).expect("native");
    assert_eq!(format::read_proofs(&text).expect("proofs").proofs, proofs);
    let error = format::write_proofs(Format::Snarkjs, None, &proofs).expect_err("one each");
    assert_eq!(error, FormatError::ManyInSnarkjs { count: 3 });
    let none: [Proof; 0] = [];
    let text = format::write_proofs(Format::Native, None, &none).expect("native");
    assert!(matches!(proof_error(&text), FormatError::Length { found: 0, .. }));
}

#[test]
fn unknown_repeated_and_missing_fields_are_refused() {
    for format in BOTH {
        let errors = [
            proof_error(&with_field(&proof_text(format), "note", json!("x"))),
            key_error(&with_field(&key_text(format), "note", json!("x"))),
        ];
        for error in errors {
            assert!(error.to_string().contains("unknown field `note`"), "{error}");
        }
        let repeated = proof_text(format).replacen('{', r#"{"curve": "bls12-381","#, 1);
        assert!(proof_error(&repeated).to_string().contains("duplicate field `curve`"));
    }
    let error = inputs_error(&with_field(&inputs_text(Format::Native), "note", json!("x")));
    assert!(error.to_string().contains("unknown field `note`"), "{error}");
    let missing = proof_text(Format::Snarkjs).replace("pi_c", "pi_d");
    assert!(matches!(proof_error(&missing), FormatError::Structure { .. }));
    let number = with(&proof_text(Format::Snarkjs), "/pi_a/0", json!(1));
    assert!(matches!(proof_error(&number), FormatError::Structure { .. }));
}

#[test]
fn what_is_neither_format_is_refused() {
    for text in ["", "{}", "[]", "7", "{\"pi_a\"", "\u{0}", "nonsense"] {
        assert!(matches!(proof_error(text), FormatError::Unrecognised { .. }), "{text}");
    }
    assert!(matches!(inputs_error("{}"), FormatError::Unrecognised { .. }));
    // Nesting must not end the process.
    assert!(matches!(proof_error(&"[".repeat(100_000)), FormatError::Unrecognised { .. }));
}

#[test]
fn another_curve_protocol_version_or_circuit_is_refused_by_name() {
    let unsupported = |error: FormatError, name: &str| match error {
        FormatError::Unsupported { field, .. } => assert_eq!(field, name),
        other => panic!("{other}"),
    };
    for format in BOTH {
        unsupported(proof_error(&with(&proof_text(format), "/curve", json!("bn128"))), "curve");
        unsupported(key_error(&with(&key_text(format), "/curve", json!("bn128"))), "curve");
        unsupported(proof_error(&with(&proof_text(format), "/protocol", json!("plonk"))), "protocol");
    }
    let native = proof_text(Format::Native);
    unsupported(proof_error(&with(&native, "/schema_version", json!(2))), "schema_version");
    unsupported(proof_error(&with(&native, "/circuit", json!("keccak-1"))), "circuit");
    unsupported(proof_error(&with(&native, "/circuit", json!("merkle-16x4096"))), "circuit");
    unsupported(key_error(&with(&key_text(Format::Native), "/key_kind", json!("trusted"))), "key_kind");
}

#[test]
fn numbers_in_another_spelling_are_refused_with_their_field() {
    let x = SAMPLE.proven.proof.a().x.to_string();
    for spelling in
        [format!("0{x}"), format!("+{x}"), format!(" {x}"), format!("-{x}"), format!("{x}.0"), String::new()]
    {
        let error = proof_error(&with(&proof_text(Format::Snarkjs), "/pi_a/0", json!(spelling)));
        assert!(matches!(&error, FormatError::NotCanonical { field, .. } if field == "pi_a[0]"), "{error}");
    }
    let native = proof_text(Format::Native);
    let document: Value = serde_json::from_str(&native).expect("JSON");
    let a = document.pointer("/proofs/0/a").and_then(Value::as_str).expect("a string");
    for spelling in [a.to_uppercase(), format!("0x{a}"), a[1..].to_owned(), format!("{a}00"), "zz".repeat(48)]
    {
        let error = proof_error(&with(&native, "/proofs/0/a", json!(spelling)));
        assert!(
            matches!(&error, FormatError::NotCanonical { field, .. } if field == "proofs[0].a"),
            "{error}"
        );
    }
}

#[test]
fn coordinates_from_the_modulus_up_are_refused_with_their_field() {
    use ark_ff::{BigInteger, PrimeField};
    let too_large = |field: &str| FormatError::CoordinateTooLarge { field: field.to_owned() };
    // y + p is the same y, spelled differently.
    let mut alias = SAMPLE.proven.proof.b().y.c0.into_bigint();
    alias.add_with_carry(&ark_bls12_381::Fq::MODULUS);
    let text = with(&proof_text(Format::Snarkjs), "/pi_b/1/0", json!(alias.to_string()));
    assert_eq!(proof_error(&text), too_large("pi_b[1][0]"));
    let text = with(&key_text(Format::Snarkjs), "/IC/1/1", json!(ark_bls12_381::Fq::MODULUS.to_string()));
    assert_eq!(key_error(&text), too_large("IC[1][1]"));

    let x = format!("9f{}", "ff".repeat(47));
    let text = with(&proof_text(Format::Native), "/proofs/0/c", json!(x));
    assert_eq!(proof_error(&text), too_large("proofs[0].c"));
}

#[test]
fn public_inputs_from_the_modulus_up_are_refused_with_their_field() {
    use ark_ff::{BigInteger, PrimeField};
    let mut alias = SAMPLE.proven.public_inputs[0].into_bigint();
    alias.add_with_carry(&Scalar::MODULUS);
    let error = inputs_error(&json!([alias.to_string()]).to_string());
    assert_eq!(error, FormatError::InputTooLarge { field: "[0]".to_owned() });
    let text = with(&inputs_text(Format::Native), "/inputs/0/0", json!(hex::encode(alias.to_bytes_be())));
    assert_eq!(inputs_error(&text), FormatError::InputTooLarge { field: "inputs[0][0]".to_owned() });
}

#[test]
fn infinity_is_refused_in_proofs_and_keys() {
    let infinity = |error: FormatError, name: &str| match error {
        FormatError::Point { field, source: PointError::Infinity } => assert_eq!(field, name),
        other => panic!("{name}: {other}"),
    };
    let (g1, g2) = (json!(["0", "1", "0"]), json!([["0", "0"], ["1", "0"], ["0", "0"]]));
    let (proof, key) = (proof_text(Format::Snarkjs), key_text(Format::Snarkjs));
    infinity(proof_error(&with(&proof, "/pi_a", g1.clone())), "pi_a");
    infinity(proof_error(&with(&proof, "/pi_b", g2.clone())), "pi_b");
    infinity(proof_error(&with(&proof, "/pi_c", g1.clone())), "pi_c");
    infinity(key_error(&with(&key, "/vk_alpha_1", g1.clone())), "vk_alpha_1");
    infinity(key_error(&with(&key, "/vk_gamma_2", g2)), "vk_gamma_2");
    infinity(key_error(&with(&key, "/IC/1", g1)), "IC[1]");

    let (g1, g2) = (format!("c0{}", "00".repeat(47)), format!("c0{}", "00".repeat(95)));
    infinity(proof_error(&with(&proof_text(Format::Native), "/proofs/0/a", json!(g1))), "proofs[0].a");
    infinity(key_error(&with(&key_text(Format::Native), "/delta_g2", json!(g2))), "delta_g2");
    infinity(key_error(&with(&key_text(Format::Native), "/ic/1", json!(g1))), "ic[1]");
}

#[test]
fn points_that_are_not_affine_or_have_another_length_are_refused() {
    let proof = proof_text(Format::Snarkjs);
    let error = proof_error(&with(&proof, "/pi_a/2", json!("2")));
    assert!(matches!(&error, FormatError::NotCanonical { field, .. } if field == "pi_a[2]"), "{error}");
    let error = proof_error(&with(&proof, "/pi_b/2", json!(["1", "1"])));
    assert!(matches!(&error, FormatError::NotCanonical { field, .. } if field == "pi_b[2]"), "{error}");
    let error = proof_error(&with(&proof, "/pi_b/0", json!(["1"])));
    assert_eq!(error, FormatError::Length { field: "pi_b[0]".to_owned(), found: 1, expected: 2 });
    let error = proof_error(&with(&proof, "/pi_c", json!(["1", "2"])));
    assert_eq!(error, FormatError::Length { field: "pi_c".to_owned(), found: 2, expected: 3 });
}

#[test]
fn a_key_has_as_many_points_as_its_circuit_has_inputs() {
    let error = key_error(&with(&key_text(Format::Snarkjs), "/nPublic", json!(2)));
    assert_eq!(error, FormatError::Length { field: "IC".to_owned(), found: 2, expected: 3 });
    let error = key_error(&with(&key_text(Format::Snarkjs), "/nPublic", json!(u64::MAX)));
    assert!(matches!(error, FormatError::Length { .. }), "{error}");
    let error = key_error(&with(&key_text(Format::Native), "/circuit", json!("sha256-1")));
    assert_eq!(error, FormatError::Length { field: "ic".to_owned(), found: 2, expected: 3 });
    let unknown = with(&key_text(Format::Native), "/circuit", Value::Null);
    let error = key_error(&with(&unknown, "/ic", json!([])));
    assert!(matches!(error, FormatError::Length { found: 0, .. }), "{error}");
}

#[test]
fn snarkjs_keys_with_its_redundant_field_are_read() {
    let text = with_field(&key_text(Format::Snarkjs), "vk_alphabeta_12", json!([[["1"]]]));
    format::read_verifying_key(&text).expect("skipped");
    assert!(!key_text(Format::Snarkjs).contains("vk_alphabeta_12"));
}
