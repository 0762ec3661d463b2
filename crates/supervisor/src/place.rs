//! Where the files of one supervised prover are.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The longest path of a Unix socket, bytes: `sun_path` less its NUL (unix(7)).
const SOCKET_PATH_MAX: usize = 107;

/// Which prover a command is about. Every command takes these.
#[derive(Debug, Clone, clap::Args)]
pub struct PlaceArgs {
    /// Name of the supervised prover; several provers of one host have several names
    #[arg(long, value_name = "NAME", default_value = "prover", env = "SEXTON_NAME", global = true)]
    name: String,
    /// Folder for records and output [default: /var/lib/sexton/NAME for root, else $XDG_STATE_HOME/sexton/NAME]
    #[arg(long, value_name = "DIR", env = "SEXTON_STATE_DIR", global = true)]
    state_dir: Option<PathBuf>,
    /// Folder for sockets [default: /run/sexton/NAME for root, else $XDG_RUNTIME_DIR/sexton/NAME]
    #[arg(long, value_name = "DIR", env = "SEXTON_RUNTIME_DIR", global = true)]
    runtime_dir: Option<PathBuf>,
}

/// The two folders of one supervised prover.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Records and output; survives a reboot.
    pub state_dir: PathBuf,
    /// Sockets and locks; need not.
    pub runtime_dir: PathBuf,
}

/// Why there is no place.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A name that would not do as a folder's.
    #[error("\"{0}\" is not a name: use letters, digits, '-', '_' and '.', not first, at most 64")]
    Name(String),
    /// No default can be told.
    #[error("{variable} is not set: set it, or give {flag} DIR")]
    NoDefault {
        /// The variable.
        variable: &'static str,
        /// The flag that does without.
        flag: &'static str,
    },
    /// A path that a Unix socket cannot have.
    #[error(
        "\"{0}\" is longer than the {SOCKET_PATH_MAX} bytes that a socket's path may have: give a shorter --runtime-dir"
    )]
    SocketPath(PathBuf),
    /// A folder that cannot be made or used.
    #[error("cannot use the folder {}: {reason}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

impl PlaceArgs {
    /// The place meant, without touching it.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn resolve(&self) -> Result<Place, PlaceError> {
        let name = self.name.clone();
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(fits) {
            return Err(PlaceError::Name(name));
        }
        let root = fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
        let default = |given: &Option<PathBuf>, for_root: &str, variable, flag| match given {
            Some(folder) => std::path::absolute(folder)
                .map_err(|error| PlaceError::Folder { path: folder.clone(), reason: error.to_string() }),
            None if root => Ok(Path::new(for_root).join(&name)),
            None => match xdg(variable) {
                Some(base) => Ok(base.join("sexton").join(&name)),
                None => Err(PlaceError::NoDefault { variable, flag }),
            },
        };
        let place = Place {
            state_dir: default(&self.state_dir, "/var/lib/sexton", "XDG_STATE_HOME", "--state-dir")?,
            runtime_dir: default(&self.runtime_dir, "/run/sexton", "XDG_RUNTIME_DIR", "--runtime-dir")?,
            name,
        };
        for socket in [place.control_socket(), place.keeper_socket(), place.prover_socket()] {
            if socket.as_os_str().len() > SOCKET_PATH_MAX {
                return Err(PlaceError::SocketPath(socket));
            }
        }
        Ok(place)
    }
}

/// An absolute path from the environment; the specification wants relative ones ignored. Of the two variables used,
/// only the state folder has a fallback.
fn xdg(variable: &str) -> Option<PathBuf> {
    let absolute = |value: std::ffi::OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    std::env::var_os(variable).and_then(absolute).or_else(|| {
        let home = std::env::var_os("HOME").and_then(absolute)?;
        (variable == "XDG_STATE_HOME").then(|| home.join(".local/state"))
    })
}

impl Place {
    /// Where the supervisor answers.
    pub fn control_socket(&self) -> PathBuf {
        self.runtime_dir.join("control.sock")
    }

    /// Where the keeper answers its supervisor.
    pub fn keeper_socket(&self) -> PathBuf {
        self.runtime_dir.join("keeper.sock")
    }

    /// Where the prover is told to answer.
    pub fn prover_socket(&self) -> PathBuf {
        self.runtime_dir.join("prover.sock")
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.state_dir.join("journal.ndjson")
    }

    /// How long earlier drains took on this host.
    pub fn drains_file(&self) -> PathBuf {
        self.state_dir.join("drains.json")
    }

    /// What earlier runs took at most.
    pub fn need_file(&self) -> PathBuf {
        self.state_dir.join("need.json")
    }

    /// Which memory budgets did in which situation.
    pub fn ladder_file(&self) -> PathBuf {
        self.state_dir.join("ladder.json")
    }

    /// Where the prover says what it does, see `sd_notify(3)`.
    pub fn notify_socket(&self) -> PathBuf {
        self.runtime_dir.join("notify.sock")
    }

    /// One folder per run.
    pub fn runs_dir(&self) -> PathBuf {
        self.state_dir.join("runs")
    }

    /// Makes both folders, for this user alone.
    ///
    /// # Errors
    /// [`PlaceError::Folder`]: not makeable, not writable, or open to others.
    pub fn create(&self) -> Result<(), PlaceError> {
        for folder in [&self.state_dir, &self.runtime_dir, &self.runs_dir()] {
            let failed = |reason: String| PlaceError::Folder { path: folder.clone(), reason };
            let made: io::Result<()> = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| failed(error.to_string()))?;
            let meta = folder.metadata().map_err(|error| failed(error.to_string()))?;
            let own = fs::metadata("/proc/self").map_err(|error| failed(error.to_string()))?.uid();
            if meta.uid() != own {
                return Err(failed(format!("it belongs to user {}, not to {own}", meta.uid())));
            }
            let mode = meta.permissions().mode();
            if mode & 0o022 != 0 {
                return Err(failed(format!(
                    "others may write to it (mode {:03o}): chmod go-w it",
                    mode & 0o777
                )));
            }
        }
        Ok(())
    }
}
