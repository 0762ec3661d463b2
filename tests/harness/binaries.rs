//! Our programs, as built, and as new as their sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const ADVICE: &str =
    "run scripts/test, or cargo build --workspace --bins (with --release for tests of that profile)";

/// Path of our program `name`, of the profile that this test was built with.
///
/// # Panics
/// When it is missing, or older than a source file it was built from: testing yesterday's program proves nothing.
/// Cargo lists those files beside the program (`NAME.d`). It builds the binaries of one package before the tests of
/// that package only, so nothing else would notice.
#[track_caller]
pub fn binary(name: &str) -> PathBuf {
    let program = target_folder().join(name);
    let built = modified(&program).unwrap_or_else(|| panic!("{} is missing: {ADVICE}", program.display()));
    let listing = program.with_extension("d");
    let dependencies = fs::read_to_string(&listing)
        .unwrap_or_else(|error| panic!("{}: {error}: {ADVICE}", listing.display()));
    // Manifests are not compared: Cargo does not rebuild for an edit of one that changes nothing for the program, and
    // then no build would ever make it new enough.
    for source in sources(&dependencies) {
        match modified(&source) {
            Some(edited) if edited <= built => {}
            Some(_) => panic!("{} is older than {}: {ADVICE}", program.display(), source.display()),
            None => {
                panic!("{} was built from {}, which is gone: {ADVICE}", program.display(), source.display())
            }
        }
    }
    program
}

/// The folder of the workspace.
pub fn workspace_root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// `target/PROFILE`: tests run from its `deps`.
pub(crate) fn target_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let deps = test.parent().expect("a folder around this test");
    let folder = if deps.ends_with("deps") { deps.parent() } else { Some(deps) };
    folder.expect("a folder around deps").to_owned()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// Make's form: `PROGRAM: SOURCE SOURCE …`, with spaces in names escaped by a backslash.
fn sources(dependencies: &str) -> Vec<PathBuf> {
    let Some((_, sources)) = dependencies.lines().next().and_then(|line| line.split_once(": ")) else {
        return Vec::new();
    };
    let placeholder = "\u{0}";
    sources
        .replace("\\ ", placeholder)
        .split_whitespace()
        .map(|source| PathBuf::from(source.replace(placeholder, " ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_separated_by_spaces_that_are_not_escaped() {
        let listed = sources("/t/debug/prover: /w/a.rs /w/my\\ folder/b.rs\n");
        assert_eq!(listed, [Path::new("/w/a.rs"), Path::new("/w/my folder/b.rs")]);
    }
}
