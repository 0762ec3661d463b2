//! `GET /metrics`: Prometheus text, version 0.0.4.
//!
//! Counters begin at 0 with each supervisor: the journal has the whole history. They are fed where the journal is, so
//! that the two cannot differ.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use sexton_model::Timestamp;
use sexton_model::event::EventKind;
use sexton_model::status::{State, SupervisorStatus};
use sexton_model::verdict::Cause;

use crate::runbook::CAUSES;

/// The answer's `Content-Type`.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Every state, so that each has its series from the beginning.
const STATES: [State; 11] = [
    State::Starting,
    State::Ready,
    State::Quiescing,
    State::Stopping,
    State::Exiting,
    State::Releasing,
    State::WaitingForMemory,
    State::BackingOff,
    State::Stopped,
    State::Failed,
    State::Stalled,
];

/// What is counted since the supervisor started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    runs_started: u64,
    exits: BTreeMap<String, u64>,
    member_oom_kills: u64,
    /// Of the present run: kills that its cgroup's counter showed while it lived, and victims that its judgement named.
    /// The latter are mostly the former.
    kills_seen: u64,
    victims_named: u64,
    run_started: Option<Timestamp>,
}

impl Counters {
    /// Counts one event of the journal, which is written now.
    pub fn note(&mut self, kind: EventKind, details: &Value) {
        match kind {
            EventKind::RunStarted | EventKind::RunAdopted => {
                self.runs_started += u64::from(kind == EventKind::RunStarted);
                (self.kills_seen, self.victims_named) = (0, 0);
                let started: Option<Timestamp> =
                    details.get("started_at").and_then(|at| serde_json::from_value(at.clone()).ok());
                self.run_started = started.or_else(|| Some(Timestamp::now()));
            }
            EventKind::RunEnded => {
                if let Some(cause) = details.get("cause").and_then(Value::as_str) {
                    *self.exits.entry(cause.to_owned()).or_default() += 1;
                }
            }
            EventKind::MemberOomKilled => match details.get("kills").and_then(Value::as_u64) {
                Some(kills) => {
                    self.kills_seen += kills;
                    self.member_oom_kills += kills;
                }
                None => {
                    self.victims_named += 1;
                    self.member_oom_kills += u64::from(self.victims_named > self.kills_seen);
                }
            },
            _ => {}
        }
    }

    fn exits(&self, cause: Cause) -> u64 {
        self.exits.get(&cause.to_string()).copied().unwrap_or(0)
    }
}

/// What the supervisor takes itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnProcess {
    /// Resident memory, bytes.
    pub resident_bytes: Option<u64>,
    /// Open file descriptors.
    pub open_fds: Option<u64>,
}

impl OwnProcess {
    /// Of this process.
    pub fn read() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        // Reading the folder takes a descriptor of its own.
        let open_fds =
            std::fs::read_dir("/proc/self/fd").ok().map(|fds| (fds.count() as u64).saturating_sub(1));
        Self { resident_bytes: kib.map(|kib| kib.saturating_mul(1024)), open_fds }
    }
}

/// The whole page.
pub fn page(status: &SupervisorStatus, counters: &Counters, own: OwnProcess) -> String {
    let mut page = Page::default();
    counts(&mut page, status, counters);
    state(&mut page, status, counters);
    page.family("sexton_build_info", "gauge", "Always 1; the version is in the label.");
    page.sample("sexton_build_info", &[("version", crate::VERSION), ("name", &status.name)], 1.0);
    if let Some(bytes) = own.resident_bytes {
        page.single(
            "process_resident_memory_bytes",
            "gauge",
            "Memory of the supervisor itself.",
            bytes as f64,
        );
    }
    if let Some(fds) = own.open_fds {
        page.single("process_open_fds", "gauge", "File descriptors of the supervisor itself.", fds as f64);
    }
    page.0
}

