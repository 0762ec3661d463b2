//! The supervisor process: the shell around the state table.
//!
//! One loop on a single-threaded runtime: wait for news ([`News`]), feed the [`Machine`], perform its actions.
//!
//! | module | part |
//! |---|---|
//! | [`link`] | the connection to the keeper |
//! | [`live`] | the living run, and the records of those that ended |
//! | [`endings`] | what an ending leads to |
//! | [`locks`] | one supervisor for a place |
//! | [`tracking`] | follows it: cgroups, threads, kills of members |
//! | [`judging`] | gathers what is known of an ending |
//! | [`descendants`] | what goes on after its run ended |
//! | [`own_cgroup`] | a cgroup for each run |
//! | [`surroundings`] | limits, NUMA nodes and the OOM score of a run |
//! | [`tree`] | every process of a run, to be stopped with it |
//! | [`retention`] | which ended runs are kept |
//! | [`footprint`] | what a run takes while it lives |
//! | [`drain`] | watches an ending until the memory is back |
//! | [`gate`] | whether the next run fits |
//! | [`history`] | what earlier runs teach: times of drains, needs |
//! | [`signal_trace`] | who sent SIGKILL, where that is traced |
//! | [`start`] | making a run; taking over what an earlier supervisor left |
//! | [`probe`] | whether a starting prover is ready |
//! | [`watchdog`] | whether a ready one gets on with its work |
//! | [`prover_status`] | reads its `/status` |
//! | [`notify`] | what it says of itself by `sd_notify` |
//! | [`quiesce`] | has it finish its work and take no more, and takes that back |
//! | [`hooks`], [`side_command`] | commands of the operator's, run on events and beside the prover |
//! | [`service_manager`] | what we tell systemd |
//! | [`relay`] | the prover's output on our own standard output |
//! | [`server`] | the control socket |
//! | [`metrics`] | `/metrics`, and what it counts |
//! | [`executable`] | what a run executes, with its hash |

pub mod descendants;
pub mod drain;
pub mod endings;
pub mod executable;
pub mod footprint;
pub mod gate;
pub mod history;
mod holders;
pub mod hooks;
pub mod judging;
pub mod link;
pub mod live;
pub mod locks;
pub mod metrics;
pub mod notify;
pub mod own_cgroup;
pub mod probe;
pub mod prover_status;
pub mod quiesce;
pub mod relay;
pub mod retention;
pub mod server;
pub mod service_manager;
pub mod side_command;
pub mod signal_trace;
pub mod start;
pub mod surroundings;
pub mod tracking;
pub mod tree;
pub mod watchdog;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use sexton_control::prover::READYZ;
use sexton_control::target::Target;
use sexton_diagnosis::death::OwnSignal;
use sexton_model::event::EventKind;
use sexton_model::exit::ExitRecord;
use sexton_model::status::{State, SupervisorStatus};
use sexton_model::units::Human;
use sexton_model::wait::signal_name;
use sexton_model::{SCHEMA_VERSION, Timestamp};
use sexton_process::splice::Moved;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::journal::Journal;
use crate::keeper::log::Rotation;
use crate::keeper::wait_file::WaitRecord;
use crate::keeper::wire::{FromKeeper, ToKeeper};
use crate::machine::{Action, Farewell, Haste, Input, Machine};
use crate::place::{Place, PlaceError};
use crate::policy::Policy;
use crate::runs::RunError;
use crate::terminal;
use descendants::LeftBehind;
use executable::Hasher;
use link::{Link, LinkError};
use live::{LiveRun, Parent};
use metrics::Counters;
use own_cgroup::OwnCgroups;
use probe::{Probe, Readiness};
use relay::Relay;
use retention::Retention;
use signal_trace::SignalTrace;
use surroundings::Surroundings;

/// How long clients may take for their last answers when the supervisor leaves.
const LAST_ANSWERS_PATIENCE: Duration = Duration::from_secs(1);

