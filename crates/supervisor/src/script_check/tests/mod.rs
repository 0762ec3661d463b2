//! One table of examples drives the checker and real shells.

mod allowed;
mod examples;
mod hostile;
mod quiet;
mod real_shells;

use super::{Finding, Report, check};

fn report(script: &str) -> Report {
    check(script.as_bytes()).unwrap_or_else(|error| panic!("{error}: {script}"))
}

fn findings(script: &str) -> Vec<Finding> {
    report(script).findings
}
