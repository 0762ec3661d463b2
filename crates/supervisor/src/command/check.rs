//! `supervisor check`

use std::fmt::Write;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use sexton_model::SCHEMA_VERSION;

use super::{Failure, show};
use crate::script_check::{self, Finding, MAX_BYTES, Report, Rule, Unread};

/// Some form that loses an exit code was found.
const FOUND: u8 = 1;
/// Of one line, while all others are read: the exit code is not changed.
const NOT_UNDERSTOOD: &str = "not understood, skipped: the grammar does not know this line";
/// As in `sysexits.h`: not a script, or not one that can be read to its end.
const DATA_ERROR: u8 = 65;
/// No such file.
const NO_INPUT: u8 = 66;
/// A file that may not be read.
const NOT_READABLE: u8 = 77;

/// Find the forms in shell scripts that lose an exit code
///
/// A wrapper that ends with 0 when its prover died hides every death from what is above it. Each finding comes with what
/// the status really is, and with a form that keeps the code. Scripts for sh, bash and ksh are read, never run.
#[derive(Debug, clap::Args)]
#[command(after_long_help = after_help())]
pub(super) struct CheckArgs {
    /// The scripts; `-` is standard input
    #[arg(required = true, value_name = "SCRIPT")]
    scripts: Vec<PathBuf>,
}

/// One document for all scripts.
#[derive(Debug, Serialize)]
struct Document<'a> {
    schema_version: u32,
    findings: Vec<Located<'a>>,
    /// Scripts that were not read, or not to their end.
    unread: Vec<Trouble>,
}

#[derive(Debug, Serialize)]
struct Located<'a> {
    file: &'a str,
    #[serde(flatten)]
    finding: &'a Finding,
}

/// Why a script was not read to its end.
#[derive(Debug, Clone, Serialize)]
struct Trouble {
    file: String,
    line: Option<usize>,
    column: Option<usize>,
    reason: String,
    #[serde(skip)]
    code: u8,
}

/// One script with what came of it.
struct Checked {
    file: String,
    findings: Vec<Finding>,
    troubles: Vec<Trouble>,
}

pub(super) fn check(args: &CheckArgs, json: bool) -> Result<ExitCode, Failure> {
    let checked: Vec<Checked> = args.scripts.iter().map(|script| check_one(script)).collect();
    if json {
        show::json(&document(&checked))?;
    } else {
        show::text(&page(&checked))?;
        for trouble in checked.iter().flat_map(|script| &script.troubles) {
            // Not `eprintln!`, which panics where standard error is gone.
            let _ = io::Write::write_all(&mut io::stderr(), format!("supervisor: {trouble}\n").as_bytes());
        }
    }
    Ok(ExitCode::from(code(&checked)))
}

/// What could not be read weighs more than what was found in the rest.
fn code(checked: &[Checked]) -> u8 {
    let trouble = checked.iter().flat_map(|script| &script.troubles).map(|trouble| trouble.code).max();
    let found = checked.iter().any(|script| !script.findings.is_empty());
    trouble.filter(|code| *code != 0).unwrap_or(if found { FOUND } else { 0 })
}

fn check_one(script: &Path) -> Checked {
    let file = if script == Path::new("-") { "<stdin>".to_owned() } else { calm(&script.to_string_lossy()) };
    let at = |line, column, reason, code| Trouble { file: file.clone(), line, column, reason, code };
    let whole = |reason: String, code| at(None, None, reason, code);
    let (findings, troubles) = match read(script) {
        Err(error) => {
            let code = if error.kind() == io::ErrorKind::NotFound { NO_INPUT } else { NOT_READABLE };
            (Vec::new(), vec![whole(format!("cannot read it: {error}"), code)])
        }
        Ok(text) => match script_check::check(&text) {
            Err(why) => (Vec::new(), vec![whole(why.to_string(), DATA_ERROR)]),
            Ok(Report { findings, skipped, unread }) => {
                let skipped =
                    skipped.into_iter().map(|line| at(Some(line), None, NOT_UNDERSTOOD.to_owned(), 0));
                let stopped = unread.map(|Unread { line, column, why }| {
                    at(Some(line), Some(column), why.to_owned(), DATA_ERROR)
                });
                (findings, skipped.chain(stopped).collect())
            }
        },
    };
    Checked { file, findings, troubles }
}

/// At most one byte more than is checked, so that a device without end ends.
fn read(script: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let most = MAX_BYTES as u64 + 1;
    if script == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut text)?;
    } else {
        std::fs::File::open(script)?.take(most).read_to_end(&mut text)?;
    }
    Ok(text)
}

/// A file name must not steer the terminal.
fn calm(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn document(checked: &[Checked]) -> Document<'_> {
    Document {
        schema_version: SCHEMA_VERSION,
        findings: checked
            .iter()
            .flat_map(|script| script.findings.iter().map(|finding| Located { file: &script.file, finding }))
            .collect(),
        unread: checked.iter().flat_map(|script| script.troubles.clone()).collect(),
    }
}

fn page(checked: &[Checked]) -> String {
    let mut page = String::new();
    for Checked { file, findings, .. } in checked {
        for Finding { line, column, rule, text, reason, fix } in findings {
            // Writing to a string does not fail.
            let _ =
                writeln!(page, "{file}:{line}:{column}: {rule}: {reason}\n    {text}\n    right form: {fix}");
        }
    }
    page
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

fn after_help() -> String {
    let mut text = String::from("Rules:\n");
    for rule in Rule::ALL {
        let _ = writeln!(text, "  {:<19} {}", rule.id(), rule.summary());
    }
    text.push_str(
        "\nThe comment `# sexton: allow RULE`, on the same line or the line before, silences a rule there.\n\n\
         Exit codes:\n  \
           0   nothing found\n  \
           1   something found\n  \
           65  not a shell script, larger than 1 MiB, or not to be read to its end (then what was found\n      \
               up to there is printed). A single line that is not understood is named, and changes nothing\n  \
           66  no such file\n  \
           77  a file that may not be read",
    );
    text
}
