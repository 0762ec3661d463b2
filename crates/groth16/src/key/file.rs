//! Key files: a [header](super::header), then the points, uncompressed, in the order of `Sections::read`.
//!
//! Uncompressed, because a compressed point costs a square root: minutes for a large key. Unchecked once the hash has
//! matched: a file whose owner can write it is trusted like a program, and a wrong point gives proofs that do not
//! verify, never a forged one. The verifying part is checked all the same.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ark_bls12_381::{Bls12_381, G1Affine, G2Affine};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::ProvingKey;
use super::header::{G1_BYTES, G2_BYTES, HEADER_BYTES, HeaderError, KeyHeader, KeySize};
use crate::Shape;
use crate::verify::VerifyingKeyError;

/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Why a key file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The system refused.
    #[error("cannot {action} key {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The header cannot be used.
    #[error("key {}: {source}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// Why.
        source: HeaderError,
    },
    /// The key is for another shape.
    #[error("key {} is for {found}, not {wanted}: make one with `prover setup {wanted}`", path.display())]
    WrongCircuit {
        /// The file.
        path: PathBuf,
        /// The shape in its header.
        found: Shape,
        /// The shape asked for.
        wanted: Shape,
    },
    /// The file is longer or shorter than its header says.
    #[error("key {} has {found} bytes, its header says {expected}: copy it again or make the key anew", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes that it has.
        found: u64,
        /// Bytes that it should have.
        expected: u64,
    },
    /// The points are not those that were written.
    #[error("key {}: points are damaged (SHA-256 of bytes {HEADER_BYTES} to {end} does not match the header): copy it again or make the key anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Length of the file in bytes.
        end: u64,
    },
    /// A point has no valid encoding although the hash matched.
    #[error("key {}: {section}[{index}] at offset {offset} is not a point: make the key anew", path.display())]
    Point {
        /// The file.
        path: PathBuf,
        /// Which query.
        section: &'static str,
        /// Which of its points.
        index: u64,
        /// Where it stands in the file.
        offset: u64,
    },
    /// The verifying part is not acceptable although the hash matched.
    #[error("key {}: {source}: make the key anew", path.display())]
    VerifyingKey {
        /// The file.
        path: PathBuf,
        /// Which point, and why.
        source: VerifyingKeyError,
    },
}

impl KeyHeader {
    /// Reads and checks the header of the key file at `path`, and no more.
    ///
    /// # Errors
    /// [`KeyError::Io`] or [`KeyError::Header`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let file = File::open(path).map_err(io_error("open", path))?;
        read_header(&file, path)
    }
}

impl ProvingKey {
    /// The header that its file has, but for the hash of the points, which is known once they are written.
    fn header(&self, payload_sha256: [u8; 32]) -> KeyHeader {
        KeyHeader::new(self.shape, self.kind, self.size, payload_sha256)
    }

    /// Loads the key file at `path`, of whatever shape. The file is read twice: for its hash, then for its points.
    ///
    /// Memory follows the file's real length, never a length that it only claims.
    ///
    /// # Errors
    /// [`KeyError`], one line that says what is wrong, where, and what to do.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        Self::load_if(path, |_| Ok(()))
    }

    /// Loads the key file at `path` and insists on its shape, before reading the points.
    ///
    /// # Errors
    /// [`KeyError::WrongCircuit`], or as [`ProvingKey::load`].
    pub fn load_for(path: &Path, wanted: Shape) -> Result<Self, KeyError> {
        Self::load_if(path, |header| match header.shape {
            found if found == wanted => Ok(()),
            found => Err(KeyError::WrongCircuit { path: path.to_owned(), found, wanted }),
        })
    }

    fn load_if(path: &Path, accept: impl Fn(&KeyHeader) -> Result<(), KeyError>) -> Result<Self, KeyError> {
        let mut file = File::open(path).map_err(io_error("open", path))?;
        let header = read_header(&file, path)?;
        accept(&header)?;
        let found = file.metadata().map_err(io_error("stat", path))?.len();
        let expected = header.payload_bytes.saturating_add(HEADER_BYTES as u64);
        if found != expected {
            return Err(KeyError::Length { path: path.to_owned(), found, expected });
        }
        if hash_rest(&mut file).map_err(io_error("read", path))? != header.payload_sha256 {
            return Err(KeyError::Damaged { path: path.to_owned(), end: expected });
        }
        file.seek(SeekFrom::Start(HEADER_BYTES as u64)).map_err(io_error("read", path))?;
        let ark = Sections { file, path, offset: HEADER_BYTES as u64 }.read(header.size)?;
        ProvingKey::new(header.shape, header.kind, header.size, ark)
            .map_err(|source| KeyError::VerifyingKey { path: path.to_owned(), source })
    }

    /// Writes the key to `path`, whole or not at all: into a temporary file beside it, synced, renamed over `path`,
    /// and the folder synced. A process killed meanwhile leaves `path` as it was.
    ///
    /// # Errors
    /// [`KeyError::Io`].
    pub fn save(&self, path: &Path) -> Result<KeyHeader, KeyError> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let temporary = Temporary::create(folder, path).map_err(io_error("create", path))?;
        let header = self.write_to(&temporary.file).map_err(io_error("write", path))?;
        temporary.file.sync_all().map_err(io_error("sync", path))?;
        temporary.rename_to(path).map_err(io_error("rename", path))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(io_error("sync folder of", path))?;
        Ok(header)
    }

    /// The header comes last, over the space left for it: it holds the hash of what follows.
    fn write_to(&self, mut file: &File) -> io::Result<KeyHeader> {
        file.write_all(&[0; HEADER_BYTES])?;
        let mut payload = Hashing { inner: BufWriter::with_capacity(CHUNK_BYTES, file), hash: Sha256::new() };
        let ark = &self.ark;
        write_points(&mut payload, &[ark.vk.alpha_g1])?;
        write_points(&mut payload, &[ark.vk.beta_g2, ark.vk.gamma_g2, ark.vk.delta_g2])?;
        write_points(&mut payload, &ark.vk.gamma_abc_g1)?;
        write_points(&mut payload, &[ark.beta_g1, ark.delta_g1])?;
        write_points(&mut payload, &ark.a_query)?;
        write_points(&mut payload, &ark.b_g1_query)?;
        write_points(&mut payload, &ark.b_g2_query)?;
        write_points(&mut payload, &ark.h_query)?;
        write_points(&mut payload, &ark.l_query)?;
        payload.inner.flush()?;

        let header = self.header(payload.hash.finalize().into());
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header.encode())?;
        Ok(header)
    }
}

