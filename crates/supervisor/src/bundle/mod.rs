//! `supervisor diag`: everything that a post-mortem wants in one archive, and the way back from such an archive to a
//! verdict (`supervisor why --bundle`).
//!
//! ```text
//! parts ── gather, each in bounded time ──► Writer (tar.gz, bounded size) ──► FILE
//!                      └─ findings: found, absent, unreadable
//! FILE ── read, bounded, nothing written ──► facts of each run ──► diagnosis::death
//! ```
//!
//! | module | part |
//! |---|---|
//! | [`part`] | what a part is: files, and findings about them |
//! | [`records`] | the runs and the journal |
//! | [`host`] | cgroups, memory, mounts, kernel log, processes |
//! | [`secrets`] | what of the environment and of command lines may be shown |
//! | [`write`] | the archive |
//! | [`read`] | an archive that may be anybody's |

pub mod host;
pub mod part;
pub mod read;
pub mod records;
pub mod secrets;
pub mod write;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sexton_model::{SCHEMA_VERSION, Timestamp};

use crate::bounded;
use crate::doctor::{Report, Sight, sight::Subject};
use crate::place::Place;
use part::{Answer, Finding, Part};
use write::{WriteError, Writer};

/// The folder in the archive that everything is in.
pub const TOP: &str = "sexton-bundle";
/// Name of the file that makes an archive a bundle.
pub const MANIFEST: &str = "bundle.json";
/// What the manifest's `format` says.
pub const FORMAT: &str = "sexton-bundle";

/// How long one part may take, and all of them.
const PART_PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(25);

/// What to gather.
#[derive(Debug, Clone)]
pub struct Order {
    /// Of which prover.
    pub place: Place,
    /// Whose cgroup and processes.
    pub subject: Subject,
    /// How many runs, the newest first.
    pub runs: usize,
    /// The whole, unpacked, bytes.
    pub most_bytes: u64,
}

/// `bundle.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// [`FORMAT`].
    pub format: String,
    /// Of the supervisor that made it.
    pub version: String,
    /// Name of the supervised prover.
    pub name: String,
    /// When.
    pub at: Timestamp,
}

/// Gathers and writes everything. What cannot be had is a finding, and no error.
///
/// # Errors
/// Where the archive cannot be written.
pub fn make(order: &Order, writer: &mut Writer<impl std::io::Write>) -> Result<Vec<Finding>, WriteError> {
    let end = Instant::now() + PATIENCE;
    let mut findings = Vec::new();
    writer.part(manifest(order), &mut findings)?;
    for (name, gather) in parts(order) {
        let patience = PART_PATIENCE.min(end.saturating_duration_since(Instant::now()));
        let part = bounded::within(patience, gather).unwrap_or_else(|| {
            let detail = format!("no answer within {:.1} s: left out", patience.as_secs_f64());
            Part::finding(name, Answer::Unreadable, detail)
        });
        writer.part(part, &mut findings)?;
    }
    writer.findings(&findings)?;
    Ok(findings)
}

fn manifest(order: &Order) -> Part {
    let manifest = Manifest {
        schema_version: SCHEMA_VERSION,
        format: FORMAT.to_owned(),
        version: crate::VERSION.to_owned(),
        name: order.place.name.clone(),
        at: Timestamp::now(),
    };
    let mut part = Part::default();
    part.json(MANIFEST, &manifest);
    part
}

type Gather = Box<dyn FnOnce() -> Part + Send>;

/// The records first: they are what cannot be had again.
fn parts(order: &Order) -> Vec<(&'static str, Gather)> {
    let Order { place, subject, runs, .. } = order.clone();
    let (runs_dir, journal) = (place.runs_dir(), place.journal());
    let window_dir = runs_dir.clone();
    let name = place.name.clone();
    vec![
        ("runs", Box::new(move || records::runs(&runs_dir, runs)) as Gather),
        ("journal", Box::new(move || records::journal(&journal))),
        ("host", Box::new(move || host::files(subject))),
        ("processes", Box::new(move || host::processes(subject))),
        ("kernel_log", Box::new(move || host::kernel_log(records::earliest_mark(&window_dir, runs)))),
        ("environment", Box::new(|| secrets::environment(std::env::vars_os()))),
        ("doctor", Box::new(move || doctor(&name, &Sight::read(&place, subject)))),
        ("gpu", Box::new(host::gpu)),
        ("versions", Box::new(host::versions)),
    ]
}

fn doctor(name: &str, sight: &Sight) -> Part {
    let report = Report::of(name, sight);
    let mut part = Part::default();
    part.json("doctor.json", &report);
    part.file("doctor.txt", report.page().into_bytes());
    part.add("doctor", Answer::Found, format!("worst line: {}", report.level));
    part
}
