//! Types of keys that only the supervisor has.

use std::path::PathBuf;

use sexton_config::setting::{Name, Setting, read_string, wrong_type};
use sexton_config::toml::{Table, Value};
use sexton_config::{Node, Problem, Raw, choices};
use sexton_control::target::Target;
use sexton_model::units::Bytes;
use sexton_model::wait::signal_name;
use sexton_process::limits;

use crate::policy::{Restart, Rule};

/// Whose defaults hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Preset {
    /// Sexton's own prover.
    Bundled,
    /// Filecoin's proving daemon.
    Cuzk,
    /// Any command.
    Generic,
}

/// What to do when another process of the prover's cgroup was killed for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberOom {
    /// An event.
    Report,
    /// An orderly stop and a start.
    Restart,
    /// SIGKILL to what is left, which then counts as a failure.
    Kill,
}

/// What to do besides an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing.
    Report,
    /// Stop and start.
    Restart,
}

/// How a prover shows that it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadyProbe {
    /// It is ready as soon as its program runs.
    None,
    /// By `READY=1`, sd_notify(3).
    Notify,
    /// By answering 200.
    Http,
    /// By answering with a status document.
    Status,
}

/// How a prover is brought to finish its work before it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiesce {
    /// Not at all.
    None,
    /// It is asked to, over HTTP.
    Http,
    /// Its status is watched until it has no work left.
    Watch,
    /// By a command.
    Command,
}

/// What becomes of processes of a run that outlive its main one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOver {
    /// They are stopped too: by SIGTERM, then by SIGKILL.
    Stop,
    /// They are named, and go on.
    Leave,
}

/// Whether the prover gets a cgroup of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupCreate {
    /// Where that is possible.
    Auto,
    /// Or it does not start.
    Always,
    /// No.
    Never,
}

/// Whether events go to journald.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journald {
    /// Where it is there.
    Auto,
    /// No.
    Never,
}

choices! {
    Preset { "bundled" = Bundled, "cuzk" = Cuzk, "generic" = Generic }
    Restart { "always" = Always, "on-failure" = OnFailure, "never" = Never }
    Rule { "restart" = Restart, "stop" = Stop, "fail" = Fail }
    MemberOom { "report" = Report, "restart" = Restart, "kill" = Kill }
    Reaction { "report" = Report, "restart" = Restart }
    ReadyProbe { "none" = None, "notify" = Notify, "http" = Http, "status" = Status }
    Quiesce { "none" = None, "http" = Http, "watch" = Watch, "command" = Command }
    LeftOver { "stop" = Stop, "leave" = Leave }
    CgroupCreate { "auto" = Auto, "always" = Always, "never" = Never }
    Journald { "auto" = Auto, "never" = Never }
}

/// A signal by its number, written by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopSignal(pub i32);

impl StopSignal {
    /// What a program expects.
    pub const SIGTERM: Self = Self(15);
}

impl Setting for StopSignal {
    fn kind() -> String {
        "a signal that ends a program, like \"SIGTERM\"".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        read_string(node, |text| {
            let name = text.strip_prefix("SIG").unwrap_or(text);
            let is_it = |signal: &i32| signal_name(*signal).strip_prefix("SIG") == Some(name);
            // SIGKILL is no polite wish, and SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG and SIGWINCH
            // end no program by themselves (signal(7)).
            (1..=64)
                .find(is_it)
                .filter(|signal| ![9, 17, 18, 19, 20, 21, 22, 23, 28].contains(signal))
                .map(Self)
                .ok_or_else(|| format!("\"{text}\" will not do: write {}", Self::kind()))
        })
    }

    fn write(&self) -> Option<Value> {
        Some(Value::String(signal_name(self.0)))
    }
}

/// A step of the ladder of memory budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many percent of the budget, 1 to 100.
    Percent(u8),
    /// So much.
    Size(Bytes),
}

impl Step {
    /// The step in bytes, of a whole `budget`; `None`: a share of a budget that is not known.
    pub fn bytes(self, budget: Option<Bytes>) -> Option<Bytes> {
        match self {
            Self::Size(size) => Some(size),
            Self::Percent(percent) => {
                let bytes = u128::from(budget?.0) * u128::from(percent) / 100;
                u64::try_from(bytes).ok().map(Bytes)
            }
        }
    }
}

impl Setting for Step {
    fn kind() -> String {
        "a share like \"85%\" or a size like \"300GiB\"".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        read_string(node, |text| {
            let Some(share) = text.strip_suffix('%') else {
                return text
                    .parse()
                    .map(Self::Size)
                    .map_err(|_| format!("\"{text}\" is no step: write {}", Self::kind()));
            };
            let percent = share.trim_end().parse().ok().filter(|percent| (1..=100).contains(percent));
            percent
                .map(Self::Percent)
                .ok_or_else(|| format!("\"{text}\" is no share: write a whole number from 1% to 100%"))
        })
    }

    fn write(&self) -> Option<Value> {
        match self {
            Self::Percent(percent) => Some(Value::String(format!("{percent}%"))),
            Self::Size(size) => size.write(),
        }
    }
}

/// A file that is written before each start, with the budget filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Read, with `{budget_bytes}` and `{budget_gib}` in it.
    pub source: PathBuf,
    /// Written.
    pub target: PathBuf,
}