/// Stands for times that no clock can show.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// How often a dead process that somebody traces is tried again.
const HELD_INTERVAL: Duration = Duration::from_millis(200);
/// What `supervisor run` was asked for.
#[derive(Debug)]
pub struct Settings {
    /// Where.
    pub place: Place,
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// When to restart.
    pub policy: Policy,
    /// Whether the prover may dump core.
    pub core: bool,
    /// Whether to trace who sends SIGKILL.
    pub signal_trace: bool,
    /// The cgroup of each run's own.
    pub cgroup: own_cgroup::Settings,
    /// What else a run is given.
    pub surroundings: Surroundings,
    /// When its output log is rotated.
    pub rotation: Rotation,
    /// Which ended runs are kept.
    pub retention: Retention,
}

/// What ends a supervisor early.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// No usable folders.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A second supervisor of one name.
    #[error("a supervisor of \"{name}\" already runs{}; a second prover needs another --name", .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    AlreadyRuns {
        /// The name.
        name: String,
        /// Its PID, where that could be read.
        pid: Option<i32>,
    },
    /// A damaged or unwritable record.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The keeper.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Something else of the system's.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> DaemonError {
    move |source| DaemonError::Io { what, source }
}

/// A command from the control socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `POST /v1/stop`
    Stop,
    /// `POST /v1/start`
    Start,
    /// `POST /v1/restart`
    Restart,
    /// `POST /v1/shutdown`
    Shutdown,
}

/// A command, and where the answer goes.
pub type Request = (Command, oneshot::Sender<SupervisorStatus>);

/// What the loop waits for.
#[derive(Debug)]
enum News {
    Signal(i32),
    Command(Request),
    Keeper(io::Result<FromKeeper>),
    /// The run's pidfd is readable and the keeper will not tell.
    RunEnded,
    Copied,
    ChildEnded,
    Due,
    Look,
    Ready,
    ReadinessOverdue(String),
}

/// The supervisor of one prover.
#[derive(Debug)]
pub struct Daemon {
    settings: Settings,
    machine: Machine,
    journal: Journal,
    link: Option<Link>,
    live: Option<LiveRun>,
    /// Passes the prover's output on; absent where no thread could be made for it.
    relay: Option<Relay>,
    last_exit: Option<ExitRecord>,
    /// What ended runs have left behind.
    left_behind: LeftBehind,
    cgroups: OwnCgroups,
    signal_trace: SignalTrace,
    hasher: Hasher,
    serial: u32,
    origin: Instant,
    since: Timestamp,
    reason: Option<String>,
    wake_at: Option<Instant>,
    /// Present while the prover starts and is to say that it is ready.
    probe: Option<Probe>,
    farewell: Option<Farewell>,
    status: watch::Sender<SupervisorStatus>,
    counters: watch::Sender<Counters>,
    /// The file mode creation mask that we were started with, for the prover.
    umask: u32,
    _locks: [File; 2],
}

