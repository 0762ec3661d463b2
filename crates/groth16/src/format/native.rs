//! Our own JSON.
//!
//! A proof file is
//! `{"schema_version":1,"protocol":"groth16","curve":"bls12-381","circuit":"mimc-2^12","proofs":[{"a":…,"b":…,"c":…}]}`,
//! with one proof for each partition. A verifying key has `key_kind` (`development` or `ceremony`), `alpha_g1`,
//! `beta_g2`, `gamma_g2`, `delta_g2` and `ic` instead of `proofs`; public inputs have `inputs`, for each proof a list.
//! `circuit` and `key_kind` are null where they are unknown.
//!
//! Points are compressed, in the encoding of Zcash and the IETF's pairing-friendly curves draft (48 bytes in G1, 96 in
//! G2, x big-endian with three flag bits on top): every point has one spelling, and no y that could be off the curve.
//! Scalars are 32 bytes big-endian. All of it in lower-case hexadecimal, without prefix.

use ark_bls12_381::{Fq, Fq2, G1Affine, G2Affine};
use ark_serialize::CanonicalSerialize;
use serde::{Deserialize, Serialize};

use super::number::{from_be_bytes, hex_bytes, hex_scalar, scalar_to_hex};
use super::{Format, FormatError, ProofFile, PublicFile, parse, quoted, render};
use crate::key::KeyKind;
use crate::point::{PointError, check_g1, check_g2};
use crate::{Proof, Scalar, Shape, VerifyingKey, VerifyingKeyError, VerifyingPoints};

/// The version written, and the only one read.
pub const SCHEMA_VERSION: u64 = 1;
const PROTOCOL: &str = "groth16";
const CURVE: &str = "bls12-381";

const G1_BYTES: usize = 48;
const G2_BYTES: usize = 96;

