//! `supervisor completions | man`: what an installation takes along, made from the definitions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use super::{Arguments, Failure};

/// Print a completion script
#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// For which shell
    shell: clap_complete::Shell,
}

/// Write manual pages, one a command
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// The folder to write them to, like /usr/local/share/man/man1; it is made where it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(super) fn completions(args: &CompletionsArgs) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "supervisor", &mut script);
    io::Write::write_all(&mut io::stdout().lock(), &script)
}

pub(super) fn man(args: &ManArgs) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| Failure::Failed(format!("cannot write to {path}: {error}"))
    };
    fs::create_dir_all(&args.folder).map_err(failed(&args.folder))?;
    clap_mangen::generate_to(Arguments::command(), &args.folder).map_err(failed(&args.folder))
}