/// Runs the supervisor until it is asked to leave, or policy says no more restarts.
///
/// # Errors
/// [`DaemonError`]: nothing was started then, or what was started goes on under its keeper.
pub async fn run(settings: Settings) -> Result<ExitCode, DaemonError> {
    // Before the first file is made. The prover gets back what was set.
    let umask = sexton_process::make_files_private();
    settings.place.create()?;
    let locks = locks::take(&settings.place)?;
    sexton_process::become_subreaper().map_err(failed("cannot become a subreaper"))?;
    let mut signals = Signals::new().map_err(failed("cannot handle signals"))?;
    let path = settings.place.journal();
    let journal = Journal::open(&path)
        .map_err(|error| PlaceError::Folder { path: path.clone(), reason: error.to_string() })?;
    let mut daemon = Daemon::new(settings, journal, locks, umask);
    daemon.log(
        EventKind::SupervisorStarted,
        None,
        json!({"pid": std::process::id(), "version": crate::VERSION}),
    );
    if daemon.settings.signal_trace {
        daemon.signal_trace = SignalTrace::start();
        if let Some(why) = daemon.signal_trace.obstacle() {
            daemon.say(&format!("no signal trace: {why}"));
        }
    }
    let adopted = daemon.take_over().await?;

    let (commands, mut requests) = mpsc::channel(16);
    let socket = daemon.settings.place.control_socket();
    let server = server::bind(&socket).map_err(failed("cannot listen on the control socket"))?;
    let state = server::Shared {
        place: daemon.settings.place.clone(),
        status: daemon.status.subscribe(),
        counters: daemon.counters.subscribe(),
        commands,
    };
    let (leaving, left) = oneshot::channel();
    let serving = tokio::spawn(server::serve(server, state, left));

    if !adopted {
        daemon.feed(Input::Start).await;
    }
    while daemon.farewell.is_none() {
        let news = daemon.next(&mut signals, &mut requests).await;
        daemon.handle(news).await;
    }
    let _ = std::fs::remove_file(socket);
    // Whoever asked for this gets an answer; whoever asks now, a refusal. A client that only holds its connection open
    // gets neither.
    drop((requests, leaving));
    let _ = tokio::time::timeout(LAST_ANSWERS_PATIENCE, serving).await;
    Ok(daemon.leave().await)
}

/// The signals that a supervisor reacts to.
#[derive(Debug)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    child: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            // A terminal that was closed: its prover goes on, and so do we.
            hangup: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
        })
    }

    async fn next(&mut self) -> News {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return News::Signal(sexton_process::SIGTERM),
                _ = self.interrupt.recv() => return News::Signal(sexton_process::SIGINT),
                _ = self.child.recv() => return News::ChildEnded,
                _ = self.hangup.recv() => {}
            }
        }
    }
}

impl Daemon {
    fn new(settings: Settings, journal: Journal, locks: [File; 2], umask: u32) -> Self {
        let machine = Machine::new(settings.policy.clone());
        let cgroups = OwnCgroups::new(settings.cgroup.clone(), &settings.place.name);
        let now = Timestamp::now();
        let status = watch::Sender::new(SupervisorStatus {
            schema_version: SCHEMA_VERSION,
            name: settings.place.name.clone(),
            state: machine.state(),
            reason: None,
            run_id: None,
            pid: None,
            supervisor_pid: std::process::id() as i32,
            keeper_pid: None,
            adopted: false,
            exe_sha256: None,
            since: now,
            restarts: 0,
            next_start_at: None,
            budget_bytes: None,
            drain: None,
            gate: None,
            last_exit: None,
            descendants: Vec::new(),
            prover_socket: None,
        });
        Self {
            settings,
            machine,
            journal,
            link: None,
            live: None,
            relay: Relay::start().ok(),
            last_exit: None,
            left_behind: LeftBehind::default(),
            cgroups,
            signal_trace: SignalTrace::off(),
            hasher: Hasher::default(),
            serial: 0,
            origin: Instant::now(),
            since: now,
            reason: None,
            wake_at: None,
            probe: None,
            farewell: None,
            status,
            counters: watch::Sender::default(),
            umask,
            _locks: locks,
        }
    }

