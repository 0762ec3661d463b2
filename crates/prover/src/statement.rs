//! What is to be proved, as a client or a command line gives it: checked at once, computed later.
//!
//! Reading a [`Statement`] is cheap and tells everything that can be told of the inputs themselves; a server does it
//! before it accepts a job. [`Statement::instance`] computes what the circuit needs (a chain of 2^24 rounds, a tree over
//! a large file) and belongs on a worker.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use ark_ff::PrimeField;
use serde::Deserialize;
use serde_json::{Value, json};
use sexton_groth16::circuit::{mimc, sha256};
use sexton_groth16::shape::DEFAULT_BLOCK_BYTES;
use sexton_groth16::tree::{Tree, TreeError};
use sexton_groth16::{Instance, Scalar, Shape, ShapeError};
use sexton_model::units::Bytes;
use sha2::{Digest, Sha512};

/// The circuits, by name.
pub const CIRCUITS: [&str; 3] = ["mimc", "sha256", "merkle"];

/// Why inputs make no statement, or a statement no instance.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// The circuit's name is not one of ours.
    #[error("unknown circuit {0:?}: known are mimc, sha256 and merkle")]
    UnknownCircuit(String),
    /// The inputs do not have the names or types of that circuit.
    #[error("inputs of {circuit}: {problem}; give {expected}")]
    Inputs {
        /// The circuit.
        circuit: &'static str,
        /// What serde or we found.
        problem: String,
        /// What it takes.
        expected: &'static str,
    },
    /// The size is not supported.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Not `2^K`.
    #[error("{0:?} is not a circuit size: write a power of two like 2^12 (2^4 to 2^24)")]
    Size(String),
    /// Not a block size.
    #[error("{0}")]
    BlockSize(String),
    /// The operating system gives no random numbers.
    #[error("no random numbers from the operating system: {0}")]
    Random(String),
    /// A file given by path is not for this client.
    #[error("inputs of merkle: a file is read only for clients of the unix socket, not over TCP")]
    FileNotAllowed,
    /// The path is not absolute, so it would depend on the folder that the server was started in.
    #[error("{0}: not an absolute path")]
    RelativePath(PathBuf),
    /// The file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file has no such block, or grew since the statement was read.
    #[error("{path}: {source}")]
    Tree {
        /// Its path.
        path: PathBuf,
        /// Why there is no opening.
        source: TreeError,
    },
}

/// A statement to be proved, with the private inputs that make it true. It is never printed.
#[derive(Clone)]
pub struct Statement {
    shape: Shape,
    source: Source,
}

#[derive(Clone)]
enum Source {
    Mimc { log2_size: u32, seed: Option<u64>, input: Scalar },
    Sha256 { message: Vec<u8> },
    Merkle { file: PathBuf, block: u64, block_bytes: u32 },
}

impl std::fmt::Debug for Statement {
    /// The shape only: the rest is private.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Statement({})", self.shape)
    }
}

impl Statement {
    /// "I know x with MiMC(x) = y" in a domain of 2^`log2_size`: x from `seed`, else from the operating system.
    ///
    /// # Errors
    /// [`StatementError::Shape`] outside 2^4 to 2^24.
    pub fn mimc(log2_size: u32, seed: Option<u64>) -> Result<Self, StatementError> {
        // 512 bits, so that the reduction modulo r leaves no bias.
        let mut wide = [0; 64];
        match seed {
            Some(seed) => {
                let digest =
                    Sha512::new().chain_update(b"sexton/mimc seed/").chain_update(seed.to_be_bytes());
                wide.copy_from_slice(&digest.finalize());
            }
            None => getrandom::fill(&mut wide).map_err(|error| StatementError::Random(error.to_string()))?,
        }
        let input = Scalar::from_be_bytes_mod_order(&wide);
        Ok(Self { shape: Shape::mimc(log2_size)?, source: Source::Mimc { log2_size, seed, input } })
    }

    /// "I know a message with this SHA-256 digest."
    ///
    /// # Errors
    /// [`StatementError::Shape`] for more than 4,087 bytes.
    pub fn sha256(message: Vec<u8>) -> Result<Self, StatementError> {
        let shape = Shape::sha256_for_message(message.len())?;
        Ok(Self { shape, source: Source::Sha256 { message } })
    }

