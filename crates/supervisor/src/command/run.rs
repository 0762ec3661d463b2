//! `supervisor run`

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use sexton_config::{Choice, Fault, Setting};

use super::{Failure, duration, show};
use crate::config::values::Preset;
use crate::config::{self, Flag, Loaded};
use crate::daemon::reload::Source;
use crate::daemon::{self, Settings};
use crate::place::Place;
use crate::policy::Restart;

/// Supervise a prover in the foreground
///
/// Without COMMAND: `prover serve`, with the prover beside this executable, else on PATH. Over a living run of the same
/// name it takes that run over instead of starting a second one; COMMAND is used from the next start on.
///
/// Ends with the prover's own exit code (128+n for signals, 127 not found, 126 not executable) when policy says no more
/// restarts. Stays, with the prover down, where no restart can help: after exit code 78 (configuration) or 125, too many
/// failures, or no smaller memory budget; `supervisor start` starts it again.
///
/// SIGTERM and SIGINT stop the prover first, then end with 0. Each further one hastens that: first it no longer waits for the
/// prover's work, then it kills.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    settings: SettingArgs,
}

/// Flags that stand for keys of the configuration.
#[derive(Debug, clap::Args)]
pub(super) struct SettingArgs {
    /// Whose defaults hold [config: prover.preset] [default: bundled without COMMAND, else generic]
    #[arg(long, value_enum)]
    preset: Option<Preset>,
    /// When to restart the prover after it ends by itself [config: restart.policy] [default: on-failure]
    #[arg(long, value_enum)]
    restart: Option<Restart>,
    /// Time between SIGTERM and SIGKILL when the prover is stopped [config: stop.exit_timeout] [default: 90s]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    stop_timeout: Option<Duration>,
    /// Delay before the first restart; it doubles with each one [config: restart.delay] [default: 1s]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    backoff: Option<Duration>,
    /// Longest delay before a restart [config: restart.delay_max] [default: 60s]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    backoff_max: Option<Duration>,
    /// A run that lasts this long resets the delay [config: restart.stable_after] [default: 60s]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    stable_after: Option<Duration>,
    /// Failures within --period after which it stays down until `supervisor start`; 0 stands for any number
    /// [config: restart.intensity] [default: 30]
    #[arg(long, value_name = "N")]
    intensity: Option<u32>,
    /// See --intensity [config: restart.period] [default: 1h]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    period: Option<Duration>,
    /// Let the prover dump core (by default its soft limit is 0) [config: prover.core_dumps]
    #[arg(long)]
    core: bool,
    /// Trace who sends SIGKILL on this host (needs root; makes a small tracefs instance named "sexton")
    /// [config: prover.signal_trace]
    #[arg(long)]
    signal_trace: bool,
    /// The prover and its arguments [config: prover.command]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl SettingArgs {
    fn flags(&self) -> [Flag; 11] {
        let on = |is: bool| is.then_some(true).write();
        let command = (!self.command.is_empty()).then(|| self.command.clone());
        [
            ("prover", "preset", "--preset", self.preset.write()),
            ("restart", "policy", "--restart", self.restart.write()),
            ("stop", "exit_timeout", "--stop-timeout", self.stop_timeout.write()),
            ("restart", "delay", "--backoff", self.backoff.write()),
            ("restart", "delay_max", "--backoff-max", self.backoff_max.write()),
            ("restart", "stable_after", "--stable-after", self.stable_after.write()),
            ("restart", "intensity", "--intensity", self.intensity.write()),
            ("restart", "period", "--period", self.period.write()),
            ("prover", "core_dumps", "--core", on(self.core)),
            ("prover", "signal_trace", "--signal-trace", on(self.signal_trace)),
            ("prover", "command", "COMMAND", command.write()),
        ]
    }

    /// The configuration with these flags over it.
    pub(super) fn load(&self, file: Option<&Path>) -> Result<Loaded, config::Faults> {
        let mut loaded = config::load(file, self.flags())?;
        if !self.command.is_empty() {
            // TOML would have made text of it.
            loaded.config.prover.command.clone_from(&self.command);
        }
        Ok(loaded)
    }
}

pub(super) async fn run(place: Place, args: RunArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let loaded = args.settings.load(file)?;
    for warning in &loaded.warnings {
        let _ = show::complaint(warning);
    }
    let command = command(&loaded)?;
    let (settings, file) = (args.settings, file.map(Path::to_owned));
    let source = Source::new(move || {
        let loaded = settings.load(file.as_deref())?;
        let command = self::command(&loaded)?;
        Ok((loaded.config, command))
    });
    Ok(daemon::run(Settings { place, config: loaded.config, command, source }).await?)
}

/// Program and arguments: those given, else those of the preset.
fn command(loaded: &Loaded) -> Result<Vec<OsString>, config::Faults> {
    let given = &loaded.config.prover.command;
    match loaded.config.preset() {
        _ if !given.is_empty() => Ok(given.clone()),
        Preset::Bundled => Ok(vec![bundled_prover().into(), "serve".into()]),
        other => Err(config::Faults(vec![Fault {
            origin: loaded.origin("prover.preset"),
            key: "prover.preset".to_owned(),
            message: format!(
                "\"{}\" has no command of its own: set prover.command, or give -- COMMAND",
                other.name()
            ),
        }])),
    }
}

fn bundled_prover() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("prover")));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| "prover".into())
}