    async fn next(&mut self, signals: &mut Signals, requests: &mut mpsc::Receiver<Request>) -> News {
        let Self { link, live, wake_at, probe, .. } = self;
        let keeper = async {
            match link {
                Some(link) => link.receive().await,
                None => std::future::pending().await,
            }
        };
        let (mut output, mut end, mut look_at) = (None, None, None);
        if let Some(live) = live {
            look_at = Some(live.tracker.due());
            output = live.output.as_mut();
            end = (live.parent != Parent::Keeper).then_some(&live.end);
        }
        let copied = async {
            let Some((readable, output)) = output else { return std::future::pending().await };
            // An error is the runtime's end, and ours.
            if let Ok(mut guard) = readable.wait().await
                && !matches!(output.copy(), Moved::Bytes(_))
            {
                guard.clear_ready();
            }
        };
        let ended = async {
            match end {
                Some(end) => drop(end.wait().await),
                None => std::future::pending().await,
            }
        };
        let due = async {
            match wake_at {
                Some(at) => tokio::time::sleep_until(*at).await,
                None => std::future::pending().await,
            }
        };
        let look = async {
            match look_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let ready = async {
            match probe {
                Some(probe) => probe.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            news = signals.next() => news,
            Some(request) = requests.recv() => News::Command(request),
            message = keeper => News::Keeper(message),
            () = copied => News::Copied,
            () = ended => News::RunEnded,
            () = due => News::Due,
            () = look => News::Look,
            news = ready => match news {
                probe::News::Ready => News::Ready,
                probe::News::Overdue { why } => News::ReadinessOverdue(why),
            },
        }
    }

    async fn handle(&mut self, news: News) {
        match news {
            News::Signal(number) => {
                let leaving = self.machine.is_leaving();
                self.say(&format!(
                    "{}: stopping the prover{}",
                    signal_name(number),
                    if leaving { " now" } else { "" }
                ));
                self.log(
                    EventKind::Commanded,
                    None,
                    json!({"command": "shutdown", "by": signal_name(number)}),
                );
                self.feed(if leaving { Input::Hasten } else { Input::Shutdown }).await;
            }
            News::Command((command, reply)) => {
                let name = format!("{command:?}").to_lowercase();
                self.log(EventKind::Commanded, None, json!({"command": name, "by": "control socket"}));
                self.feed(match command {
                    Command::Stop => Input::Stop,
                    Command::Start => Input::Start,
                    Command::Restart => Input::Restart,
                    Command::Shutdown => Input::Shutdown,
                })
                .await;
                // A client that has gone away does not want the answer.
                let _ = reply.send(self.status.borrow().clone());
            }
            News::Keeper(Ok(FromKeeper::Ended(bytes))) => {
                let wait = serde_json::from_slice::<WaitRecord<'static>>(&bytes).ok();
                self.end(wait).await;
            }
            // An answer that came after its patience.
            News::Keeper(Ok(_)) => {}
            News::Keeper(Err(_)) => self.lost_keeper().await,
            News::RunEnded => {
                if let Some(live) = &mut self.live {
                    match live.end_without_keeper().await {
                        Some(wait) => self.end(Some(wait)).await,
                        None => tokio::time::sleep(HELD_INTERVAL).await,
                    }
                }
            }
            News::Copied => {}
            News::ChildEnded => {
                let run = self.live.as_ref().map(|live| live.pid);
                // A process table that cannot be read now will be at the next death.
                let _ = sexton_process::reap_orphans(run.as_slice());
            }
            News::Due => {
                self.wake_at = None;
                self.feed(Input::Due).await;
            }
            News::Look => self.look().await,
            News::ReadinessOverdue(why) => {
                let run_id = self.run_id();
                self.log(EventKind::ReadinessOverdue, run_id.as_deref(), json!({"why": why}));
            }
            News::Ready => {
                self.probe = None;
                let run_id = self.run_id();
                self.log(EventKind::RunReady, run_id.as_deref(), json!({}));
                self.say("prover is ready");
                self.feed(Input::Ready).await;
            }
        }
    }

    /// Feeds the table and performs what it says; what comes of that is fed in turn.
    async fn feed(&mut self, first: Input) {
        let mut inputs = std::collections::VecDeque::from([first]);
        while let Some(input) = inputs.pop_front() {
            let before = self.machine.state();
            let actions = self.machine.step(input, self.origin.elapsed(), fastrand::f64());
            self.enter(before);
            for action in actions {
                match action {
                    Action::Quiesce => inputs.push_back(Input::Idle),
                    Action::Unquiesce => {}
                    Action::AwaitRelease => inputs.push_back(Input::Released),
                    Action::AwaitMemory | Action::Fit => inputs.push_back(Input::GateOpen),
                    Action::Launch => inputs.push_back(self.launch().await),
                    Action::Terminate => self.signal(sexton_process::SIGTERM, "asked to stop"),
                    Action::Kill(haste) => self.signal(sexton_process::SIGKILL, why_killed(haste)),
                    Action::WakeAt(at) => self.wake_at = Some(self.origin + at.min(NEVER)),
                    Action::Sleep => self.wake_at = None,
                    Action::Leave(farewell) => self.farewell = Some(farewell),
                }
            }
            self.ask_whether_ready();
            if self.machine.state() == State::BackingOff && before != State::BackingOff {
                self.announce_restart();
            }
            self.publish();
        }
    }

    /// Notes a change of state.
    fn enter(&mut self, before: State) {
        let state = self.machine.state();
        if state != before {
            self.since = Timestamp::now();
            let run_id = self.run_id();
            self.log(EventKind::StateChanged, run_id.as_deref(), json!({"from": before, "to": state}));
        }
    }

    /// Has a prover asked for as long as it starts, where it is known to answer.
    fn ask_whether_ready(&mut self) {
        let Settings { policy, place, .. } = &self.settings;
        if self.machine.state() != State::Starting || !policy.awaits_readiness {
            self.probe = None;
        } else if self.probe.is_none() {
            let readiness = Readiness::Http(Target::unix(place.prover_socket(), READYZ));
            self.probe = Some(Probe::start(readiness, Duration::ZERO, None));
        }
    }

    fn announce_restart(&mut self) {
        let delay = self.wake_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        let attempt = self.machine.restarts() + 1;
        let follows = format!("restart {attempt} follows");
        // Of a start that left no record, this is all that is known.
        self.reason = Some(match self.reason.take() {
            Some(why) => format!("{why}; {follows}"),
            None => follows,
        });
        self.log(
            EventKind::RestartScheduled,
            None,
            json!({"delay_seconds": delay.as_secs_f64(), "attempt": attempt}),
        );
        self.say(&format!("restarting in {}", Human(delay)));
    }

    /// Looks after the living run: where it is, what threads it has, whether the kernel killed one of its members.
    async fn look(&mut self) {
        self.signal_trace.take_news();
        let Some(live) = &mut self.live else { return };
        let found = live.tracker.look();
        let run_id = live.dir.run_id();
        if let Some(files) = found.files {
            live.watched = files.clone();
            if live.parent == Parent::Keeper
                && let Some(link) = &mut self.link
            {
                // A keeper that is gone is noticed where its connection is read.
                let _ = link.send(&ToKeeper::Watch(files)).await;
            }
        }
        if found.members_killed > 0 {
            let details = json!({"kills": found.members_killed});
            self.log(EventKind::MemberOomKilled, Some(&run_id), details);
            self.say(
                "the kernel's OOM killer ended a member of the prover's cgroup; the prover itself lives",
            );
        }
        for dead in found.unreaped {
            let status = dead.status.as_deref().unwrap_or("ended, status unreadable");
            let said = format!(
                "{} (pid {}), a child of the command {} (pid {}), {status}, and its parent does not wait for it: a \
                 wrapper that outlives its prover hides how that ended",
                dead.name, dead.pid, dead.parent_name, dead.parent_pid
            );
            self.log(EventKind::WrapperOutlivesProver, Some(&run_id), json!(dead));
            self.say(&said);
            self.reason = Some(said);
            self.publish();
        }
        if let Some(stalled) = found.stalled {
            self.log(EventKind::StalledUnderOom, Some(&run_id), json!({"stalled": stalled}));
            self.reason = stalled.then(|| {
                "its cgroup is out of memory and its OOM killer is disabled: it sleeps until memory is freed".to_owned()
            });
            self.publish();
        }
        if found.changed
            && let Some(live) = self.live.take()
        {
            self.save_tracked(&live);
            self.live = Some(live);
        }
    }

    /// Writes `tracking.json`. Without it a later supervisor knows less of this run, and says so.
    fn save_tracked(&self, live: &LiveRun) {
        let path = live.dir.tracking_file();
        if let Err(error) = crate::durable::write_json(&path, &live.tracker.tracked) {
            self.say(&format!("cannot write {}: {error}", path.display()));
        }
    }

    fn signal(&mut self, number: i32, reason: &str) {
        let Some(live) = &mut self.live else { return };
        let run_id = live.dir.run_id();
        let details =
            json!({"signal": number, "name": signal_name(number), "reason": reason, "pid": live.pid});
        live.own_signals.push(OwnSignal { signal: number, at: Timestamp::now() });
        // Before the signal: an ending that we caused must never look like another's.
        self.log(EventKind::Signalled, Some(&run_id), details);
        let Some(live) = &self.live else { return };
        match live.pidfd.signal(number) {
            Ok(()) if number == sexton_process::SIGKILL => {
                self.say(&format!("prover {reason}: SIGKILL sent"))
            }
            // ESRCH: it has ended, and its record is on the way.
            Ok(()) | Err(_) => {}
        }
    }

    fn run_id(&self) -> Option<String> {
        self.live.as_ref().map(|live| live.dir.run_id())
    }

    /// One line for whoever watches the terminal; the journal has it too.
    fn say(&self, text: &str) {
        terminal::say(text);
    }

    /// One line in the journal. A journal that cannot be written is said, and stops nothing.
    fn log(&mut self, kind: EventKind, run_id: Option<&str>, details: Value) {
        self.counters.send_modify(|counters| counters.note(kind, &details));
        if let Err(error) = self.journal.append(kind, run_id, details) {
            self.say(&format!("cannot write {}: {error}", self.settings.place.journal().display()));
        }
    }

    fn publish(&mut self) {
        let descendants = self.left_behind.living();
        let live = self.live.as_ref();
        // A time that no calendar has is none.
        let wall =
            |at: Instant| Timestamp::now().checked_add(at.saturating_duration_since(Instant::now())).ok();
        let status = SupervisorStatus {
            state: self.machine.state(),
            reason: self.reason.clone(),
            run_id: self.run_id(),
            pid: live.map(|live| live.pid),
            keeper_pid: self.link.as_ref().map(|link| link.state.keeper_pid),
            adopted: live.is_some_and(|live| live.adopted),
            exe_sha256: live.and_then(|live| live.record.executable.sha256.clone()),
            since: self.since,
            restarts: self.machine.restarts(),
            next_start_at: (self.machine.state() == State::BackingOff)
                .then(|| self.wake_at.and_then(wall))
                .flatten(),
            budget_bytes: live.and_then(|live| live.record.budget_bytes),
            last_exit: self.last_exit.clone(),
            descendants,
            prover_socket: Some(self.settings.place.prover_socket().to_string_lossy().into_owned()),
            ..self.status.borrow().clone()
        };
        self.status.send_replace(status);
    }

    async fn leave(&mut self) -> ExitCode {
        if let Some(link) = &mut self.link {
            // A keeper that is gone already has nothing left to do either.
            let _ = link.send(&ToKeeper::Quit).await;
        }
        self.cgroups.leave();
        self.log(EventKind::SupervisorStopped, None, json!({}));
        if let Some(relay) = self.relay.take() {
            relay.finish();
        }
        match self.farewell {
            // An unknown status is a failure, never 0, and so is a start of which there is not even a record.
            Some(Farewell::AsTheProver(code)) => ExitCode::from(code.unwrap_or(1)),
            Some(Farewell::Asked) | None => ExitCode::SUCCESS,
        }
    }
}

fn why_killed(haste: Haste) -> &'static str {
    match haste {
        Haste::Overdue => "did not stop in time",
        Haste::Asked => "is given no more time, as asked",
    }
}
