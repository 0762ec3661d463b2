//! Files written whole or not at all, and lines on stdout.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::exit::{self, Failure};

/// Why a file was not written. Whatever was there under its name is still there.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A device, a folder or a pipe cannot be replaced by a file.
    #[error("{0}: exists and is not a regular file: give the path of a file to write")]
    NotAFile(PathBuf),
    /// No new file can be made beside it.
    #[error("cannot create {path}: {source}")]
    Create {
        /// The path asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing or renaming failed.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The path asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        let code = match error {
            OutputError::Write { .. } => exit::IO,
            OutputError::NotAFile(_) | OutputError::Create { .. } => exit::CANNOT_CREATE,
        };
        Self::new(code, error)
    }
}

/// A file that appears under its name when it is complete, and never before.
///
/// It is made before the long work whose result it takes, so that a folder that cannot be written is told at once.
pub struct Output {
    path: PathBuf,
    file: NamedTempFile,
}

impl Output {
    /// Prepares to write `path`, through a symbolic link if it is one.
    ///
    /// # Errors
    /// [`OutputError::NotAFile`] or [`OutputError::Create`].
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let target = target(path)?;
        let created = tempfile::Builder::new()
            .prefix(".prover-")
            .suffix(".part")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder(&target));
        let file = created.map_err(|source| OutputError::Create { path: path.to_owned(), source })?;
        Ok(Self { path: target, file })
    }

    /// Writes the content and makes it durable, under a temporary name still.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn fill(&mut self, content: &str) -> Result<(), OutputError> {
        let file = self.file.as_file_mut();
        let written = file.write_all(content.as_bytes()).and_then(|()| file.sync_all());
        written.map_err(|source| OutputError::Write { path: self.path.clone(), source })
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn publish(self) -> Result<(), OutputError> {
        let Self { path, file } = self;
        let failed = |source| OutputError::Write { path: path.clone(), source };
        file.persist(&path).map_err(|error| failed(error.error))?;
        File::open(folder(&path)).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

/// The file that `path` stands for, which is what a symbolic link points to.
///
/// # Errors
/// [`OutputError::NotAFile`] for whatever must not be replaced: renaming over `/dev/null` would break the host.
pub fn target(path: &Path) -> Result<PathBuf, OutputError> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(OutputError::NotAFile(path.to_owned())),
        Ok(_) => {
            fs::canonicalize(path).map_err(|source| OutputError::Create { path: path.to_owned(), source })
        }
        Err(_) => Ok(path.to_owned()),
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes one line on stdout. A reader that has gone (`prover … | head -1`) is no failure.
///
/// # Errors
/// [`exit::IO`] when stdout cannot be written, a full disk for example.
pub fn print(line: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(exit::IO, format_args!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes one message on stderr; nobody is left to be told when that fails.
pub fn say(message: &str) {
    let _ = writeln!(io::stderr(), "prover: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof.json");
        let mut output = Output::create(&path).unwrap();
        output.fill("{}").unwrap();
        assert!(!path.exists());
        output.publish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
    }

    #[test]
    fn what_was_there_stays_when_the_work_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof.json");
        fs::write(&path, "old").unwrap();
        drop(Output::create(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_symbolic_link_stays_one_and_its_file_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let mut output = Output::create(&link).unwrap();
        output.fill("new").unwrap();
        output.publish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn a_device_is_never_replaced() {
        assert!(matches!(Output::create(Path::new("/dev/null")), Err(OutputError::NotAFile(_))));
        assert!(matches!(Output::create(Path::new("/proc/proof.json")), Err(OutputError::Create { .. })));
    }
}