/// The points of a file whose hash has matched, read in order.
struct Sections<'a> {
    file: File,
    path: &'a Path,
    offset: u64,
}

impl Sections<'_> {
    fn read(mut self, size: KeySize) -> Result<ark_groth16::ProvingKey<Bls12_381>, KeyError> {
        let alpha_g1 = self.point("alpha_g1", G1_BYTES)?;
        let vk = ark_groth16::VerifyingKey {
            alpha_g1,
            beta_g2: self.point("beta_g2", G2_BYTES)?,
            gamma_g2: self.point("gamma_g2", G2_BYTES)?,
            delta_g2: self.point("delta_g2", G2_BYTES)?,
            gamma_abc_g1: self.g1("ic", size.public_inputs() + 1)?,
        };
        Ok(ark_groth16::ProvingKey {
            vk,
            beta_g1: self.point("beta_g1", G1_BYTES)?,
            delta_g1: self.point("delta_g1", G1_BYTES)?,
            a_query: self.g1("a", size.variables())?,
            b_g1_query: self.g1("b_g1", size.variables())?,
            b_g2_query: self.g2("b_g2", size.variables())?,
            h_query: self.g1("h", size.domain() - 1)?,
            l_query: self.g1("l", size.witness())?,
        })
    }

    fn g1(&mut self, section: &'static str, count: u64) -> Result<Vec<G1Affine>, KeyError> {
        self.points(section, count, G1_BYTES)
    }

    fn g2(&mut self, section: &'static str, count: u64) -> Result<Vec<G2Affine>, KeyError> {
        self.points(section, count, G2_BYTES)
    }

    fn point<P>(&mut self, section: &'static str, bytes: u64) -> Result<P, KeyError>
    where
        P: CanonicalDeserialize + Send + Copy,
    {
        let offset = self.offset;
        let not_a_point = KeyError::Point { path: self.path.to_owned(), section, index: 0, offset };
        self.points(section, 1, bytes)?.first().copied().ok_or(not_a_point)
    }

    fn points<P>(&mut self, section: &'static str, count: u64, bytes: u64) -> Result<Vec<P>, KeyError>
    where
        P: CanonicalDeserialize + Send,
    {
        // The file's length has been checked against the sizes, so `count` points are really there.
        let mut points = Vec::with_capacity(count as usize);
        let mut chunk = vec![0; (CHUNK_BYTES as u64 / bytes).min(count) as usize * bytes as usize];
        while (points.len() as u64) < count {
            let missing = (count - points.len() as u64) * bytes;
            let chunk = &mut chunk[..missing.min(CHUNK_BYTES as u64 / bytes * bytes) as usize];
            self.file.read_exact(chunk).map_err(io_error("read", self.path))?;
            let decoded: Vec<Option<P>> = chunk
                .par_chunks(bytes as usize)
                .map(|encoded| P::deserialize_uncompressed_unchecked(encoded).ok())
                .collect();
            for point in decoded {
                let (index, offset) = (points.len() as u64, self.offset);
                let path = self.path;
                points.push(point.ok_or_else(|| KeyError::Point {
                    path: path.to_owned(),
                    section,
                    index,
                    offset,
                })?);
                self.offset += bytes;
            }
        }
        Ok(points)
    }
}

fn read_header(file: &File, path: &Path) -> Result<KeyHeader, KeyError> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    file.take(HEADER_BYTES as u64).read_to_end(&mut bytes).map_err(io_error("read", path))?;
    KeyHeader::decode(&bytes).map_err(|source| KeyError::Header { path: path.to_owned(), source })
}

fn hash_rest(file: &mut File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(read) => hash.update(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn write_points<P: CanonicalSerialize>(mut to: impl Write, points: &[P]) -> io::Result<()> {
    points.iter().try_for_each(|point| point.serialize_uncompressed(&mut to)).map_err(io::Error::other)
}

/// A writer that hashes what passes through it.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A new file that is removed again unless it is renamed to its final name.
struct Temporary {
    file: File,
    path: Option<PathBuf>,
}

impl Temporary {
    fn create(folder: &Path, target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or_else(|| io::Error::other("path has no file name"))?;
        for attempt in 0_u32.. {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}-{attempt}.part", std::process::id()));
            let path = folder.join(hidden);
            match File::create_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {}
                created => return created.map(|file| Self { file, path: Some(path) }),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    fn rename_to(mut self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::rename(path, target)?;
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Nothing better can be done about a file that cannot be removed.
            let _ = fs::remove_file(path);
        }
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KeyError {
    let path = path.to_owned();
    move |source| KeyError::Io { action, path, source }
}
