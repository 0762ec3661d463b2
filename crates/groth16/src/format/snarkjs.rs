//! The JSON of snarkjs for curve `bls12381`.
//!
//! Coordinates are decimal strings; a point of G1 is `[x, y, "1"]`, one of G2 `[[x0, x1], [y0, y1], ["1", "0"]]` with
//! x0 the coefficient of 1 and x1 that of u. Public inputs are a list of decimal strings. `vk_alphabeta_12` repeats
//! what α and β say: snarkjs does not need it to verify, so it is not written, and skipped when read.

use ark_bls12_381::{Fq, Fq2, G1Affine, G2Affine};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::native::{key_error, supported};
use super::number::{decimal_fq, decimal_scalar};
use super::{Format, FormatError, parse, render};
use crate::point::{self, PointError};
use crate::{Proof, Scalar, VerifyingKey, VerifyingPoints};

const PROTOCOL: &str = "groth16";
const CURVE: &str = "bls12381";

type G1Json = Vec<String>;
type G2Json = Vec<Vec<String>>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProofDocument {
    pi_a: G1Json,
    pi_b: G2Json,
    pi_c: G1Json,
    protocol: String,
    curve: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyDocument {
    protocol: String,
    curve: String,
    #[serde(rename = "nPublic")]
    n_public: usize,
    vk_alpha_1: G1Json,
    vk_beta_2: G2Json,
    vk_gamma_2: G2Json,
    vk_delta_2: G2Json,
    #[serde(default, skip_serializing)]
    #[allow(dead_code, reason = "named so that it is not refused as unknown")]
    vk_alphabeta_12: Option<IgnoredAny>,
    #[serde(rename = "IC")]
    ic: Vec<G1Json>,
}

/// Reads a proof.
///
/// # Errors
/// [`FormatError`], which names the field: `pi_b[1][0]`, …
pub fn read_proof(text: &str) -> Result<Proof, FormatError> {
    let document: ProofDocument = parse("proof", Format::Snarkjs, text)?;
    supported("protocol", &document.protocol, PROTOCOL)?;
    supported("curve", &document.curve, CURVE)?;
    let a = read_g1(&document.pi_a, "pi_a")?;
    let b = read_g2(&document.pi_b, "pi_b")?;
    Ok(Proof::computed(a, b, read_g1(&document.pi_c, "pi_c")?))
}

/// Reads a verifying key, whose circuit and kind snarkjs does not say.
///
/// # Errors
/// [`FormatError`], which names the field.
pub fn read_verifying_key(text: &str) -> Result<VerifyingKey, FormatError> {
    let document: KeyDocument = parse("verifying key", Format::Snarkjs, text)?;
    supported("protocol", &document.protocol, PROTOCOL)?;
    supported("curve", &document.curve, CURVE)?;
    let expected = document.n_public.saturating_add(1);
    if document.ic.len() != expected {
        return Err(FormatError::Length { field: "IC".to_owned(), found: document.ic.len(), expected });
    }
    let ic = document.ic.iter().enumerate().map(|(index, point)| read_g1(point, &format!("IC[{index}]")));
    let points = VerifyingPoints {
        alpha_g1: read_g1(&document.vk_alpha_1, "vk_alpha_1")?,
        beta_g2: read_g2(&document.vk_beta_2, "vk_beta_2")?,
        gamma_g2: read_g2(&document.vk_gamma_2, "vk_gamma_2")?,
        delta_g2: read_g2(&document.vk_delta_2, "vk_delta_2")?,
        ic: ic.collect::<Result<_, _>>()?,
    };
    VerifyingKey::new(points, None, None).map_err(key_error)
}

/// Reads public inputs.
///
/// # Errors
/// [`FormatError`], which names the field.
pub fn read_public_inputs(text: &str) -> Result<Vec<Scalar>, FormatError> {
    let document: Vec<String> = parse("list of public inputs", Format::Snarkjs, text)?;
    document.iter().enumerate().map(|(index, input)| decimal_scalar(input, &format!("[{index}]"))).collect()
}

/// Writes a proof.
pub fn write_proof(proof: &Proof) -> String {
    render(&ProofDocument {
        pi_a: write_g1(proof.a()),
        pi_b: write_g2(proof.b()),
        pi_c: write_g1(proof.c()),
        protocol: PROTOCOL.to_owned(),
        curve: CURVE.to_owned(),
    })
}

/// Writes a verifying key.
pub fn write_verifying_key(key: &VerifyingKey) -> String {
    let points = key.points();
    render(&KeyDocument {
        protocol: PROTOCOL.to_owned(),
        curve: CURVE.to_owned(),
        n_public: key.public_inputs(),
        vk_alpha_1: write_g1(&points.alpha_g1),
        vk_beta_2: write_g2(&points.beta_g2),
        vk_gamma_2: write_g2(&points.gamma_g2),
        vk_delta_2: write_g2(&points.delta_g2),
        vk_alphabeta_12: None,
        ic: points.ic.iter().map(write_g1).collect(),
    })
}

/// Writes public inputs.
pub fn write_public_inputs(inputs: &[Scalar]) -> String {
    render(&inputs.iter().map(Scalar::to_string).collect::<Vec<_>>())
}

fn read_g1(json: &[String], field: &str) -> Result<G1Affine, FormatError> {
    let [x, y, z] = elements(json, field)?;
    let x = decimal_fq(x, &format!("{field}[0]"))?;
    let y = decimal_fq(y, &format!("{field}[1]"))?;
    affine(decimal_fq(z, &format!("{field}[2]"))? == Fq::from(1), z == "0", field)?;
    point::g1(x, y).map_err(|source| FormatError::Point { field: field.to_owned(), source })
}

fn read_g2(json: &[Vec<String>], field: &str) -> Result<G2Affine, FormatError> {
    let [x, y, z] = elements(json, field)?;
    let x = read_fq2(x, &format!("{field}[0]"))?;
    let y = read_fq2(y, &format!("{field}[1]"))?;
    let z = read_fq2(z, &format!("{field}[2]"))?;
    affine(z == Fq2::from(1), z == Fq2::from(0), field)?;
    point::g2(x, y).map_err(|source| FormatError::Point { field: field.to_owned(), source })
}

fn read_fq2(json: &[String], field: &str) -> Result<Fq2, FormatError> {
    let [c0, c1] = elements(json, field)?;
    Ok(Fq2::new(decimal_fq(c0, &format!("{field}[0]"))?, decimal_fq(c1, &format!("{field}[1]"))?))
}

/// The third coordinate: one for a point, zero for infinity; anything else would spell the same point differently.
fn affine(is_one: bool, is_zero: bool, field: &str) -> Result<(), FormatError> {
    if is_one {
        Ok(())
    } else if is_zero {
        Err(FormatError::Point { field: field.to_owned(), source: PointError::Infinity })
    } else {
        Err(FormatError::NotCanonical {
            field: format!("{field}[2]"),
            rule: "write affine points, with 1 here",
        })
    }
}

fn elements<'a, T, const N: usize>(json: &'a [T], field: &str) -> Result<&'a [T; N], FormatError> {
    let wrong_length = || FormatError::Length { field: field.to_owned(), found: json.len(), expected: N };
    json.try_into().map_err(|_| wrong_length())
}

fn write_g1(point: &G1Affine) -> G1Json {
    vec![point.x.to_string(), point.y.to_string(), "1".to_owned()]
}

fn write_g2(point: &G2Affine) -> G2Json {
    let fq2 = |element: Fq2| vec![element.c0.to_string(), element.c1.to_string()];
    vec![fq2(point.x), fq2(point.y), fq2(Fq2::from(1))]
}
