//! `supervisor diag`

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::Serialize;
use sexton_model::SCHEMA_VERSION;
use sexton_model::units::Bytes;

use super::{Failure, doctor, show};
use crate::bundle::part::{Answer, Finding};
use crate::bundle::write::Writer;
use crate::bundle::{Order, make};
use crate::place::Place;

/// Gather everything for a post-mortem in one archive
///
/// Records, journal, the end of each output, processes, cgroups, memory, kernel log, environment by allow-list, and what
/// `supervisor doctor` says. What could not be had stands in its findings.txt beside what was found. Takes half a minute
/// at most. Output and arguments of the prover are in it: look through it before you pass it on.
///
/// `supervisor why --bundle FILE` judges its runs again.
#[derive(Debug, clap::Args)]
pub(super) struct DiagArgs {
    /// Where to: a .tar.gz, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace FILE where it exists
    #[arg(long)]
    force: bool,
    /// How many runs, the newest ones
    #[arg(long, value_name = "N", default_value_t = 10)]
    runs: usize,
    /// Most bytes before compression; what exceeds that is cut, and said to be
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    max_size: Bytes,
}

/// What `supervisor why --bundle` unpacks, less room for headers and findings.
const LARGEST: Bytes = Bytes(crate::bundle::read::UNPACKED_MAX * 3 / 4);

fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: sexton_model::units::UnitError| error.to_string())?;
    if size > LARGEST { Err(format!("more than {LARGEST}")) } else { Ok(size) }
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct Made<'a> {
    schema_version: u32,
    path: &'a Path,
    bytes: u64,
    findings: &'a [Finding],
}

pub(super) async fn diag(place: &Place, args: &DiagArgs, json: bool) -> Result<(), Failure> {
    let subject = doctor::subject(place).await;
    let order = Order { place: place.clone(), subject, runs: args.runs, most_bytes: args.max_size.0 };
    if args.output == Path::new("-") {
        return to_stdout(&order);
    }
    let path = &args.output;
    let cannot = |error: io::Error| Failure::Failed(format!("cannot write {}: {error}", path.display()));
    let taken =
        || Failure::Failed(format!("{} is there already: give another name, or --force", path.display()));
    // Only a regular file is ever replaced: a rename would put the archive where a device or a link was.
    if let Ok(there) = path.symlink_metadata() {
        if !args.force {
            return Err(taken());
        }
        if !there.is_file() {
            let path = path.display();
            return Err(Failure::Failed(format!(
                "{path} is not a regular file, and is left alone: give another name"
            )));
        }
    }
    let draft = Draft::beside(path).map_err(cannot)?;
    let mut writer = Writer::new(io::BufWriter::new(&draft.file), order.most_bytes);
    let made = make(&order, &mut writer).and_then(|findings| {
        writer.finish()?.flush()?;
        Ok(findings)
    });
    let findings = made.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    let bytes = draft.publish(path, args.force).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => taken(),
        _ => cannot(error),
    })?;
    if json {
        return Ok(show::json(&Made { schema_version: SCHEMA_VERSION, path, bytes, findings: &findings })?);
    }
    Ok(show::text(&format!("{}: {}\n{}\n", path.display(), Bytes(bytes), summary(&findings)))?)
}

fn to_stdout(order: &Order) -> Result<(), Failure> {
    let out = io::stdout().lock();
    if out.is_terminal() {
        return Err(Failure::Failed("an archive is nothing for a terminal: redirect it".to_owned()));
    }
    let mut writer = Writer::new(out, order.most_bytes);
    let findings = make(order, &mut writer).and_then(|findings| {
        writer.finish()?.flush()?;
        Ok(findings)
    });
    show::complaint(&summary(&findings.map_err(|error| Failure::Failed(error.to_string()))?))?;
    Ok(())
}

fn summary(findings: &[Finding]) -> String {
    let count = |answer| findings.iter().filter(|finding| finding.answer == answer).count();
    let [found, cut, absent, unreadable] =
        [Answer::Found, Answer::Truncated, Answer::Absent, Answer::Unreadable].map(count);
    format!(
        "{found} found, {cut} in part, {absent} absent, {unreadable} unreadable (findings.txt in it says which)"
    )
}

/// An archive that is not whole yet. Dropped, it is removed.
struct Draft {
    file: File,
    path: PathBuf,
}

impl Draft {
    fn beside(path: &Path) -> io::Result<Self> {
        let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        let path = path.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { file, path })
    }

    /// Gives it its name, durably. Its size, bytes.
    fn publish(self, path: &Path, replace: bool) -> io::Result<u64> {
        self.file.sync_all()?;
        if replace {
            fs::rename(&self.path, path)?;
        } else {
            match renameat_with(CWD, &self.path, CWD, path, RenameFlags::NOREPLACE) {
                // A file system without that: somebody else has a moment to be there first.
                Err(Errno::INVAL | Errno::NOSYS) => fs::rename(&self.path, path)?,
                other => other?,
            }
        }
        Ok(self.file.metadata()?.len())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Mostly it has its own name by now.
        let _ = fs::remove_file(&self.path);
    }
}
