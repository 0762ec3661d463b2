//! Configuration: the supervisor's part of `sexton.toml`, with flags and environment over it.
//!
//! ```text
//! let loaded = config::load(Some(path), config::flags([...]))?;   // every fault, or
//! loaded.config.restart.delay                                      // a plain struct
//! config::reload(&old.config, &new.config)                         // what SIGHUP may change
//! ```
//!
//! | module | part |
//! |---|---|
//! | [`sections`] | every key |
//! | [`values`] | types of keys |
//! | [`preset`] | defaults by the kind of prover |
//! | [`checks`] | values that cannot be meant together |

pub mod checks;
pub mod preset;
pub mod sections;
pub mod settings;
pub mod values;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sexton_config::changes::Change;
use sexton_config::toml::Value;
use sexton_config::{Applies, Effective, Fault, Layer, Origin, changes, find, layer};

pub use sections::Config;
use values::Preset;

/// A flag that stands for a key: section, key, the flag as it is typed, its value.
pub type Flag = (&'static str, &'static str, &'static str, Option<Value>);

/// A configuration that was read.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// Where each was set.
    pub effective: Vec<Effective>,
    /// The file; `None`: there is none.
    pub file: Option<PathBuf>,
    /// What a careful owner would change.
    pub warnings: Vec<Fault>,
}

impl Loaded {
    /// Where a key was set: `restart.delay`.
    pub fn origin(&self, key: &str) -> Origin {
        let entry = self.effective.iter().find(|entry| entry.path == key);
        entry.map_or(Origin::Default, |entry| entry.origin.clone())
    }
}

/// Everything that is wrong with a configuration, one line each. Exit code 78.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Faults(pub Vec<Fault>);

/// The file that is read: `given`, else the first that is there.
pub fn place(given: Option<&Path>) -> find::Place {
    find::locate(given, |name| std::env::var_os(name))
}

/// Reads the configuration of this process: `flags` before its environment before the file before the preset.
///
/// # Errors
/// Every fault of all of them.
pub fn load(given: Option<&Path>, flags: impl IntoIterator<Item = Flag>) -> Result<Loaded, Faults> {
    load_in(given, flags, &|name| std::env::var_os(name))
}

/// As [`load`], in an environment that `variable` tells of.
///
/// # Errors
/// Every fault.
pub fn load_in(
    given: Option<&Path>,
    flags: impl IntoIterator<Item = Flag>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Loaded, Faults> {
    let file = find::locate(given, variable).file;
    let text = file.as_deref().map(find::read).transpose().map_err(|fault| Faults(vec![fault]))?;
    let (text, warnings) = text.map(|read| (read.text, read.warnings)).unwrap_or_default();
    let path = file.clone().unwrap_or_default();
    let (of_file, mut faults) = Layer::of_file::<Config>(&path, &text);
    let of_environment = Layer::of_environment::<Config>(variable).unwrap_or_else(|inner| {
        faults.extend(inner);
        Layer::default()
    });
    let set = flags
        .into_iter()
        .filter_map(|(section, key, flag, value)| Some((section, key, Origin::Flag { flag }, value?)));
    let mut layers = vec![Layer::of(set), of_environment, of_file];
    layers.extend(preset_layers(&layers));
    let loaded = layer::load(&layers, faults, checks::contradictions).map_err(Faults)?;
    Ok(Loaded { config: loaded.config, effective: loaded.effective, file, warnings })
}

/// The documented example, `scripts/sexton.toml`.
pub fn example() -> String {
    sexton_config::show::example::<Config>(HEAD)
}

/// Its first lines.
const HEAD: &[&str] = &[
    "sexton.toml: the configuration of Sexton's supervisor, with every key.",
    "",
    "The file is the one named by --config or SEXTON_CONFIG, else $XDG_CONFIG_HOME/sexton/sexton.toml, else \
     /etc/sexton/sexton.toml.",
    "",
    "A value is taken from a flag, else from the variable named with the key, else from this file, else from the \
     preset, else it is the default. Lines that begin with #key show the default, or an example where the default is \
     none. Lists and tables replace the default as a whole. Sizes and durations are texts with a unit.",
    "",
    "Changes count when the supervisor gets SIGHUP, unless something else is said with the key.",
    "",
    "  supervisor config print       each value in force and where it was set",
    "  supervisor config validate    every fault, with file, line and key",
];

/// What the preset sets, and, where nobody chose it, which one it is and why.
fn preset_layers(layers: &[Layer]) -> Vec<Layer> {
    let chosen = layer::peek::<sections::Prover, Option<Preset>>(layers, "preset").flatten();
    let command = layer::peek::<sections::Prover, Vec<OsString>>(layers, "command");
    let (preset, reason) = match (chosen, command.is_some_and(|command| !command.is_empty())) {
        (Some(preset), _) => (preset, ""),
        (None, false) => (Preset::Bundled, "no command is given"),
        (None, true) => (Preset::Generic, "a command is given"),
    };
    let (name, text) = preset.layer();
    // A test reads every preset.
    let (values, _) = Layer::of_preset::<Config>(name, text);
    let derived = ("prover", "preset", Origin::Derived { reason }, Value::String(name.to_owned()));
    vec![Layer::of([derived]), values]
}

/// What a file that was read again changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// These count at once.
    pub now: Vec<Change>,
    /// These from the next start of the prover on.
    pub next_start: Vec<Change>,
    /// These only when the supervisor is started anew; until then the old ones hold.
    pub restart: Vec<Change>,
}

/// What differs between the configuration in force and one that was read again.
pub fn reload(old: &Config, new: &Config) -> Changes {
    let mut changes_ = Changes::default();
    for change in changes::between(old, new) {
        match change.applies {
            Applies::Now => changes_.now.push(change),
            Applies::NextStart => changes_.next_start.push(change),
            Applies::Restart => changes_.restart.push(change),
        }
    }
    changes_
}