    /// "The file with this root has this block at this index": the tree is as deep as the file needs now.
    ///
    /// # Errors
    /// [`StatementError::File`] when its size cannot be read, [`StatementError::Shape`] for a block size outside
    /// 1 B to 16 MiB.
    pub fn merkle(file: &Path, block: u64, block_bytes: u32) -> Result<Self, StatementError> {
        let failed = |source| StatementError::File { path: file.to_owned(), source };
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(failed(io::Error::other("not a regular file")));
        }
        let shape = Shape::merkle_for_file(metadata.len(), block_bytes)?;
        Ok(Self { shape, source: Source::Merkle { file: file.to_owned(), block, block_bytes } })
    }

    /// Reads the inputs of a request. Files are read for those only who could read them anyway (`files_allowed`).
    ///
    /// # Errors
    /// Any [`StatementError`]; its text is one line fit for the client.
    pub fn from_json(circuit: &str, inputs: &Value, files_allowed: bool) -> Result<Self, StatementError> {
        match circuit {
            "mimc" => {
                let inputs: MimcInputs = read("mimc", MIMC_INPUTS, inputs)?;
                Self::mimc(parse_log2_size(&inputs.size)?, inputs.seed)
            }
            "sha256" => match read("sha256", SHA256_INPUTS, inputs)? {
                Sha256Inputs { preimage: Some(text), preimage_hex: None } => Self::sha256(text.into_bytes()),
                Sha256Inputs { preimage: None, preimage_hex: Some(text) } => {
                    let message = hex::decode(&text).map_err(|error| StatementError::Inputs {
                        circuit: "sha256",
                        problem: format!("preimage_hex: {}", error.to_string().to_lowercase()),
                        expected: SHA256_INPUTS,
                    })?;
                    Self::sha256(message)
                }
                _ => Err(StatementError::Inputs {
                    circuit: "sha256",
                    problem: "exactly one preimage is needed".to_owned(),
                    expected: SHA256_INPUTS,
                }),
            },
            "merkle" => {
                let inputs: MerkleInputs = read("merkle", MERKLE_INPUTS, inputs)?;
                if !files_allowed {
                    return Err(StatementError::FileNotAllowed);
                }
                if !inputs.file.is_absolute() {
                    return Err(StatementError::RelativePath(inputs.file));
                }
                let block_bytes = match inputs.block_size {
                    Some(text) => parse_block_size(&text)?,
                    None => DEFAULT_BLOCK_BYTES,
                };
                Self::merkle(&inputs.file, inputs.block, block_bytes)
            }
            _ => Err(StatementError::UnknownCircuit(circuit.to_owned())),
        }
    }

    /// The circuit's name and the inputs that [`Self::from_json`] reads as this statement, for a server on this host.
    /// Without a seed the x of MiMC is not among them: the server draws its own.
    ///
    /// # Errors
    /// [`StatementError::File`] for a path that cannot be made absolute or is not UTF-8, as JSON is.
    pub fn to_json(&self) -> Result<(&'static str, Value), StatementError> {
        Ok(match &self.source {
            Source::Mimc { log2_size, seed: None, .. } => ("mimc", json!({"size": format!("2^{log2_size}")})),
            Source::Mimc { log2_size, seed, .. } => {
                ("mimc", json!({"size": format!("2^{log2_size}"), "seed": seed}))
            }
            Source::Sha256 { message } => ("sha256", json!({"preimage_hex": hex::encode(message)})),
            Source::Merkle { file, block, block_bytes } => {
                let failed = |source| StatementError::File { path: file.clone(), source };
                let path = std::path::absolute(file).map_err(failed)?;
                let path =
                    path.to_str().ok_or_else(|| failed(io::Error::other("the path is not valid UTF-8")))?;
                ("merkle", json!({"file": path, "block": block, "block_size": format!("{block_bytes}B")}))
            }
        })
    }

    /// True where everybody who proves this statement from [`Self::to_json`] gets the same public inputs.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        !matches!(self.source, Source::Mimc { seed: None, .. })
    }

    /// The circuit and its size.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Computes what the circuit needs.
    ///
    /// # Errors
    /// [`StatementError::File`] or [`StatementError::Tree`] for a file that is gone, shorter or longer than it was.
    pub fn instance(&self) -> Result<Instance, StatementError> {
        Ok(match &self.source {
            Source::Mimc { log2_size, input, .. } => mimc::Preimage::new(*log2_size, *input)?.into(),
            Source::Sha256 { message } => sha256::Preimage::new(message.as_slice())?.into(),
            Source::Merkle { file, block, .. } => {
                let opened =
                    File::open(file).map_err(|source| StatementError::File { path: file.clone(), source })?;
                Tree::read(opened, self.shape)
                    .and_then(|tree| tree.open(*block))
                    .map_err(|source| StatementError::Tree { path: file.clone(), source })?
                    .into()
            }
        })
    }
}

