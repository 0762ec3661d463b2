//! Where readers get their bytes from: this host, a tree that looks like one, or what was recorded at a death.
//!
//! Because the source is a value, the same parsers judge live files, the evidence that the keeper recorded before it
//! reaped, and a bundle from another machine.

mod snapshot;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sexton_model::reading::{ObstacleKind, Reading};

pub use snapshot::{FILE_BYTES, Malformed, Recorder, Snapshot};

/// Most bytes that are read of one live file. `mountinfo` of a crowded container host has a few MiB.
const LIVE_BYTES: u64 = 16 << 20;

/// A source of files. Paths are those of the host that is looked at, always absolute.
#[derive(Debug, Clone)]
pub enum Files {
    /// Files below this folder: `/` for this host.
    Root(PathBuf),
    /// Files as they were recorded.
    Snapshot(Snapshot),
}

impl Files {
    /// This host.
    pub fn system() -> Self {
        Self::Root(PathBuf::from("/"))
    }

    /// A tree that looks like `/`.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self::Root(root.into())
    }

    /// Contents of the file at `path`.
    ///
    /// # Errors
    /// The kernel's, now or when it was recorded. Without an errno: it was not recorded, or not whole, or is larger than
    /// 16 MiB.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self {
            Self::Root(root) => read_bounded(&root.join(path.strip_prefix("/").unwrap_or(path))),
            Self::Snapshot(snapshot) => snapshot.read(path),
        }
    }

    /// [`Self::read`] with errors told apart: no such file is absent, any other is an obstacle.
    pub fn bytes(&self, path: &Path) -> Reading<Vec<u8>> {
        match self.read(path) {
            Ok(bytes) => Reading::Value(bytes),
            Err(error) => unreadable(path, &error),
        }
    }

    /// [`Self::bytes`] through a parser.
    pub fn parsed<T>(&self, path: &Path, parser: impl FnOnce(&[u8]) -> Result<T, String>) -> Reading<T> {
        self.bytes(path).and_then(|bytes| parsed(path, parser(&bytes)))
    }

    /// Copies `paths` out of this source: what a bundle keeps for a later judgement.
    pub fn record<P: AsRef<Path>>(&self, paths: impl IntoIterator<Item = P>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for path in paths {
            snapshot.insert(path.as_ref(), self.read(path.as_ref()));
        }
        snapshot
    }
}

/// Files of the kernel have no size that could be asked for: they are read to their end.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LIVE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIVE_BYTES {
        return Err(io::Error::other(format!("larger than {LIVE_BYTES} bytes")));
    }
    Ok(bytes)
}

/// What an error of reading means. `ENOENT` is an answer. `ESRCH` is said of a task, `ENODEV` of a cgroup that went away
/// while its file was open.
pub(crate) fn unreadable<T>(path: &Path, error: &io::Error) -> Reading<T> {
    let kind = match (error.raw_os_error(), error.kind()) {
        (Some(libc::ESRCH | libc::ENODEV), _) => ObstacleKind::Vanished,
        (_, io::ErrorKind::NotFound) => return Reading::Absent,
        (_, io::ErrorKind::PermissionDenied) => ObstacleKind::Denied,
        _ => ObstacleKind::Failed,
    };
    Reading::unreadable(kind, format!("{}: {error}", path.display()))
}

/// What the answer of a parser means for the file at `path`.
pub(crate) fn parsed<T>(path: &Path, result: Result<T, String>) -> Reading<T> {
    match result {
        Ok(value) => Reading::Value(value),
        Err(why) => Reading::unreadable(ObstacleKind::Malformed, format!("{}: {why}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enoent_is_an_answer_and_every_other_error_an_obstacle() {
        let kind_of = |errno| {
            let reading: Reading<()> = unreadable(Path::new("/x"), &io::Error::from_raw_os_error(errno));
            reading.obstacle().map(|obstacle| obstacle.kind)
        };
        assert_eq!(kind_of(libc::ENOENT), None);
        assert_eq!(kind_of(libc::ESRCH), Some(ObstacleKind::Vanished));
        assert_eq!(kind_of(libc::ENODEV), Some(ObstacleKind::Vanished));
        assert_eq!(kind_of(libc::EACCES), Some(ObstacleKind::Denied));
        assert_eq!(kind_of(libc::EPERM), Some(ObstacleKind::Denied));
        assert_eq!(kind_of(libc::EIO), Some(ObstacleKind::Failed));
    }

    #[test]
    fn a_root_and_what_was_recorded_of_it_answer_alike() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/meminfo"), "MemTotal: 1 kB\n").unwrap();
        let live = Files::under(root.path());
        let paths = ["/proc/meminfo", "/proc/vmstat", "/proc"];
        let bytes = live.record(paths).encode();
        let recorded = Files::Snapshot(Snapshot::decode(&bytes).unwrap());
        for path in paths.map(Path::new) {
            assert_eq!(live.bytes(path), recorded.bytes(path), "{}", path.display());
        }
        assert_eq!(recorded.bytes(Path::new("/proc/vmstat")), Reading::Absent);
        let never = recorded.bytes(Path::new("/proc/never"));
        assert_eq!(never.obstacle().map(|obstacle| obstacle.kind), Some(ObstacleKind::Failed));
    }
}
