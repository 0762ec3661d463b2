//! The death matrix with real processes ([`sexton_tests::deaths`]): each death alone in its cgroups here, twenty at once
//! and a thousand in a row behind `--ignored`, and public reports by name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a step of a test fails the test")]

mod alone;
mod mass;
mod reports;
mod together;

use sexton_tests::deaths::Outcome;

#[track_caller]
fn assert_right(outcomes: &[Outcome]) {
    let wrong: Vec<String> =
        outcomes.iter().filter(|outcome| !outcome.is_right()).map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{} of {} cells are wrong:\n{}", wrong.len(), outcomes.len(), wrong.join("\n"));
}
