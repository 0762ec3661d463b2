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
//! | [`health`] | what the run says of itself, what is seen of its work |
//! | [`draining`], [`gating`] | the drain and the gate as the loop holds them, with the memory budget |
//! | [`stopping`] | how a run is brought to its end |
//! | [`reload`] | the configuration, read again |
//! | [`beside`] | everything that goes on beside the loop |
//! | [`quiesce`] | has it finish its work and take no more, and takes that back |
//! | [`hooks`], [`side_command`] | commands of the operator's, run on events and beside the prover |
//! | [`service_manager`] | what we tell systemd |
//! | [`relay`] | the prover's output on our own standard output |
//! | [`server`] | the control socket |
//! | [`metrics`] | `/metrics`, and what it counts |
//! | [`executable`] | what a run executes, with its hash |

mod beside;
pub mod descendants;
pub mod drain;
mod draining;
pub mod endings;
pub mod executable;
pub mod footprint;
pub mod gate;
mod gating;
mod health;
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
pub mod reload;
pub mod retention;
pub mod server;
pub mod service_manager;
pub mod side_command;
pub mod signal_trace;
pub mod start;
mod stopping;
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

use crate::budget::TemplateError;
use crate::config::Config;
use crate::journal::Journal;
use crate::keeper::wait_file::WaitRecord;
use crate::keeper::wire::{FromKeeper, ToKeeper};
use crate::ladder::Ladder;
use crate::machine::{Action, Farewell, Input, Machine};
use crate::place::{Place, PlaceError};
use crate::runs::RunError;
use crate::terminal;
use beside::Beside;
use descendants::LeftBehind;
use draining::Draining;
use executable::Hasher;
use gating::Gating;
use link::{Link, LinkError};
use live::{LiveRun, Parent};
use metrics::Counters;
use own_cgroup::OwnCgroups;
use relay::Relay;
use reload::Source;
use signal_trace::SignalTrace;

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
    /// Everything that is configured.
    pub config: Config,
    /// Program and arguments, with `{budget_bytes}` and `{budget_gib}` as they were written.
    pub command: Vec<OsString>,
    /// Where both come from.
    pub source: Source,
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
    /// The configuration template of the prover.
    #[error(transparent)]
    Template(TemplateError),
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
    /// `POST /v1/start?now=true`
    StartNow,
    /// `POST /v1/restart`
    Restart,
    /// `POST /v1/drain`
    Drain,
    /// `POST /v1/quiesce`
    Quiesce,
    /// `POST /v1/unquiesce`
    Unquiesce,
    /// `POST /v1/shutdown`
    Shutdown,
}

impl Command {
    fn input(self) -> Input {
        match self {
            Self::Stop => Input::Stop,
            Self::Start => Input::Start,
            Self::StartNow => Input::StartNow,
            Self::Restart => Input::Restart,
            Self::Drain => Input::Drain,
            Self::Quiesce => Input::Quiesce,
            Self::Unquiesce => Input::Unquiesce,
            Self::Shutdown => Input::Shutdown,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Start => "start",
            Self::StartNow => "start --now",
            Self::Restart => "restart",
            Self::Drain => "drain",
            Self::Quiesce => "quiesce",
            Self::Unquiesce => "unquiesce",
            Self::Shutdown => "shutdown",
        }
    }
}

/// What a command leads to: the state right after it, or why it cannot be done.
pub type Reply = Result<SupervisorStatus, String>;

/// A command, and where the answer goes.
pub type Request = (Command, oneshot::Sender<Reply>);

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
    /// Something is to be looked at: the run, its drain, the gate.
    Look,
    Reload,
    Beside(beside::News),
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
    beside: Beside,
    /// Present from the wish to stop a run, or its end, until its memory is back.
    drain: Option<Draining>,
    /// Present while the next start waits for memory.
    gating: Option<Gating>,
    /// Absent where no budget is configured.
    ladder: Option<Ladder>,
    /// A smaller budget than the ladder's, for one start.
    budget_once: Option<u64>,
    ended: endings::Ended,
    /// Why the run is stopped, where that is because it does not work.
    unhealthy: Option<String>,
    /// What the prover last said of itself.
    prover_says: Option<String>,
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
    if daemon.settings.config.prover.signal_trace {
        daemon.signal_trace = SignalTrace::start();
        if let Some(why) = daemon.signal_trace.obstacle() {
            daemon.say(&format!("no signal trace: {why}"));
        }
    }
    daemon.listen_to_notifications();
    daemon.load_ladder();
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

    daemon.beside.manager.ready();
    if adopted {
        daemon.follow_health();
        daemon.publish();
    } else {
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
            // Also from a terminal that was closed: its prover goes on, and so do we.
            hangup: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
        })
    }

    async fn next(&mut self) -> News {
        tokio::select! {
            _ = self.terminate.recv() => News::Signal(sexton_process::SIGTERM),
            _ = self.interrupt.recv() => News::Signal(sexton_process::SIGINT),
            _ = self.child.recv() => News::ChildEnded,
            _ = self.hangup.recv() => News::Reload,
        }
    }
}

