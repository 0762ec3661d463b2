//! Folders for one supervisor, apart from every other one.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Temporary state and runtime folders, removed on drop.
#[derive(Debug)]
pub struct SupervisorFolders {
    root: TempDir,
}

impl SupervisorFolders {
    /// Below `/tmp`, which is short: the path of a Unix socket has at most 107 bytes.
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("sexton-").tempdir_in("/tmp").expect("a temporary folder");
        for folder in ["state", "run"] {
            std::fs::create_dir(root.path().join(folder)).expect("a folder in a temporary folder");
        }
        Self { root }
    }

    /// For `--state-dir`.
    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// For `--runtime-dir`.
    pub fn runtime(&self) -> PathBuf {
        self.path().join("run")
    }

    /// Both arguments, as a supervisor command takes them.
    pub fn arguments(&self) -> [String; 4] {
        let text = |path: PathBuf| path.display().to_string();
        ["--state-dir".to_owned(), text(self.state()), "--runtime-dir".to_owned(), text(self.runtime())]
    }

    /// The folder around both, for whatever else a test writes.
    pub fn path(&self) -> &Path {
        self.root.path()
    }
}

impl Default for SupervisorFolders {
    fn default() -> Self {
        Self::new()
    }
}
