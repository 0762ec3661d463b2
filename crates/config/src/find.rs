//! Which file is read, and reading it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::fault::{Fault, Origin};

/// The file for the whole host.
pub const SYSTEM_FILE: &str = "/etc/sexton/sexton.toml";

/// Bytes of a file that are read at most.
const SIZE_MAX: u64 = 1 << 20;

/// Where the configuration is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file that is read. It need not exist where it was named.
    pub file: Option<PathBuf>,
    /// Where one was looked for.
    pub candidates: Vec<PathBuf>,
}

/// The file named by `given` (`--config`, `SEXTON_CONFIG`), else the first that is there: that of the user, that of the
/// host. One that is there and cannot be read is no reason to read another.
pub fn locate(given: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Place {
    if let Some(given) = given {
        return Place { file: Some(given.to_owned()), candidates: vec![given.to_owned()] };
    }
    // The XDG base directory specification wants relative paths ignored.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    let user = folder.map(|folder| folder.join("sexton/sexton.toml"));
    let candidates: Vec<PathBuf> = user.into_iter().chain([PathBuf::from(SYSTEM_FILE)]).collect();
    let is_there = |path: &&PathBuf| {
        use io::ErrorKind::{NotADirectory, NotFound};
        fs::symlink_metadata(path)
            .map_or_else(|error| !matches!(error.kind(), NotFound | NotADirectory), |_| true)
    };
    Place { file: candidates.iter().find(is_there).cloned(), candidates }
}

/// A file that was read.
#[derive(Debug)]
pub struct Text {
    /// What it holds.
    pub text: String,
    /// What a careful owner would change about it.
    pub warnings: Vec<Fault>,
}

/// Reads a file.
///
/// # Errors
/// One fault: it is not there, not readable, no file, too large, not UTF-8.
pub fn read(path: &Path) -> Result<Text, Fault> {
    let fault = |line, message: String| Fault {
        origin: Origin::File { path: path.to_owned(), line },
        key: String::new(),
        message,
    };
    let unreadable = |error: io::Error| fault(0, format!("cannot read it: {error}"));
    // Whoever opens a FIFO waits for its writer.
    let kind = fs::metadata(path).map_err(unreadable)?.file_type();
    if kind.is_dir() || kind.is_fifo() || kind.is_socket() {
        return Err(fault(0, "not a file: name the file itself".to_owned()));
    }
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(SIZE_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > SIZE_MAX {
        return Err(fault(0, "larger than 1 MiB: is this the right file?".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        fault(line, "not UTF-8: save it as UTF-8".to_owned())
    })?;
    let warnings = owner_warning(&metadata).map(|message| fault(0, message)).into_iter().collect();
    Ok(Text { text, warnings })
}

/// Whoever may write to the file may have commands run by whoever reads it.
fn owner_warning(file: &fs::Metadata) -> Option<String> {
    if !file.is_file() {
        return None;
    }
    let own = fs::metadata("/proc/self").ok()?.uid();
    if file.uid() != own && file.uid() != 0 {
        return Some(format!("it belongs to user {}, who may have us run any command: chown it", file.uid()));
    }
    let mode = file.mode() & 0o7777;
    (mode & 0o022 != 0).then(|| {
        format!("others may write to it (mode {mode:03o}) and so have us run any command: chmod go-w it")
    })
}
