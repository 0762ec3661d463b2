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
/// Cargo builds the binaries of a package before the tests of that package only, so nothing else would notice.
#[track_caller]
pub fn binary(name: &str) -> PathBuf {
    let program = target_folder().join(name);
    match check_fresh(&program) {
        Ok(()) => program,
        Err(why) => panic!("{} {why}: {ADVICE}", program.display()),
    }
}

/// Compares a program with the sources that Cargo lists beside it (`NAME.d`). Manifests are not among them: Cargo does
/// not rebuild for an edit of one that changes nothing for the program, and then no build would make it new enough.
fn check_fresh(program: &Path) -> Result<(), String> {
    let built = modified(program).ok_or("is missing")?;
    let listing = program.with_extension("d");
    let dependencies =
        fs::read_to_string(&listing).map_err(|error| format!("has no {}: {error}", listing.display()))?;
    sources(&dependencies).into_iter().try_for_each(|source| match modified(&source) {
        Some(edited) if edited <= built => Ok(()),
        Some(_) => Err(format!("is older than {}", source.display())),
        None => Err(format!("was built from {}, which is gone", source.display())),
    })
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn sources_are_separated_by_spaces_that_are_not_escaped() {
        let listed = sources("/t/debug/prover: /w/a.rs /w/my\\ folder/b.rs\n");
        assert_eq!(listed, [Path::new("/w/a.rs"), Path::new("/w/my folder/b.rs")]);
    }

    #[test]
    fn missing_and_stale_programs_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let program = path("prover");
        let set_age = |name: &str, seconds| {
            let file = fs::File::options().append(true).create(true).open(path(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        let verdict = || check_fresh(&program).unwrap_err();

        assert_eq!(verdict(), "is missing");
        set_age("prover", 100);
        assert!(verdict().starts_with("has no "), "{}", verdict());
        fs::write(path("prover.d"), format!("prover: {}\n", path("main.rs").display())).unwrap();
        assert!(verdict().ends_with("which is gone"), "{}", verdict());
        set_age("main.rs", 99);
        assert_eq!(check_fresh(&program), Ok(()));
        set_age("main.rs", 101);
        assert!(verdict().starts_with("is older than"), "{}", verdict());
    }
}
