//! The cgroups below one.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// `top` and every folder below it, parents before children. Those that go away meanwhile are left out, `top` too.
pub(super) fn folders(top: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![top.to_owned()];
    let mut next = 0;
    while let Some(folder) = found.get(next).cloned() {
        match children(&folder) {
            Ok(children) => {
                found.extend(children);
                next += 1;
            }
            Err(error) if is_gone(&error) => {
                found.remove(next);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn children(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// `ENODEV`: the folder was open when it was removed.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
}