const MIMC_INPUTS: &str = r#"{"size": "2^12"} and, for a repeatable input, "seed": 7"#;
const SHA256_INPUTS: &str = r#"{"preimage": "text"} or {"preimage_hex": "00ff"}"#;
const MERKLE_INPUTS: &str =
    r#"{"file": "/absolute/path", "block": 0} and, if not 4KiB, "block_size": "64KiB""#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MimcInputs {
    size: String,
    seed: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sha256Inputs {
    preimage: Option<String>,
    preimage_hex: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MerkleInputs {
    file: PathBuf,
    block: u64,
    block_size: Option<String>,
}

fn read<'a, T: Deserialize<'a>>(
    circuit: &'static str,
    expected: &'static str,
    inputs: &'a Value,
) -> Result<T, StatementError> {
    let inputs = T::deserialize(inputs);
    inputs.map_err(|error| StatementError::Inputs { circuit, problem: error.to_string(), expected })
}

/// Parses `2^K`.
///
/// # Errors
/// [`StatementError::Size`]; the range is the circuit's own to check.
pub fn parse_log2_size(text: &str) -> Result<u32, StatementError> {
    let digits = text.strip_prefix("2^").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let log2_size = digits.and_then(|digits| digits.parse().ok());
    log2_size.ok_or_else(|| StatementError::Size(text.to_owned()))
}

/// Parses the size of a file's blocks, such as `4KiB`.
///
/// # Errors
/// [`StatementError::BlockSize`]; the range is the circuit's own to check.
pub fn parse_block_size(text: &str) -> Result<u32, StatementError> {
    let Bytes(bytes) = text.parse().map_err(|error| StatementError::BlockSize(format!("{error}")))?;
    u32::try_from(bytes)
        .map_err(|_| StatementError::BlockSize(format!("block size {text:?} is too large: use 1B to 16MiB")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(circuit: &str, inputs: Value) -> String {
        let error = Statement::from_json(circuit, &inputs, true).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    }

    #[test]
    fn inputs_of_each_circuit_select_its_shape() {
        let shape =
            |circuit, inputs| Statement::from_json(circuit, &inputs, true).unwrap().shape().to_string();
        assert_eq!(shape("mimc", json!({"size": "2^8", "seed": 7})), "mimc-2^8");
        assert_eq!(shape("sha256", json!({"preimage": "abc"})), "sha256-1");
        assert_eq!(shape("sha256", json!({"preimage_hex": "00".repeat(56)})), "sha256-2");
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(5 * 1024).unwrap();
        let inputs = json!({"file": file.path(), "block": 4, "block_size": "1KiB"});
        assert_eq!(shape("merkle", inputs), "merkle-3x1024");
    }

    #[test]
    fn wrong_inputs_are_refused_with_what_is_accepted() {
        assert!(refused("keccak", json!({})).contains("known are mimc, sha256 and merkle"));
        assert!(refused("mimc", json!({})).contains("missing field `size`; give {\"size\": \"2^12\"}"));
        assert!(refused("mimc", json!({"size": "2^8", "sede": 1})).contains("unknown field `sede`"));
        assert!(refused("mimc", json!({"size": "4096"})).contains("power of two like 2^12"));
        assert!(refused("mimc", json!({"size": "2^40"})).contains("out of range: use 4 to 24"));
        assert!(refused("sha256", json!({"preimage": "a", "preimage_hex": "00"})).contains("exactly one"));
        assert!(refused("sha256", json!({"preimage_hex": "0"})).contains("preimage_hex"));
        assert!(refused("merkle", json!({"file": "a", "block": 0})).contains("not an absolute path"));
        assert!(
            refused("merkle", json!({"file": "/no/such", "block": 0})).contains("/no/such: No such file")
        );
        assert!(refused("merkle", json!({"file": "/dev/zero", "block": 0})).contains("not a regular file"));
        assert!(refused("mimc", json!(3)).contains("invalid type"));
    }

    #[test]
    fn a_block_size_needs_a_unit() {
        assert_eq!(parse_block_size("64KiB").unwrap(), 65_536);
        assert!(parse_block_size("64").unwrap_err().to_string().contains("KiB"));
        assert!(parse_block_size("8GiB").unwrap_err().to_string().contains("1B to 16MiB"));
    }

    #[test]
    fn files_are_not_read_for_clients_that_might_not_read_them_themselves() {
        let inputs = json!({"file": "/etc/hostname", "block": 0});
        let error = Statement::from_json("merkle", &inputs, false).unwrap_err();
        assert!(matches!(error, StatementError::FileNotAllowed));
    }

    #[test]
    fn a_seed_repeats_the_statement_and_its_absence_does_not() {
        let public = |seed| Statement::mimc(4, seed).unwrap().instance().unwrap().public_inputs();
        assert_eq!(public(Some(7)), public(Some(7)));
        assert_ne!(public(Some(7)), public(Some(8)));
        assert_ne!(public(None), public(None));
    }

    #[test]
    fn a_statement_survives_the_way_to_a_server() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(5 * 1024).unwrap();
        let there_and_back = |statement: Statement| {
            let (circuit, inputs) = statement.to_json().unwrap();
            let back = Statement::from_json(circuit, &inputs, true).unwrap();
            let public = |statement: &Statement| statement.instance().unwrap().public_inputs();
            assert_eq!(back.shape(), statement.shape());
            assert_eq!(public(&back) == public(&statement), statement.is_repeatable(), "{inputs}");
        };
        there_and_back(Statement::mimc(4, Some(u64::MAX)).unwrap());
        there_and_back(Statement::mimc(4, None).unwrap());
        there_and_back(Statement::sha256(vec![0xff, 0, 10]).unwrap());
        there_and_back(Statement::merkle(file.path(), 4, 1000).unwrap());
    }

    #[test]
    fn a_statement_does_not_show_its_private_inputs() {
        let statement = Statement::sha256(b"hunter2".to_vec()).unwrap();
        assert_eq!(format!("{statement:?}"), "Statement(sha256-1)");
    }
}
