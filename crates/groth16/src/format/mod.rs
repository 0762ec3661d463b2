//! Proofs, verifying keys and public inputs as JSON: ours ([`native`]) and that of [`snarkjs`].
//!
//! What is read may be either; the content says which. Reading is strict, since two readers that understand one file
//! differently are a hole: every number has one spelling, unknown and repeated fields are refused, and what comes out
//! has been checked (points on the curve, in the subgroup, not infinity; numbers below their modulus).

mod number;

pub mod native;
pub mod snarkjs;

use std::fmt;

use serde_json::Value;

use crate::point::PointError;
use crate::{Proof, Scalar, Shape, VerifyingKey};

/// The two families of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Ours: versioned, compressed points in hexadecimal, several proofs a file.
    Native,
    /// snarkjs's: decimal coordinates, one proof a file.
    Snarkjs,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Snarkjs => "snarkjs",
        })
    }
}

/// Why a text is not accepted, or not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// No JSON, a field missing, unknown, repeated or of the wrong type.
    #[error("not a {what} in {format} format: {reason}")]
    Structure {
        /// What was being read.
        what: &'static str,
        /// In which format.
        format: Format,
        /// What the parser said, with line and column.
        reason: String,
    },
    /// Neither format.
    #[error("not a {what}: neither a native nor a snarkjs document ({reason})")]
    Unrecognised {
        /// What was being read.
        what: &'static str,
        /// What is missing.
        reason: String,
    },
    /// A field has a value that this reader does not support.
    #[error("{field} is `{found}`, supported is {expected}")]
    Unsupported {
        /// The field.
        field: String,
        /// Its value.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A list has the wrong length.
    #[error("{field} has {found} elements, it should have {expected}")]
    Length {
        /// The field.
        field: String,
        /// Elements that it has.
        found: usize,
        /// Elements that it should have.
        expected: usize,
    },
    /// A number is not spelled in the one accepted way.
    #[error("{field} is not a canonical number: {rule}")]
    NotCanonical {
        /// The field.
        field: String,
        /// The rule broken.
        rule: &'static str,
    },
    /// A coordinate is not below p.
    #[error("{field} is not below the base field's modulus p")]
    CoordinateTooLarge {
        /// The field.
        field: String,
    },
    /// A public input is not below r; x and x + r would be one input with two spellings.
    #[error("{field} is not below the scalar field's modulus r")]
    InputTooLarge {
        /// The field.
        field: String,
    },
    /// A point may not enter a pairing.
    #[error("{field}: {source}")]
    Point {
        /// The field.
        field: String,
        /// Why.
        source: PointError,
    },
    /// snarkjs has one proof a file.
    #[error("{count} proofs do not fit one snarkjs file: write one file for each, or use the native format")]
    ManyInSnarkjs {
        /// Proofs, or lists of inputs, given.
        count: usize,
    },
}

/// The proofs of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofFile {
    /// The format it was in.
    pub format: Format,
    /// The circuit it is for, where the file says so (native).
    pub shape: Option<Shape>,
    /// The proofs, one for each partition; at least one.
    pub proofs: Vec<Proof>,
}

/// The public inputs of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicFile {
    /// The format it was in.
    pub format: Format,
    /// The circuit it is for, where the file says so (native).
    pub shape: Option<Shape>,
    /// For each proof its inputs; at least one list.
    pub inputs: Vec<Vec<Scalar>>,
}

/// Reads proofs in either format.
///
/// # Errors
/// [`FormatError`], which names the field.
pub fn read_proofs(text: &str) -> Result<ProofFile, FormatError> {
    match recognise("proof", text, "pi_a")? {
        Format::Native => native::read_proofs(text),
        Format::Snarkjs => {
            let proof = snarkjs::read_proof(text)?;
            Ok(ProofFile { format: Format::Snarkjs, shape: None, proofs: vec![proof] })
        }
    }
}