impl Daemon {
    fn new(settings: Settings, journal: Journal, locks: [File; 2], umask: u32) -> Self {
        let machine = Machine::new(settings.config.policy());
        let cgroups =
            OwnCgroups::new(own_cgroup::Settings::of(&settings.config.cgroup), &settings.place.name);
        let beside = Beside::new(&settings.config, &settings.place);
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
            quiesced: false,
            ladder: None,
            prover_says: None,
            in_flight: None,
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
            beside,
            drain: None,
            gating: None,
            ladder: None,
            budget_once: None,
            ended: endings::Ended::default(),
            unhealthy: None,
            prover_says: None,
            farewell: None,
            status,
            counters: watch::Sender::default(),
            umask,
            _locks: locks,
        }
    }

    async fn next(&mut self, signals: &mut Signals, requests: &mut mpsc::Receiver<Request>) -> News {
        let roots = self.run_roots();
        let Self { link, live, wake_at, beside, drain, gating, .. } = self;
        let keeper = async {
            match link {
                Some(link) => link.receive().await,
                None => std::future::pending().await,
            }
        };
        let (mut output, mut end) = (None, None);
        let drain_due = drain.as_ref().map(Draining::due);
        let mut look_at = drain_due.into_iter().chain(gating.as_ref().map(Gating::due)).min();
        if let Some(live) = live {
            look_at = look_at.into_iter().chain([live.tracker.due()]).min();
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
        tokio::select! {
            news = signals.next() => news,
            Some(request) = requests.recv() => News::Command(request),
            message = keeper => News::Keeper(message),
            () = copied => News::Copied,
            () = ended => News::RunEnded,
            () = due => News::Due,
            () = look => News::Look,
            news = beside.next(&roots) => News::Beside(news),
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
                let answer = self.command(command).await;
                // A client that has gone away does not want the answer.
                let _ = reply.send(answer);
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
                let _ = self.beside.children.reap_orphans(run.as_slice());
            }
            News::Due => {
                self.wake_at = None;
                self.feed(Input::Due).await;
            }
            News::Look => self.look_at_all().await,
            News::Reload => self.reload(),
            News::Beside(news) => self.beside_the_loop(news).await,
        }
    }

    async fn command(&mut self, command: Command) -> Reply {
        self.log(EventKind::Commanded, None, json!({"command": command.name(), "by": "control socket"}));
        if command == Command::Quiesce && !self.machine.policy().quiesces {
            return Err("it cannot be quiesced: no way to do that is configured ([stop] quiesce)".to_owned());
        }
        self.feed(command.input()).await;
        Ok(self.status.borrow().clone())
    }

    async fn beside_the_loop(&mut self, news: beside::News) {
        match news {
            beside::News::Ready => self.ready("asked").await,
            beside::News::ReadinessOverdue(why) => self.readiness_overdue(why).await,
            beside::News::Progress(change) => self.progress(change).await,
            beside::News::HeartbeatLost(why) => self.heartbeat_lost(why).await,
            beside::News::Notice(notice) => self.noticed(notice).await,
            beside::News::NotificationsBroke(error) => {
                self.beside.notifications = None;
                self.say(&format!("the prover's notifications are heard no more: {error}"));
            }
            beside::News::Quiesced(ended) => {
                let input = self.quiesced(&ended);
                self.feed(input).await;
            }
            beside::News::Unquiesced(result) => {
                self.unquiesced(result);
                self.publish();
            }
            beside::News::HookFailed(failure) => {
                self.log(EventKind::HookFailed, failure.run_id.as_deref(), failure.details());
                self.say(&format!("hook {}: {}", failure.command, failure.why()));
            }
            beside::News::Beat => {}
        }
    }

    /// Feeds the table and performs what it says; what comes of that is fed in turn.
    async fn feed(&mut self, first: Input) {
        let mut inputs = std::collections::VecDeque::from([first]);
        while let Some(input) = inputs.pop_front() {
            let before = self.machine.state();
            let actions = self.machine.step(input, self.origin.elapsed(), fastrand::f64());
            self.enter(before);
            self.follow_drain();
            for action in actions {
                match action {
                    Action::Quiesce => self.start_quiesce(),
                    Action::Unquiesce => self.start_unquiesce(),
                    Action::AwaitRelease => inputs.extend(self.await_release().await),
                    Action::AwaitMemory => inputs.extend(self.await_memory()),
                    Action::Fit => inputs.push_back(self.fit()),
                    Action::Launch => inputs.push_back(self.launch().await),
                    Action::Terminate => self.terminate(),
                    Action::Kill(haste) => self.kill(haste).await,
                    Action::WakeAt(at) => self.wake_at = Some(self.origin + at.min(NEVER)),
                    Action::Sleep => self.wake_at = None,
                    Action::Leave(farewell) => self.farewell = Some(farewell),
                }
            }
            self.follow_health();
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
            if before == State::Releasing {
                self.give_up_release();
            }
            if state != State::WaitingForMemory {
                self.gating = None;
            }
            // Not where it leaves as its prover did: `failed` is then the last word, and a rule has not said it.
            if let Some(rule) = self.machine.failure().filter(|_| state == State::Failed) {
                self.announce_failure(rule);
            }
            if self.machine.is_leaving() {
                self.announce_leaving();
            }
        }
    }

    /// Nothing is silent about staying down: it says the rule, and how it ends.
    fn announce_failure(&mut self, rule: &str) {
        let why = match self.reason.take() {
            Some(known) if known != rule => format!("{known}; {rule}"),
            _ => rule.to_owned(),
        };
        self.say(&format!("it stays down: {why} (`supervisor start` starts it again)"));
        self.reason = Some(why);
    }

    /// Whoever started us is told how long leaving may take: the times of a drain, one after the other.
    fn announce_leaving(&mut self) {
        let stop = self.machine.policy().stop;
        let whole = [stop.quiesce, stop.exit, stop.release, LAST_ANSWERS_PATIENCE];
        let within = whole.into_iter().fold(Duration::ZERO, Duration::saturating_add);
        self.beside.manager.stopping(Some(within));
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

    /// Looks at whatever is due.
    async fn look_at_all(&mut self) {
        let now = Instant::now();
        let mut inputs = Vec::new();
        if self.live.as_ref().is_some_and(|live| live.tracker.due() <= now) {
            inputs.extend(self.look().await);
        }
        if self.drain.as_ref().is_some_and(|drain| drain.due() <= now) {
            inputs.extend(self.look_at_drain().await);
        }
        if self.gating.as_ref().is_some_and(|gating| gating.due() <= now) {
            inputs.extend(self.look_at_gate());
        }
        for input in inputs {
            self.feed(input).await;
        }
    }

    /// Looks after the living run: where it is, what threads it has, whether the kernel killed one of its members.
    async fn look(&mut self) -> Option<Input> {
        self.signal_trace.take_news();
        let live = self.live.as_mut()?;
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
            Box::pin(self.member_killed()).await;
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
        found.leader_died.then_some(Input::LeaderDied)
    }

    /// Writes `tracking.json`. Without it a later supervisor knows less of this run, and says so.
    fn save_tracked(&self, live: &LiveRun) {
        let path = live.dir.tracking_file();
        if let Err(error) = crate::durable::write_json(&path, &live.tracker.tracked) {
            self.say(&format!("cannot write {}: {error}", path.display()));
        }
    }

    /// Processes whose trees are the run's: its main one, and the keeper that inherits what that leaves.
    fn run_roots(&self) -> Vec<i32> {
        let Some(live) = &self.live else { return Vec::new() };
        let keeper = self.link.as_ref().map(|link| link.state.keeper_pid);
        keeper.into_iter().chain([live.pid]).collect()
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
        let (event, written) = self.journal.append(kind, run_id, details);
        if let Err(error) = written {
            self.say(&format!("cannot write {}: {error}", self.settings.place.journal().display()));
        }
        let record = self.last_exit.as_ref().filter(|_| kind == EventKind::RunEnded);
        self.beside.hooks.offer(&event, record);
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
            drain: self.drain.as_ref().map(|drain| drain.report().clone()),
            gate: self.gating.as_ref().map(|gating| gating.report().clone()),
            quiesced: self.machine.is_quiesced(),
            ladder: self.ladder.as_ref().map(Ladder::status),
            prover_says: self.prover_says.clone(),
            in_flight: self.beside.watchdog.as_ref().map(|watchdog| watchdog.in_flight().len() as u64),
            last_exit: self.last_exit.clone(),
            descendants,
            prover_socket: Some(self.settings.place.prover_socket().to_string_lossy().into_owned()),
            ..self.status.borrow().clone()
        };
        self.beside.manager.status(&short(&status));
        if let Some(trouble) = self.beside.manager.take_trouble() {
            self.say(&trouble);
        }
        self.status.send_replace(status);
    }

    async fn leave(&mut self) -> ExitCode {
        if let Some(link) = &mut self.link {
            // A keeper that is gone already has nothing left to do either.
            let _ = link.send(&ToKeeper::Quit).await;
        }
        // Hooks for the last events.
        for failure in self.beside.hooks.finish(LAST_ANSWERS_PATIENCE).await {
            self.log(EventKind::HookFailed, failure.run_id.as_deref(), failure.details());
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

/// A status in one line, for the service manager.
fn short(status: &SupervisorStatus) -> String {
    let pid = status.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    let what = match (&status.drain, &status.gate) {
        (Some(drain), _) if status.state != State::Ready => Some(&drain.summary),
        (_, Some(gate)) => Some(&gate.summary),
        _ => status.reason.as_ref(),
    };
    let why = what.map(|what| format!(": {what}")).unwrap_or_default();
    format!("prover {}{pid}{why}", status.state)
}
