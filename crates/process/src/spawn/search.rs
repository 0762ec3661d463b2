//! Where a program is looked for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where `execvp(3)` would find `program`: itself when it holds a slash, else the first executable file of that name
/// on `path`; where there is none, a file of that name that is not executable; else a path that does not exist, so that
/// executing it fails with the errno that says so.
pub fn find_program(program: &OsStr, path: Option<&OsStr>) -> PathBuf {
    if program.as_bytes().contains(&b'/') || program.is_empty() {
        return PathBuf::from(program);
    }
    let path = path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let is_executable = |file: &Path| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    // A plain name would be looked for in the working folder by execve.
    let missing = || PathBuf::from(OsString::from_vec([b"/nonexistent/", program.as_bytes()].concat()));
    let found = |fits: &dyn Fn(&Path) -> bool| {
        std::env::split_paths(path).map(|folder| folder.join(program)).find(|file| fits(file))
    };
    found(&is_executable).or_else(|| found(&|file| file.is_file())).unwrap_or_else(missing)
}
