//! One `/proc/PID` or `/proc/PID/task/TID` folder, held open, and how errors of reading in it are told apart.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use procfs::ProcError;
use procfs::process::{Process, Stat, Status};
use sexton_model::reading::{ObstacleKind, Reading};

use super::parse;
use crate::files::{parsed, unreadable};

/// A task's folder. The open descriptor is bound to the task: once that is reaped, every read fails, even if another
/// task has got the same number.
pub(super) struct TaskFolder {
    /// A thread's folder has the files of a process folder, so the same type serves for both.
    folder: Process,
    path: PathBuf,
}

impl TaskFolder {
    /// Opens the folder at `path`, whose last part is the id.
    pub(super) fn open(path: &Path) -> Reading<Self> {
        match Process::new_with_root(path.to_owned()) {
            Ok(folder) => Reading::Value(Self { folder, path: path.to_owned() }),
            Err(error) => refused(path, error, || Reading::Absent),
        }
    }

    pub(super) fn path_of(&self, file: &str) -> String {
        self.path.join(file).display().to_string()
    }

    /// Contents of a file. procfs(5) files are read at once: their size is not known before.
    pub(super) fn bytes(&self, file: &str) -> Reading<Vec<u8>> {
        let path = self.path.join(file);
        let mut opened = match self.folder.open_relative(file) {
            Ok(opened) => opened,
            Err(error) => return refused(&path, error, || self.absent_or_vanished(&path)),
        };
        let mut bytes = Vec::new();
        match opened.read_to_end(&mut bytes) {
            Ok(_) => Reading::Value(bytes),
            Err(error) => unreadable(&path, &error),
        }
    }

    /// Contents of a file, through one of the parsers of [`parse`].
    pub(super) fn parsed<T>(&self, file: &str, parser: impl Fn(&[u8]) -> Result<T, String>) -> Reading<T> {
        self.bytes(file).and_then(|bytes| parsed(&self.path.join(file), parser(&bytes)))
    }

    pub(super) fn stat(&self) -> Reading<Stat> {
        self.parsed("stat", parse::stat)
    }

    pub(super) fn status(&self) -> Reading<Status> {
        self.parsed("status", parse::status)
    }

    /// Whether the kernel shows us what it shows to those who may trace this task (`PTRACE_MODE_READ_FSCREDS`). Works for
    /// zombies: the link `ns/user` asks for just that, and is there until the reap; `io` is the fallback for kernels
    /// without user namespaces, but belongs to root once the task has no memory.
    pub(super) fn ptrace_access(&self) -> Reading<()> {
        let link = self.path.join("ns/user");
        match std::fs::read_link(&link) {
            Ok(_) => Reading::Value(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.bytes("io").map(drop),
            Err(error) => unreadable(&link, &error),
        }
    }

    /// ENOENT for a file in an open folder means that this kernel has no such file, or that the task is gone. Every
    /// task has a `stat`.
    fn absent_or_vanished<T>(&self, path: &Path) -> Reading<T> {
        match self.folder.open_relative("stat") {
            Ok(_) => Reading::Absent,
            Err(_) => {
                Reading::unreadable(ObstacleKind::Vanished, format!("{}: no such task", path.display()))
            }
        }
    }
}

/// What an error of opening means. `procfs` reports ENOENT and ESRCH alike as "not found".
fn refused<T>(path: &Path, error: ProcError, not_found: impl FnOnce() -> Reading<T>) -> Reading<T> {
    match error {
        ProcError::NotFound(_) => not_found(),
        ProcError::PermissionDenied(_) => {
            Reading::unreadable(ObstacleKind::Denied, format!("{}: permission denied", path.display()))
        }
        ProcError::Io(error, _) => unreadable(path, &error),
        other => Reading::unreadable(ObstacleKind::Failed, format!("{}: {other}", path.display())),
    }
}

/// Names in a folder that are numbers: the processes of a `/proc`, the threads of a `task`.
pub(super) fn numbered_entries(folder: &Path) -> Reading<Vec<i32>> {
    let numbers = || -> io::Result<Vec<i32>> {
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
        }
        Ok(numbers)
    };
    match numbers() {
        Ok(numbers) => Reading::Value(numbers),
        Err(error) => unreadable(folder, &error),
    }
}
