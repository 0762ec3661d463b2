//! The supervisor's sections: every key with its type, its default and what it does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sexton_config::{document, section};
use sexton_model::event::EventKind;
use sexton_model::units::Bytes;
use sexton_model::verdict::Cause;

use super::values::{
    Amount, CgroupCreate, Journald, LeftOver, MemberOom, Nodes, OomScoreAdj, Preset, Quiesce, Reaction,
    ReadyProbe, Resource, Step, StopSignal, Template, Url,
};
use crate::policy::{Restart, Rule};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

document! {
    /// Everything that the supervisor reads of `sexton.toml`.
    pub struct Config {
        sections {
            /// What is run.
            prover: Prover,
            /// When it is started again.
            restart: RestartRules,
            /// When it counts as ready.
            ready: Ready,
            /// When it counts as hung.
            watchdog: Watchdog,
            /// How it is stopped.
            stop: Stop,
            /// How much it may take, and whether it may start.
            memory: Memory,
            /// Where it runs.
            cgroup: Cgroup,
            /// What is kept of its output.
            log: Log,
            /// Who may ask over the network.
            control: Control,
        }
        lists {
            /// Who is told.
            hooks: Hook,
        }
    }
}

section! {
    /// What is supervised.
    pub struct Prover = "prover" {
        /// Whose defaults hold for everything below: Sexton's own prover, Filecoin's cuzk, or any command
        preset: Option<Preset> = None, NextStart,
            unset "bundled where no command is given, else generic", example "\"bundled\"";
        /// Program and arguments. Without one: `prover serve`, with the prover beside the supervisor, else on PATH
        command: Vec<OsString> = Vec::new(), NextStart, example "[\"prover\", \"serve\"]";
        /// Working folder
        directory: Option<PathBuf> = None, NextStart, unset "the supervisor's", example "\"/\"";
        /// Variables for its environment, besides the supervisor's own
        environment: BTreeMap<String, String> = BTreeMap::new(), NextStart, example "{ RUST_LOG = \"info\" }";
        /// Whether it may dump core
        core_dumps: bool = false, NextStart;
        /// Whether to trace who sends SIGKILL on this host (needs root; makes a small tracefs instance)
        signal_trace: bool = false, Restart, env "SEXTON_SIGNAL_TRACE";
    }
}

section! {
    /// What happens after the prover has ended by itself.
    pub struct RestartRules = "restart" {
        /// After which endings it is started again
        policy: Restart = Restart::OnFailure, Now, env "SEXTON_RESTART";
        /// Delay before the first restart; it doubles with each one
        delay: Duration = SECOND, Now;
        /// Longest delay
        delay_max: Duration = MINUTE, Now;
        /// A run that lasts so long resets the delay
        stable_after: Duration = MINUTE, Now;
        /// Failures within `period` after which it stays down until `supervisor start`; 0: any number
        intensity: u32 = 30, Now;
        /// See `intensity`
        period: Duration = HOUR, Now;
        /// Exceptions by exit code: "restart", "stop" (the supervisor ends with it), "fail" (it stays down until `supervisor start`)
        codes: BTreeMap<u8, Rule> = BTreeMap::from([(78, Rule::Fail), (125, Rule::Fail)]), Now;
        /// Exceptions by cause of death, which go before those by exit code
        verdicts: BTreeMap<Cause, Rule> = BTreeMap::new(), Now, example "{ gpu_fault = \"fail\" }";
        /// What to do when another process of its cgroup was killed for memory, and it lives on
        member_oom: MemberOom = MemberOom::Report, Now;
    }
}

section! {
    /// When the prover counts as ready.
    pub struct Ready = "ready" {
        /// How it shows that: not at all, by sd_notify, by answering 200, or by answering with a status document
        probe: ReadyProbe = ReadyProbe::None, NextStart;
        /// Where it is asked
        url: Option<Url> = None, NextStart,
            unset "on the prover's socket, /readyz or /status", example "\"http://127.0.0.1:9821/status\"";
        /// Until it must be ready; 0s: for ever
        timeout: Duration = Duration::from_secs(15 * 60), Now;
        /// What to do when it is not: only an event, or also a restart
        on_timeout: Reaction = Reaction::Report, Now;
    }
}

section! {
    /// When the prover counts as hung.
    pub struct Watchdog = "watchdog" {
        /// No partition ended for so long while work is in flight; 0s: not watched
        progress_timeout: Duration = Duration::ZERO, Now;
        /// What to do then: only an event, or also a restart
        on_stall: Reaction = Reaction::Report, Now;
        /// Where its status is
        url: Option<Url> = None, Now,
            unset "as [ready] url", example "\"http://127.0.0.1:9821/status\"";
        /// For provers that send WATCHDOG=1 by sd_notify: longest time between two; 0s: not watched
        notify_timeout: Duration = Duration::ZERO, Now;
    }
}

