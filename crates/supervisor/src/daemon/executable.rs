//! The file that a run executes, with its SHA-256.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sexton_model::run::Executable;
use sha2::{Digest, Sha256};

/// Remembers the last hash, since a restart mostly runs the same file.
#[derive(Debug, Default)]
pub struct Hasher {
    last: Option<(Stamp, String)>,
}

/// What tells that a file has not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Hasher {
    /// The file at `program`, links resolved; named by `word`, as it was given, where there is none. Whatever cannot be
    /// read stays absent: the start will say why.
    pub fn executable(&mut self, program: &Path, word: Option<&OsString>) -> Executable {
        let Ok(real) = program.canonicalize() else {
            let named = word.map_or_else(|| program.to_string_lossy(), |word| word.to_string_lossy());
            return Executable { path: Some(named.into_owned()), ..Default::default() };
        };
        let meta = real.metadata().ok();
        Executable {
            path: Some(real.to_string_lossy().into_owned()),
            device: meta.as_ref().map(MetadataExt::dev),
            inode: meta.as_ref().map(MetadataExt::ino),
            sha256: self.hash(&real).ok(),
        }
    }

    fn hash(&mut self, path: &Path) -> io::Result<String> {
        let mut file = File::open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let stamp = Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            changed: (meta.ctime(), meta.ctime_nsec()),
        };
        if let Some((known, hash)) = &self.last
            && *known == stamp
        {
            return Ok(hash.clone());
        }
        let mut hasher = Sha256::new();
        let mut buffer = [0; 64 << 10];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                length => hasher.update(&buffer[..length]),
            }
        }
        let hash: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        self.last = Some((stamp, hash.clone()));
        Ok(hash)
    }
}
