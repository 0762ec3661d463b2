//! Tests that cannot run here say so.

use std::fmt::Display;
use std::io::Write;

/// Why a test cannot run on this machine.
#[derive(Debug)]
pub struct Skip(pub String);

/// Ends a test early where something is missing: `let Some(cgroup) = V1Cgroup::new("freezer").or_skip() else { return };`.
pub trait OrSkip<T> {
    /// The value; or prints `skipped: NAME: why` and returns none.
    fn or_skip(self) -> Option<T>;
}

impl<T> OrSkip<T> for Result<T, Skip> {
    fn or_skip(self) -> Option<T> {
        self.map_err(|skip| skip.report()).ok()
    }
}

impl Skip {
    /// With the thing that was needed and the error met.
    pub fn because(needed: impl Display, error: impl Display) -> Self {
        Self(format!("{needed}: {error}"))
    }

    /// Prints `skipped: NAME: why`. Not with `eprintln!`: the test runner swallows the output of tests that pass. It names
    /// its threads after the tests.
    pub fn report(&self) {
        let thread = std::thread::current();
        let _ = writeln!(std::io::stderr(), "skipped: {}: {}", thread.name().unwrap_or("?"), self.0);
    }
}