/// Reads a verifying key in either format.
///
/// # Errors
/// [`FormatError`], which names the field.
pub fn read_verifying_key(text: &str) -> Result<VerifyingKey, FormatError> {
    match recognise("verifying key", text, "vk_alpha_1")? {
        Format::Native => native::read_verifying_key(text),
        Format::Snarkjs => snarkjs::read_verifying_key(text),
    }
}

/// Reads public inputs in either format.
///
/// # Errors
/// [`FormatError`], which names the field.
pub fn read_public_inputs(text: &str) -> Result<PublicFile, FormatError> {
    match recognise("list of public inputs", text, "")? {
        Format::Native => native::read_public_inputs(text),
        Format::Snarkjs => {
            let inputs = snarkjs::read_public_inputs(text)?;
            Ok(PublicFile { format: Format::Snarkjs, shape: None, inputs: vec![inputs] })
        }
    }
}

/// Writes proofs of one shape; `shape` may be unknown.
///
/// # Errors
/// [`FormatError::ManyInSnarkjs`] unless it is exactly one for snarkjs.
pub fn write_proofs(format: Format, shape: Option<Shape>, proofs: &[Proof]) -> Result<String, FormatError> {
    match (format, proofs) {
        (Format::Native, proofs) => Ok(native::write_proofs(shape, proofs)),
        (Format::Snarkjs, [proof]) => Ok(snarkjs::write_proof(proof)),
        (Format::Snarkjs, proofs) => Err(FormatError::ManyInSnarkjs { count: proofs.len() }),
    }
}

/// Writes a verifying key.
pub fn write_verifying_key(format: Format, key: &VerifyingKey) -> String {
    match format {
        Format::Native => native::write_verifying_key(key),
        Format::Snarkjs => snarkjs::write_verifying_key(key),
    }
}

/// Writes for each proof its public inputs.
///
/// # Errors
/// [`FormatError::ManyInSnarkjs`] unless it is exactly one list for snarkjs.
pub fn write_public_inputs(
    format: Format,
    shape: Option<Shape>,
    inputs: &[Vec<Scalar>],
) -> Result<String, FormatError> {
    match (format, inputs) {
        (Format::Native, inputs) => Ok(native::write_public_inputs(shape, inputs)),
        (Format::Snarkjs, [inputs]) => Ok(snarkjs::write_public_inputs(inputs)),
        (Format::Snarkjs, inputs) => Err(FormatError::ManyInSnarkjs { count: inputs.len() }),
    }
}

/// Native documents have a `schema_version`; snarkjs's have `marker`, or are a list where there is no marker.
fn recognise(what: &'static str, text: &str, marker: &str) -> Result<Format, FormatError> {
    let unrecognised = |reason: String| FormatError::Unrecognised { what, reason };
    let value: Value =
        serde_json::from_str(text).map_err(|error| unrecognised(quoted(&error.to_string())))?;
    match value {
        Value::Object(fields) if fields.contains_key("schema_version") => Ok(Format::Native),
        Value::Object(fields) if fields.contains_key(marker) => Ok(Format::Snarkjs),
        Value::Array(_) if marker.is_empty() => Ok(Format::Snarkjs),
        _ => Err(unrecognised(match marker {
            "" => "no schema_version, and no list".to_owned(),
            marker => format!("no schema_version, and no {marker}"),
        })),
    }
}

/// Parses one document of `format`; what serde refuses names field, line and column.
fn parse<'a, T: serde::Deserialize<'a>>(
    what: &'static str,
    format: Format,
    text: &'a str,
) -> Result<T, FormatError> {
    serde_json::from_str(text).map_err(|error| FormatError::Structure {
        what,
        format,
        reason: quoted(&error.to_string()),
    })
}

/// Text from a file as it may stand in an error: on one line, and not longer than a line or two.
fn quoted(text: &str) -> String {
    const MOST: usize = 200;
    let shown = text.chars().take(MOST).map(|char| if char.is_control() { '\u{fffd}' } else { char });
    let shown: String = shown.collect();
    if text.chars().nth(MOST).is_some() { shown + "…" } else { shown }
}

/// Writes one document; the types here have no map keys or values that JSON lacks, so it cannot fail.
fn render<T: serde::Serialize>(document: &T) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