/// Flag bits of the first byte.
const COMPRESSED: u8 = 0x80;
const INFINITY: u8 = 0x40;
const LARGER_Y: u8 = 0x20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProofDocument {
    schema_version: u64,
    protocol: String,
    curve: String,
    circuit: Option<String>,
    proofs: Vec<ProofPoints>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProofPoints {
    a: String,
    b: String,
    c: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyDocument {
    schema_version: u64,
    protocol: String,
    curve: String,
    circuit: Option<String>,
    key_kind: Option<String>,
    alpha_g1: String,
    beta_g2: String,
    gamma_g2: String,
    delta_g2: String,
    ic: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InputsDocument {
    schema_version: u64,
    protocol: String,
    curve: String,
    circuit: Option<String>,
    inputs: Vec<Vec<String>>,
}

/// Reads a proof file.
///
/// # Errors
/// [`FormatError`], which names the field.
pub fn read_proofs(text: &str) -> Result<ProofFile, FormatError> {
    let document: ProofDocument = parse("proof", Format::Native, text)?;
    let shape = preamble(document.schema_version, &document.protocol, &document.curve, document.circuit)?;
    if document.proofs.is_empty() {
        return Err(FormatError::Length { field: "proofs".to_owned(), found: 0, expected: 1 });
    }
    let proofs = document.proofs.iter().enumerate().map(|(index, points)| {
        let field = |name: &str| format!("proofs[{index}].{name}");
        let a = g1_from_hex(&points.a, &field("a"))?;
        let b = g2_from_hex(&points.b, &field("b"))?;
        Ok(Proof::computed(a, b, g1_from_hex(&points.c, &field("c"))?))
    });
    Ok(ProofFile { format: Format::Native, shape, proofs: proofs.collect::<Result<_, FormatError>>()? })
}

/// Reads a verifying key.
///
/// # Errors
/// [`FormatError`], which names the field.
pub fn read_verifying_key(text: &str) -> Result<VerifyingKey, FormatError> {
    let document: KeyDocument = parse("verifying key", Format::Native, text)?;
    let shape = preamble(document.schema_version, &document.protocol, &document.curve, document.circuit)?;
    let kind = document.key_kind.as_deref().map(key_kind).transpose()?;
    let ic = document.ic.iter().enumerate().map(|(index, point)| g1_from_hex(point, &format!("ic[{index}]")));
    let points = VerifyingPoints {
        alpha_g1: g1_from_hex(&document.alpha_g1, "alpha_g1")?,
        beta_g2: g2_from_hex(&document.beta_g2, "beta_g2")?,
        gamma_g2: g2_from_hex(&document.gamma_g2, "gamma_g2")?,
        delta_g2: g2_from_hex(&document.delta_g2, "delta_g2")?,
        ic: ic.collect::<Result<_, _>>()?,
    };
    if let Some(shape) = shape {
        let expected = shape.public_inputs() + 1;
        if points.ic.len() != expected {
            return Err(FormatError::Length { field: "ic".to_owned(), found: points.ic.len(), expected });
        }
    }
    VerifyingKey::new(points, shape, kind).map_err(key_error)
}

/// Reads public inputs.
///
/// # Errors
/// [`FormatError`], which names the field.
pub fn read_public_inputs(text: &str) -> Result<PublicFile, FormatError> {
    let document: InputsDocument = parse("list of public inputs", Format::Native, text)?;
    let shape = preamble(document.schema_version, &document.protocol, &document.curve, document.circuit)?;
    if document.inputs.is_empty() {
        return Err(FormatError::Length { field: "inputs".to_owned(), found: 0, expected: 1 });
    }
    let inputs = document.inputs.iter().enumerate().map(|(proof, inputs)| {
        let inputs = inputs.iter().enumerate();
        inputs.map(|(index, input)| hex_scalar(input, &format!("inputs[{proof}][{index}]"))).collect()
    });
    Ok(PublicFile { format: Format::Native, shape, inputs: inputs.collect::<Result<_, FormatError>>()? })
}

/// Writes proofs of one shape.
pub fn write_proofs(shape: Option<Shape>, proofs: &[Proof]) -> String {
    let points = |proof: &Proof| ProofPoints {
        a: point_to_hex(proof.a()),
        b: point_to_hex(proof.b()),
        c: point_to_hex(proof.c()),
    };
    render(&ProofDocument {
        schema_version: SCHEMA_VERSION,
        protocol: PROTOCOL.to_owned(),
        curve: CURVE.to_owned(),
        circuit: shape.map(|shape| shape.to_string()),
        proofs: proofs.iter().map(points).collect(),
    })
}

/// Writes a verifying key.
pub fn write_verifying_key(key: &VerifyingKey) -> String {
    let points = key.points();
    render(&KeyDocument {
        schema_version: SCHEMA_VERSION,
        protocol: PROTOCOL.to_owned(),
        curve: CURVE.to_owned(),
        circuit: key.shape().map(|shape| shape.to_string()),
        key_kind: key.kind().map(|kind| kind.as_str().to_owned()),
        alpha_g1: point_to_hex(&points.alpha_g1),
        beta_g2: point_to_hex(&points.beta_g2),
        gamma_g2: point_to_hex(&points.gamma_g2),
        delta_g2: point_to_hex(&points.delta_g2),
        ic: points.ic.iter().map(point_to_hex).collect(),
    })
}

/// Writes for each proof its public inputs.
pub fn write_public_inputs(shape: Option<Shape>, inputs: &[Vec<Scalar>]) -> String {
    render(&InputsDocument {
        schema_version: SCHEMA_VERSION,
        protocol: PROTOCOL.to_owned(),
        curve: CURVE.to_owned(),
        circuit: shape.map(|shape| shape.to_string()),
        inputs: inputs.iter().map(|inputs| inputs.iter().map(scalar_to_hex).collect()).collect(),
    })
}

/// What all three documents begin with.
fn preamble(
    schema_version: u64,
    protocol: &str,
    curve: &str,
    circuit: Option<String>,
) -> Result<Option<Shape>, FormatError> {
    supported("schema_version", &schema_version.to_string(), &SCHEMA_VERSION.to_string())?;
    supported("protocol", protocol, PROTOCOL)?;
    supported("curve", curve, CURVE)?;
    let Some(text) = circuit else { return Ok(None) };
    let unsupported =
        |expected| FormatError::Unsupported { field: "circuit".to_owned(), found: quoted(&text), expected };
    let shape: Shape = text.parse().map_err(|error| unsupported(format!("a known circuit ({error})")))?;
    if shape.to_string() != text {
        return Err(unsupported(format!("its canonical spelling `{shape}`")));
    }
    Ok(Some(shape))
}

fn key_kind(text: &str) -> Result<KeyKind, FormatError> {
    let kinds = [KeyKind::Development, KeyKind::Ceremony];
    kinds.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| FormatError::Unsupported {
        field: "key_kind".to_owned(),
        found: quoted(text),
        expected: "`development` or `ceremony`".to_owned(),
    })
}

/// Refuses a field whose value is not the one that this reader knows.
pub(super) fn supported(field: &str, found: &str, expected: &str) -> Result<(), FormatError> {
    if found == expected {
        return Ok(());
    }
    Err(FormatError::Unsupported {
        field: field.to_owned(),
        found: quoted(found),
        expected: format!("`{expected}`"),
    })
}

/// The points of a key were read one by one before: this repeats their answer under the key's own names.
pub(super) fn key_error(error: VerifyingKeyError) -> FormatError {
    match error {
        VerifyingKeyError::Point { point, source } => FormatError::Point { field: point, source },
        VerifyingKeyError::NoInputPoints => {
            FormatError::Length { field: "ic".to_owned(), found: 0, expected: 1 }
        }
    }
}

fn point_to_hex(point: &impl CanonicalSerialize) -> String {
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    let _ = point.serialize_compressed(&mut bytes);
    hex::encode(bytes)
}

fn g1_from_hex(text: &str, field: &str) -> Result<G1Affine, FormatError> {
    let mut bytes = hex_bytes::<G1_BYTES>(text, field, "write 96 lower-case hexadecimal digits")?;
    let larger_y = take_flags(&mut bytes, field)?;
    let x = coordinate(&bytes, field)?;
    let point = G1Affine::get_point_from_x_unchecked(x, larger_y).ok_or(PointError::NotOnCurve);
    let checked = point.and_then(|point| check_g1(&point).map(|()| point));
    checked.map_err(|source| FormatError::Point { field: field.to_owned(), source })
}

fn g2_from_hex(text: &str, field: &str) -> Result<G2Affine, FormatError> {
    let mut bytes = hex_bytes::<G2_BYTES>(text, field, "write 192 lower-case hexadecimal digits")?;
    let larger_y = take_flags(&mut bytes, field)?;
    let (c1, c0) = bytes.split_at(G1_BYTES);
    let x = Fq2::new(coordinate(c0, field)?, coordinate(c1, field)?);
    let point = G2Affine::get_point_from_x_unchecked(x, larger_y).ok_or(PointError::NotOnCurve);
    let checked = point.and_then(|point| check_g2(&point).map(|()| point));
    checked.map_err(|source| FormatError::Point { field: field.to_owned(), source })
}

/// Removes the flags from the first byte and says whether y is the larger of the two.
fn take_flags(bytes: &mut [u8], field: &str) -> Result<bool, FormatError> {
    let Some(first) = bytes.first_mut() else { return Ok(false) };
    let flags = *first & (COMPRESSED | INFINITY | LARGER_Y);
    *first ^= flags;
    if flags & COMPRESSED == 0 {
        let rule = "write the compressed point, whose highest bit is set";
        return Err(FormatError::NotCanonical { field: field.to_owned(), rule });
    }
    if flags & INFINITY != 0 {
        return Err(FormatError::Point { field: field.to_owned(), source: PointError::Infinity });
    }
    Ok(flags & LARGER_Y != 0)
}

fn coordinate(bytes: &[u8], field: &str) -> Result<Fq, FormatError> {
    from_be_bytes::<Fq, 6>(bytes).ok_or_else(|| FormatError::CoordinateTooLarge { field: field.to_owned() })
}
