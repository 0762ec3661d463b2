//! `supervisor config`

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use sexton_config::{Fault, show as page};
use sexton_model::SCHEMA_VERSION;

use super::color::Paint;
use super::run::SettingArgs;
use super::{CONFIGURATION, Failure, show};
use crate::config::{self, Config, Faults, Loaded};
use crate::terminal;

/// Show, check and explain the configuration
#[derive(Debug, clap::Subcommand)]
pub(super) enum ConfigCommand {
    /// Show each value in force and where it was set
    ///
    /// With the flags and the COMMAND of a `supervisor run`, which set values as well. What is printed is a file that
    /// sets the same values.
    Print(#[command(flatten)] Box<SettingArgs>),
    /// Look for faults, in FILE alone or in all that is read
    ///
    /// Each fault is one line: FILE:LINE: section.key: what is wrong, what to do. Exit code 78 where there is one.
    Validate {
        /// A file to look at, and nothing else
        file: Option<PathBuf>,
    },
    /// Show which file is read
    Path,
    /// Print a documented file with every key
    Example,
}

/// `config validate --json`.
#[derive(Debug, Serialize)]
struct Validated<'a> {
    schema_version: u32,
    file: Option<&'a Path>,
    faults: &'a [Fault],
    warnings: &'a [Fault],
}

pub(super) fn config(
    command: &ConfigCommand,
    file: Option<&Path>,
    json: bool,
    paint: Paint,
) -> Result<ExitCode, Failure> {
    match command {
        ConfigCommand::Print(args) => print(&args.load(file)?, json, paint)?,
        ConfigCommand::Validate { file: Some(alone) } => {
            return validate(Some(alone), config::load_in(Some(alone), [], &|_| None), json);
        }
        ConfigCommand::Validate { file: None } => {
            return validate(config::place(file).file.as_deref(), config::load(file, []), json);
        }
        ConfigCommand::Path => return path(file, json),
        ConfigCommand::Example => show::text(&config::example())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(loaded: &Loaded, json: bool, paint: Paint) -> io::Result<()> {
    warn(&loaded.warnings);
    if json {
        return show::json(&page::json(loaded.file.as_deref(), &loaded.effective));
    }
    let text = terminal::calm(&page::toml::<Config>(&loaded.effective));
    let line = |line: &str| match line.rfind("# ") {
        _ if line.starts_with('[') => paint.bold(line),
        Some(at) => format!("{}{}", &line[..at], paint.dim(&line[at..])),
        None => line.to_owned(),
    };
    show::painted(&text.lines().map(|text| line(text) + "\n").collect::<String>())
}

fn validate(file: Option<&Path>, result: Result<Loaded, Faults>, json: bool) -> Result<ExitCode, Failure> {
    let (faults, warnings) = match result {
        Ok(loaded) => (Vec::new(), loaded.warnings),
        Err(Faults(faults)) => (faults, Vec::new()),
    };
    let is_right = faults.is_empty();
    if json {
        let schema_version = SCHEMA_VERSION;
        show::json(&Validated { schema_version, file, faults: &faults, warnings: &warnings })?;
    } else if is_right {
        warn(&warnings);
        let what = file.map_or("no file".to_owned(), |file| terminal::calm_line(&file.display().to_string()));
        show::text(&format!("{what}: ok\n"))?;
    } else {
        let _ = show::faults(&faults);
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::from(CONFIGURATION) })
}

fn path(file: Option<&Path>, json: bool) -> Result<ExitCode, Failure> {
    let place = config::place(file);
    if json {
        show::json(&serde_json::json!({
            "schema_version": SCHEMA_VERSION,
            "file": place.file,
            "candidates": place.candidates,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(file) = place.file else {
        let looked: Vec<String> = place.candidates.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::Failed(format!("there is no file: looked for {}", looked.join(" and "))));
    };
    show::text(&format!("{}\n", terminal::calm_line(&file.display().to_string())))?;
    Ok(ExitCode::SUCCESS)
}

fn warn(warnings: &[Fault]) {
    for warning in warnings {
        let _ = show::complaint(&format!("warning: {warning}"));
    }
}