section! {
    /// How the prover is stopped: quiesce, signal, wait until its memory is back.
    pub struct Stop = "stop" {
        /// The signal that asks it to end
        signal: StopSignal = StopSignal::SIGTERM, Now;
        /// How it is brought to finish its work first: not at all, by its HTTP interface, by watching its status until it is
        /// idle, or by a command
        quiesce: Quiesce = Quiesce::None, Now;
        /// The command for that, done when it ends with 0
        quiesce_command: Vec<OsString> = Vec::new(), Now, example "[\"/usr/local/bin/pause-clients\"]";
        /// The command that takes it back, when the stop is taken back
        unquiesce_command: Vec<OsString> = Vec::new(), Now, example "[\"/usr/local/bin/resume-clients\"]";
        /// How long its status must have shown no work, nor any change, before that counts as finished ("watch" and "command")
        quiesce_settle: Duration = Duration::from_secs(30), Now;
        /// How long its work may take to finish
        quiesce_timeout: Duration = Duration::from_secs(10 * 60), Now;
        /// How long it may take to end after the signal
        exit_timeout: Duration = Duration::from_secs(90), Now, env "SEXTON_STOP_TIMEOUT";
        /// How long its memory may take to come back, before that is reported
        release_timeout: Duration = Duration::from_secs(5 * 60), Now;
        /// Whether SIGKILL follows after `exit_timeout`
        kill: bool = true, Now;
        /// Processes of the run that outlive its main one: they are stopped as well, or named and left alone
        left_over: LeftOver = LeftOver::Stop, Now;
    }
}

section! {
    /// How much memory the prover takes: what must be free before a start, and what it is told to take.
    pub struct Memory = "memory" {
        /// What must be free before it starts
        need: Option<Bytes> = None, NextStart, unset "learned from the last ready run", example "\"380GiB\"";
        /// The budget that it is told
        budget: Option<Bytes> = None, NextStart, unset "it is told none", example "\"400GiB\"";
        /// The smallest budget that is of use
        floor: Option<Bytes> = None, NextStart, unset "the last step of the ladder", example "\"200GiB\"";
        /// What must stay free beside its need
        reserve: Bytes = Bytes(0), NextStart;
        /// Budgets to go down after each proved out-of-memory kill: shares of `budget`, or sizes
        ladder: Vec<Step> = vec![Step::Percent(100), Step::Percent(85), Step::Percent(70)], NextStart;
        /// Steps down before it stays down
        tries: u32 = 5, NextStart;
        /// After so long without trouble on a smaller step, the next start tries the next larger one
        larger_after: Duration = Duration::from_secs(6 * 3_600), NextStart;
        /// How long a start may wait for memory
        gate_timeout: Duration = Duration::from_secs(15 * 60), NextStart;
        /// A file that is written before each start, with {budget_bytes} and {budget_gib} filled in
        template: Option<Template> = None, NextStart,
            example "{ source = \"/etc/cuzk.toml.in\", target = \"/data/zk/cuzk.toml\" }";
    }
}

section! {
    /// The prover's own cgroup and other bounds of its process.
    pub struct Cgroup = "cgroup" {
        /// Whether it gets one: where that is possible, or else no start, or never
        create: CgroupCreate = CgroupCreate::Auto, NextStart;
        /// The cgroup to make it in, from the root of the hierarchy on
        parent: Option<String> = None, NextStart, unset "beside the supervisor's own", example "\"/sexton\"";
        /// Its hard limit
        memory_max: Option<Bytes> = None, NextStart, unset "none", example "\"410GiB\"";
        /// Where the kernel begins to slow it down
        memory_high: Option<Bytes> = None, NextStart, unset "none", example "\"405GiB\"";
        /// Whom the kernel kills first for memory: 1000 before all others, -1000 never
        oom_score_adj: OomScoreAdj = OomScoreAdj(0), NextStart;
        /// NUMA nodes that its memory comes from
        numa_nodes: Option<Nodes> = None, NextStart, unset "all", example "\"0-1\"";
        /// Resource limits, see getrlimit(2)
        limits: BTreeMap<Resource, Amount> = BTreeMap::new(), NextStart,
            example "{ nofile = 1048576, memlock = \"unlimited\" }";
    }
}

section! {
    /// What is kept of its output, and of the records.
    pub struct Log = "log" {
        /// A log larger than this is set aside and a new one begun; 0B: never
        rotate_size: Bytes = Bytes(64 << 20), Now;
        /// As well one older than this; 0s: never
        rotate_age: Duration = Duration::ZERO, Now;
        /// Logs set aside that are kept, of each run
        keep_files: u32 = 8, Now;
        /// Ended runs that are kept; 0: any number
        keep_runs: u32 = 100, Now;
        /// Ended runs older than this are not kept; 0s: whatever their age
        keep_runs_for: Duration = Duration::ZERO, Now;
        /// Whether events go to systemd's journal: where it is there, or never
        journald: Journald = Journald::Auto, Now;
    }
}

section! {
    /// A command that is told of events: one JSON document on its standard input. There can be several.
    pub struct Hook = "hook" {
        /// Of which events
        on: Vec<EventKind> = Vec::new(), Now, example "[\"run_ended\"]";
        /// Program and arguments
        command: Vec<OsString> = Vec::new(), Now, example "[\"/usr/local/bin/page-me\"]";
        /// How long it may take before it is killed
        timeout: Duration = Duration::from_secs(10), Now, example "\"10s\"";
    }
}

section! {
    /// The control interface, which is on a Unix socket in any case.
    pub struct Control = "control" {
        /// Also on TCP, at this address
        listen: Option<SocketAddr> = None, Restart, unset "not on TCP", example "\"127.0.0.1:9900\"";
        /// A file whose first line clients must know: `Authorization: Bearer …`. Needed where `listen` is not loopback
        token_file: Option<PathBuf> = None, Restart, example "\"/etc/sexton/token\"";
    }
}

impl Config {
    /// Whose defaults hold. Set by [`super::load`] where nobody else did.
    pub fn preset(&self) -> Preset {
        self.prover.preset.unwrap_or(if self.prover.command.is_empty() {
            Preset::Bundled
        } else {
            Preset::Generic
        })
    }
}