impl Setting for Template {
    fn kind() -> String {
        "a table { source = FILE, target = FILE }".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        let Raw::Table(entries) = &node.raw else { return Err(wrong_type::<Self>(node)) };
        let mut problems: Vec<Problem> = entries
            .iter()
            .filter(|(name, _)| !["source", "target"].contains(&name.as_str()))
            .map(|(name, entry)| {
                Problem::at(entry.line, "no such key: the keys are source, target").under(&format!(".{name}"))
            })
            .collect();
        let mut path = |name: &str| match entries.get(name).map(|entry| PathBuf::read(&entry.node)) {
            Some(Ok(path)) => Some(path),
            Some(Err(inner)) => {
                problems.extend(inner.into_iter().map(|problem| problem.under(&format!(".{name}"))));
                None
            }
            None => {
                problems.push(Problem::at(node.line, format!("{name} is missing: write {}", Self::kind())));
                None
            }
        };
        match (path("source"), path("target")) {
            (Some(source), Some(target)) if problems.is_empty() => Ok(Self { source, target }),
            _ => Err(problems),
        }
    }

    fn write(&self) -> Option<Value> {
        let entry = |name: &str, path: &PathBuf| Some((name.to_owned(), path.write()?));
        let entries = [entry("source", &self.source), entry("target", &self.target)];
        Some(Value::Table(entries.into_iter().flatten().collect::<Table>()))
    }
}

/// `oom_score_adj`, see proc_pid_oom_score_adj(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OomScoreAdj(pub i32);

impl Setting for OomScoreAdj {
    fn kind() -> String {
        "a whole number from -1000 to 1000".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        match node.raw {
            Raw::Integer(number @ -1000..=1000) => Ok(Self(number as i32)),
            _ => Err(wrong_type::<Self>(node)),
        }
    }

    fn write(&self) -> Option<Value> {
        self.0.write()
    }
}

/// Numbers of NUMA nodes, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes(pub Vec<u32>);

/// The kernel's own bound (MAX_NUMNODES).
const NODES_MAX: u32 = 1024;

impl Setting for Nodes {
    fn kind() -> String {
        "NUMA nodes like \"0-1\" or \"0,2\"".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        read_string(node, |text| {
            let number = |text: &str| text.trim().parse::<u32>().ok().filter(|node| *node < NODES_MAX);
            let range = |part: &str| {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(first..=last)
            };
            let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
            let mut nodes: Vec<u32> = ranges
                .ok_or_else(|| format!("\"{text}\" is no list of nodes: write {}", Self::kind()))?
                .into_iter()
                .flatten()
                .collect();
            nodes.sort_unstable();
            nodes.dedup();
            Ok::<_, String>(Self(nodes))
        })
    }

    fn write(&self) -> Option<Value> {
        let ranges = self.0.chunk_by(|a, b| a + 1 == *b).filter_map(|run| match run {
            [one] => Some(one.to_string()),
            [first, .., last] => Some(format!("{first}-{last}")),
            [] => None,
        });
        Some(Value::String(ranges.collect::<Vec<_>>().join(",")))
    }
}

/// Name of a resource limit: `nofile` stands for RLIMIT_NOFILE.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource(pub String);

impl Name for Resource {
    fn kind() -> String {
        "a resource like nofile".to_owned()
    }

    fn from_name(name: &str) -> Result<Self, String> {
        if limits::number(name).is_some() {
            return Ok(Self(name.to_owned()));
        }
        let said = name.to_lowercase();
        let plain = said.strip_prefix("rlimit_").or_else(|| said.strip_prefix("limit")).unwrap_or(&said);
        Err(match sexton_config::fault::nearest(plain, limits::names()) {
            Some(meant) => format!("no such resource: did you mean {meant}?"),
            None => format!("no such resource: they are {}", limits::names().collect::<Vec<_>>().join(", ")),
        })
    }

    fn to_name(&self) -> String {
        self.0.clone()
    }
}

/// A resource limit, in the unit of its resource: bytes, seconds, a number of descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// No limit.
    Unlimited,
    /// So many.
    Of(u64),
}

impl Setting for Amount {
    fn kind() -> String {
        "a whole number, a size like \"64GiB\", or \"unlimited\"".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        match &node.raw {
            Raw::Integer(number) => {
                u64::try_from(*number).map(Self::Of).map_err(|_| wrong_type::<Self>(node))
            }
            Raw::Text(text) if text == "unlimited" => Ok(Self::Unlimited),
            _ => read_string(node, |text| match text.parse() {
                // What the kernel has for unlimited.
                Ok(Bytes(u64::MAX)) => Ok(Self::Unlimited),
                Ok(Bytes(bytes)) => Ok(Self::Of(bytes)),
                Err(_) => Err(format!("\"{text}\" will not do: write {}", Self::kind())),
            }),
        }
    }

    fn write(&self) -> Option<Value> {
        match *self {
            Self::Unlimited | Self::Of(u64::MAX) => Some(Value::String("unlimited".to_owned())),
            Self::Of(number) => {
                i64::try_from(number).map_or_else(|_| Bytes(number).write(), |n| Some(Value::Integer(n)))
            }
        }
    }
}

/// A URL that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url(pub Target);

impl Setting for Url {
    fn kind() -> String {
        "a URL like \"http://127.0.0.1:9821/status\" or \"unix:/run/prover.sock:/readyz\"".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        read_string(node, |text| text.parse().map(Self))
    }

    fn write(&self) -> Option<Value> {
        Some(Value::String(self.0.to_string()))
    }
}
