//! `prover verify`: says whether a proof is valid.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use sexton_groth16::VerifyingKey;
use sexton_groth16::format::{self, FormatError};
use sexton_model::SCHEMA_VERSION;

use crate::exit::{self, Failure};
use crate::output::print;

/// Largest file read, in bytes: a proof, key or input list of a kind that we know is far smaller.
const FILE_MAX_BYTES: u64 = 16 << 20;

/// Verify a proof against a verifying key and public inputs
///
/// Each file may be in our format or in that of snarkjs; the content says which. Exit code 0: valid. 1: not valid, with
/// the reason. 65 or 66: a file is malformed or cannot be read, so nothing is said about the proof.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The proof
    #[arg(value_name = "PROOF")]
    proof: PathBuf,
    /// The verifying key
    #[arg(long, value_name = "FILE")]
    vk: PathBuf,
    /// The public inputs
    #[arg(long, value_name = "FILE")]
    public: PathBuf,
}

/// What a look at the three files gives.
enum Verdict {
    /// All proofs of the file are valid; so many.
    Valid(usize),
    /// One is not: why.
    Invalid(String),
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let verdict = verdict(arguments)?;
    if json {
        let (valid, reason) = match &verdict {
            Verdict::Valid(_) => (true, None),
            Verdict::Invalid(reason) => (false, Some(reason)),
        };
        print(
            &json!({"schema_version": SCHEMA_VERSION, "proof": arguments.proof, "valid": valid, "reason": reason})
                .to_string(),
        )?;
    } else {
        print(&match &verdict {
            Verdict::Valid(1) => format!("{}: valid", arguments.proof.display()),
            Verdict::Valid(proofs) => format!("{}: valid, {proofs} proofs", arguments.proof.display()),
            Verdict::Invalid(reason) => format!("{}: invalid: {reason}", arguments.proof.display()),
        })?;
    }
    match verdict {
        Verdict::Valid(_) => Ok(()),
        Verdict::Invalid(_) => Err(Failure::new(exit::FAILED, "")),
    }
}

fn verdict(arguments: &Arguments) -> Result<Verdict, Failure> {
    let key = read(&arguments.vk)?;
    let key = format::read_verifying_key(&key).map_err(|error| malformed(&arguments.vk, &error))?;
    let (proof, public) = (read(&arguments.proof)?, read(&arguments.public)?);
    // In this order, so that a malformed file is told whatever the other one holds.
    let (proof, public) = (format::read_proofs(&proof), format::read_public_inputs(&public));
    let proof = match proof {
        Ok(proof) => proof,
        Err(error) if is_refused_value(&error) => return Ok(Verdict::Invalid(error.to_string())),
        Err(error) => return Err(malformed(&arguments.proof, &error)),
    };
    let public = match public {
        Ok(public) => public,
        Err(error) if is_refused_value(&error) => return Ok(Verdict::Invalid(error.to_string())),
        Err(error) => return Err(malformed(&arguments.public, &error)),
    };
    for (what, shape) in [("proof", proof.shape), ("public inputs", public.shape)] {
        if let (Some(shape), Some(of_key)) = (shape, key.shape())
            && shape != of_key
        {
            return Ok(Verdict::Invalid(format!(
                "the {what} say {shape}, the verifying key is for {of_key}"
            )));
        }
    }
    if proof.proofs.len() != public.inputs.len() {
        let (proofs, inputs) = (proof.proofs.len(), public.inputs.len());
        return Ok(Verdict::Invalid(format!("{proofs} proofs with public inputs for {inputs}")));
    }
    Ok(check(&key, &proof.proofs, &public.inputs))
}

fn check(
    key: &VerifyingKey,
    proofs: &[sexton_groth16::Proof],
    inputs: &[Vec<sexton_groth16::Scalar>],
) -> Verdict {
    for (index, (proof, inputs)) in proofs.iter().zip(inputs).enumerate() {
        if let Err(error) = key.verify(proof, inputs) {
            let which = if proofs.len() == 1 {
                String::new()
            } else {
                format!("proof {index} of {}: ", proofs.len())
            };
            return Verdict::Invalid(format!("{which}{error}"));
        }
    }
    Verdict::Valid(proofs.len())
}

/// Well-formed, and not acceptable: a point off the curve, an input that is not below r. That is an answer about the
/// proof, where a malformed file is none.
fn is_refused_value(error: &FormatError) -> bool {
    matches!(
        error,
        FormatError::Point { .. }
            | FormatError::CoordinateTooLarge { .. }
            | FormatError::InputTooLarge { .. }
    )
}

fn malformed(path: &Path, error: &FormatError) -> Failure {
    Failure::new(exit::DATA, format_args!("{}: {error}", path.display()))
}

fn read(path: &Path) -> Result<String, Failure> {
    use std::io::Read;
    let unreadable =
        |error: std::io::Error| Failure::new(exit::NO_INPUT, format_args!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_MAX_BYTES {
        let message = format!("{}: more than 16 MiB, so not one of our files", path.display());
        return Err(Failure::new(exit::DATA, message));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::new(exit::DATA, format_args!("{}: not a text file", path.display())))
}
