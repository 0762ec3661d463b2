//! One supervisor for a runtime folder, and one for a state folder.

use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::{DaemonError, failed};
use crate::place::{Place, PlaceError};

fn path_in(folder: &Path) -> PathBuf {
    folder.join("supervisor.lock")
}

/// Takes both locks of a place.
///
/// # Errors
/// [`DaemonError::AlreadyRuns`], or the file system's.
pub fn take(place: &Place) -> Result<[File; 2], DaemonError> {
    let lock = |folder: &Path| {
        let unusable =
            |error: std::io::Error| PlaceError::Folder { path: folder.to_owned(), reason: error.to_string() };
        let open = File::options().create(true).read(true).write(true).truncate(false).open(path_in(folder));
        let mut file = open.map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                return Err(DaemonError::AlreadyRuns {
                    name: place.name.clone(),
                    pid: pid.trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed("cannot lock")(error)),
        }
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(unusable)?;
        Ok(file)
    };
    Ok([lock(&place.runtime_dir)?, lock(&place.state_dir)?])
}

/// Whether a supervisor holds a lock of `place`. A supervisor that starts at this very moment may find it taken by us.
pub fn are_held(place: &Place) -> bool {
    [&place.runtime_dir, &place.state_dir].into_iter().any(|folder| {
        let file = File::open(path_in(folder));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    })
}