fn counts(page: &mut Page, status: &SupervisorStatus, counters: &Counters) {
    page.single(
        "sexton_runs_started_total",
        "counter",
        "Runs started since the supervisor started.",
        counters.runs_started as f64,
    );
    const EXITS: &str = "sexton_run_exits_total";
    page.family(EXITS, "counter", "Ends of runs by cause, as far as recorded since the supervisor started.");
    for cause in CAUSES {
        page.sample(EXITS, &[("cause", &cause.to_string())], counters.exits(*cause) as f64);
    }
    page.single(
        "sexton_restarts_total",
        "counter",
        "Restarts by policy since the supervisor started.",
        status.restarts as f64,
    );
    page.single(
        "sexton_member_oom_kills_total",
        "counter",
        "OOM kills of other processes in the prover's cgroup, since the supervisor started.",
        counters.member_oom_kills as f64,
    );
}

fn state(page: &mut Page, status: &SupervisorStatus, counters: &Counters) {
    let up = if status.pid.is_some() { 1.0 } else { 0.0 };
    page.single("sexton_up", "gauge", "1 while the prover lives.", up);
    page.family("sexton_state", "gauge", "1 for the state that the supervisor is in, 0 for all others.");
    for state in STATES {
        let value = if state == status.state { 1.0 } else { 0.0 };
        page.sample("sexton_state", &[("state", &state.to_string())], value);
    }
    if let Some(started) = counters.run_started {
        page.single(
            "sexton_run_started_timestamp_seconds",
            "gauge",
            "When the last run started, seconds since 1970.",
            seconds(started),
        );
    }
    if let Some(exit) = &status.last_exit {
        page.single(
            "sexton_last_exit_timestamp_seconds",
            "gauge",
            "When the last run ended, seconds since 1970.",
            seconds(exit.ended_at),
        );
    }
}

fn seconds(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1e3
}

/// Text under construction. Writing to a string does not fail.
#[derive(Debug, Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let label = |(name, value): &(&str, &str)| {
            let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            format!("{name}=\"{value}\"")
        };
        let labels = labels.iter().map(label).collect::<Vec<_>>().join(",");
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    /// A series: its name, and its labels in order.
    type Series = (String, Vec<(String, String)>);

    /// Reads the text as the format's description has it, by a parser that shares nothing with the writer.
    fn parse(text: &str) -> BTreeMap<Series, f64> {
        let mut kinds = BTreeSet::new();
        let mut samples = BTreeMap::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(["counter", "gauge"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                assert!(kinds.insert(name.to_owned()), "{name} twice");
            } else if !line.starts_with("# HELP ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                assert!(kinds.contains(name), "{name} before its type");
                let twice = samples.insert((name.to_owned(), labels_of(labels)), value.parse().unwrap());
                assert_eq!(twice, None, "{line} twice");
            }
        }
        samples
    }

    fn labels_of(text: &str) -> Vec<(String, String)> {
        let (mut labels, mut rest) = (Vec::new(), text);
        while rest != "}" {
            let (name, quoted) = rest.split_once("=\"").unwrap();
            let mut chars = quoted.chars();
            let mut value = String::new();
            loop {
                match chars.next().unwrap() {
                    '"' => break,
                    '\\' => value.push(match chars.next().unwrap() {
                        'n' => '\n',
                        other => other,
                    }),
                    other => value.push(other),
                }
            }
            labels.push((name.to_owned(), value));
            rest = chars.as_str().strip_prefix(',').unwrap_or(chars.as_str());
        }
        labels
    }

    fn status() -> SupervisorStatus {
        serde_json::from_value(json!({
            "schema_version": 1, "name": "a \"b\"\\c\nd", "state": "ready", "reason": null, "run_id": "r", "pid": 7,
            "supervisor_pid": 1, "keeper_pid": 2, "adopted": false, "exe_sha256": null, "since": "2026-01-01T00:00:00Z",
            "restarts": 4, "next_start_at": null, "budget_bytes": null, "drain": null, "gate": null, "last_exit": null,
            "prover_socket": null
        }))
        .unwrap()
    }

    fn value(samples: &BTreeMap<Series, f64>, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        samples.get(&(name.to_owned(), labels)).copied()
    }

    #[test]
    fn the_page_is_read_back_and_every_series_is_there_from_the_beginning() {
        let own = OwnProcess { resident_bytes: Some(5 << 20), open_fds: Some(11) };
        let samples = parse(&page(&status(), &Counters::default(), own));
        for cause in CAUSES {
            assert_eq!(
                value(&samples, "sexton_run_exits_total", &[("cause", &cause.to_string())]),
                Some(0.0)
            );
        }
        assert_eq!(value(&samples, "sexton_up", &[]), Some(1.0));
        assert_eq!(value(&samples, "sexton_restarts_total", &[]), Some(4.0));
        assert_eq!(value(&samples, "sexton_state", &[("state", "ready")]), Some(1.0));
        assert_eq!(value(&samples, "sexton_state", &[("state", "stalled")]), Some(0.0));
        assert_eq!(value(&samples, "process_resident_memory_bytes", &[]), Some(5_242_880.0));
        let named = [("version", crate::VERSION), ("name", "a \"b\"\\c\nd")];
        assert_eq!(value(&samples, "sexton_build_info", &named), Some(1.0), "escaped and read back");
        assert_eq!(value(&samples, "sexton_last_exit_timestamp_seconds", &[]), None, "never: not 1970");
    }

    #[test]
    fn what_the_journal_says_is_counted() {
        let mut counters = Counters::default();
        let started = json!({"pid": 7, "started_at": "2026-01-01T00:00:00.5Z"});
        counters.note(EventKind::RunAdopted, &started);
        counters.note(EventKind::RunEnded, &json!({"cause": "oom_own_limit"}));
        counters.note(EventKind::RunStarted, &json!({"pid": 8}));
        counters.note(EventKind::RunEnded, &json!({"cause": "oom_own_limit"}));
        counters.note(EventKind::RunEnded, &json!({"cause": "panic"}));
        assert_eq!(
            (counters.runs_started, counters.exits(Cause::OomOwnLimit)),
            (1, 2),
            "taken over is not started"
        );
        assert_eq!((counters.exits(Cause::Panic), counters.exits(Cause::Abort)), (1, 0));
    }

    #[test]
    fn a_run_that_was_taken_over_keeps_its_start() {
        let mut counters = Counters::default();
        counters.note(EventKind::RunAdopted, &json!({"started_at": "2026-01-01T00:00:00.5Z"}));
        let samples = parse(&page(&status(), &counters, OwnProcess::default()));
        assert_eq!(value(&samples, "sexton_run_started_timestamp_seconds", &[]), Some(1_767_225_600.5));
    }

    #[test]
    fn a_member_that_is_seen_and_then_named_is_counted_once() {
        let mut counters = Counters::default();
        counters.note(EventKind::RunStarted, &json!({}));
        counters.note(EventKind::MemberOomKilled, &json!({"kills": 2}));
        for victim in ["a", "b", "c"] {
            counters.note(EventKind::MemberOomKilled, &json!({"victim": victim}));
        }
        assert_eq!(counters.member_oom_kills, 3);
    }

    #[test]
    fn every_state_has_its_series() {
        // Does not compile when a state is added: then add it to `STATES` too.
        let place = |state| match state {
            State::Starting => 0,
            State::Ready => 1,
            State::Quiescing => 2,
            State::Stopping => 3,
            State::Exiting => 4,
            State::Releasing => 5,
            State::WaitingForMemory => 6,
            State::BackingOff => 7,
            State::Stopped => 8,
            State::Failed => 9,
            State::Stalled => 10,
        };
        assert_eq!(STATES.map(place).to_vec(), (0..STATES.len()).collect::<Vec<_>>());
    }

    #[test]
    fn this_process_is_read() {
        let own = OwnProcess::read();
        assert!(
            own.resident_bytes.is_some_and(|bytes| bytes > 100_000)
                && own.open_fds.is_some_and(|fds| fds >= 3)
        );
    }
}
