//! Making a run, and taking over what an earlier supervisor left.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use sexton_diagnosis::death::OwnSignal;
use sexton_host::task::Tasks;
use sexton_model::event::EventKind;
use sexton_model::exit::ExitRecord;
use sexton_model::reading::Reading;
use sexton_model::run::RunRecord;
use sexton_model::verdict::Cause;
use sexton_model::{SCHEMA_VERSION, Timestamp};
use sexton_process::cgroup::Removal;
use sexton_process::spawn::find_program;
use sexton_process::{Pidfd, Stage, fifo};

use super::link::{Link, LinkError, prover_environment};
use super::live::{self, LiveRun, Parent};
use super::surroundings::Surroundings;
use super::tracking::Tracker;
use super::{Daemon, DaemonError, failed, own_cgroup};
use crate::budget;
use crate::keeper::log::Rotation;
use crate::keeper::wait_file::{StartError, WaitRecord};
use crate::keeper::wire::{FromKeeper, Phase, SpawnRequest, ToKeeper};
use crate::machine::{Input, Machine};
use crate::policy::Ending;
use crate::runs::{self, RunDir};

/// How long a keeper that closed its connection may take to be gone.
const KEEPER_DEATH_PATIENCE: Duration = Duration::from_secs(2);

/// Why a launch came to nothing.
enum LaunchError {
    /// There is an exit record for it.
    Recorded(Box<ExitRecord>),
    /// There is none: not even its folder could be made, say.
    Unrecorded(String),
}

impl Daemon {
    /// Makes a run. Returns what came of it, for the state table.
    pub(super) async fn launch(&mut self) -> Input {
        match self.try_launch().await {
            Ok(()) => Input::Started,
            Err(LaunchError::Recorded(record)) => Input::Ended(self.note_ending(*record)),
            Err(LaunchError::Unrecorded(error)) => {
                // Of that run nothing else is left that would remove it.
                let living = self.run_id();
                self.cgroups.take_over(&self.settings.place.runs_dir(), living.as_deref());
                self.say(&error);
                self.reason = Some(error);
                Input::Ended(Ending { code: None, cause: Cause::StartFailed, hopeless: None })
            }
        }
    }

    async fn try_launch(&mut self) -> Result<(), LaunchError> {
        let unrecorded = |error: &dyn std::fmt::Display| LaunchError::Unrecorded(error.to_string());
        let (dir, mut record) = self.prepare().map_err(|error| unrecorded(&error))?;
        let run_id = dir.run_id();
        let cgroup = self.make_cgroup(&dir, &mut record);
        let request = self.request(&dir, &record);
        let made = record.made_cgroup.as_ref().map(|made| &made.path);
        self.log(EventKind::RunStarting, Some(&run_id), json!({"command": record.command, "cgroup": made}));

        let (child, mut notes) = match cgroup {
            Ok(notes) => (self.ask_for_child(request).await.map_err(|error| unrecorded(&error))?, notes),
            Err(error) => (Err(error), Vec::new()),
        };
        let pid = match child {
            Ok(pid) => pid,
            Err(error) => {
                let durable = crate::durable::write_json(&dir.run_file(), &record);
                durable.map_err(|error| unrecorded(&error))?;
                let mut wait = WaitRecord::new(&run_id, 0, None);
                wait.start_error = Some(error);
                let record =
                    self.judged(live::finish(&dir, &record, Some(&wait), live::Known::later(Vec::new())));
                return Err(LaunchError::Recorded(Box::new(record)));
            }
        };
        notes.extend(Surroundings::of(&self.settings.config.cgroup).missing_of(pid));
        self.cgroups.news(&notes).iter().for_each(|note| self.say(note));
        match self.record_child(&dir, &mut record, pid) {
            Ok(live) => {
                self.live = Some(live);
                // Its cgroups have their baseline, and the keeper the files to record, before the program runs.
                let _ = self.look().await;
            }
            Err(error) => {
                // No prover without a record.
                if let Some(link) = &mut self.link {
                    let _ = link.send(&ToKeeper::Abandon).await;
                }
                return Err(unrecorded(&error));
            }
        }
        if let Some(relay) = &self.relay {
            relay.follow(&dir.output_file(), false);
        }
        match self.let_go().await {
            Ok(Some(record)) => return Err(LaunchError::Recorded(Box::new(record))),
            Ok(None) => {
                self.log(EventKind::RunStarted, Some(&run_id), json!({"pid": pid, "notes": notes}));
                self.say(&format!("prover started, pid {pid}, run {run_id}"));
            }
            // It may run or not. There is a record of it and a handle on it, so its ending will be seen, and until then
            // there must be no second one.
            Err(error) => {
                self.log(EventKind::RunStarted, Some(&run_id), json!({"pid": pid, "confirmed": false}));
                self.say(&format!("prover {pid} of run {run_id} may have started: {error}"));
            }
        }
        self.reason = None;
        Ok(())
    }

    /// The run's folder, with its FIFO and an empty log, and its record as far as it is known.
    fn prepare(&mut self) -> Result<(RunDir, RunRecord), DaemonError> {
        let now = Timestamp::now();
        let program = self.program();
        let budget = self.next_budget();
        let command = budget::filled_in(&self.settings.command, budget);
        if let (Some(template), Some(budget)) = (&self.settings.config.memory.template, budget) {
            budget::render(template, budget).map_err(DaemonError::Template)?;
        }
        let executable = self.hasher.executable(&program, command.first());
        self.serial += 1;
        let dir = RunDir::new(&self.settings.place.runs_dir(), &runs::new_id(now, self.serial));
        fs::create_dir(dir.path()).map_err(failed("cannot make the run's folder"))?;
        fifo::make(&dir.fifo()).map_err(failed("cannot make the output FIFO"))?;
        File::create(dir.output_file()).map_err(failed("cannot make the output log"))?;
        let record = RunRecord {
            schema_version: SCHEMA_VERSION,
            run_id: dir.run_id(),
            command: recorded(&command),
            identity: None,
            executable,
            started_at: now,
            cgroups: Vec::new(),
            made_cgroup: None,
            budget_bytes: budget,
        };
        Ok((dir, record))
    }

    /// The executable, found once for record and keeper: their working folders and environments differ.
    fn program(&self) -> PathBuf {
        let word = self.settings.command.first().map(|word| word.as_os_str()).unwrap_or_default();
        let found = find_program(word, std::env::var_os("PATH").as_deref());
        std::path::absolute(&found).unwrap_or(found)
    }

    /// A cgroup of its own for the run, where there is to be one; without it the start fails where there must be one.
    /// Returns what is to be said of it.
    fn make_cgroup(&mut self, dir: &RunDir, record: &mut RunRecord) -> Result<Vec<String>, StartError> {
        match self.cgroups.make(dir, &self.own_pids()) {
            Ok(outcome) => {
                record.made_cgroup = outcome.made;
                Ok(outcome.notes)
            }
            Err(refusal) => {
                self.say(&format!("no cgroup of its own: {}", refusal.why));
                Err(StartError::new(Stage::Cgroup, refusal.errno))
            }
        }
    }

    fn request(&self, dir: &RunDir, record: &RunRecord) -> SpawnRequest {
        let config = &self.settings.config;
        let place = &self.settings.place;
        let mut told: Vec<(&str, OsString)> = vec![
            ("SEXTON_RUN_ID", dir.run_id().into()),
            ("SEXTON_PROVER_SOCKET", place.prover_socket().into_os_string()),
            ("NOTIFY_SOCKET", place.notify_socket().into_os_string()),
        ];
        if let Some(budget) = record.budget_bytes {
            told.push(("SEXTON_MEMORY_BUDGET_BYTES", budget.to_string().into()));
        }
        let heartbeat = config.watchdog.notify_timeout;
        if !heartbeat.is_zero() {
            told.push(("WATCHDOG_USEC", heartbeat.as_micros().to_string().into()));
        }
        told.extend(config.prover.environment.iter().map(|(name, value)| (name.as_str(), value.into())));
        let surroundings = Surroundings::of(&config.cgroup);
        let folder = config.prover.directory.clone();
        let folder = folder.unwrap_or_else(|| std::env::current_dir().unwrap_or_default());
        SpawnRequest {
            run_id: dir.run_id(),
            run_dir: dir.path().into(),
            program: self.program().into_os_string(),
            arguments: budget::filled_in(&self.settings.command, record.budget_bytes),
            environment: prover_environment(&told),
            folder: folder.into_os_string(),
            cgroup_procs: record.made_cgroup.iter().map(own_cgroup::procs_file).collect(),
            core: config.prover.core_dumps,
            umask: self.umask,
            limits: surroundings.limits,
            oom_score_adj: surroundings.oom_score_adj,
            memory_nodes: surroundings.numa_nodes,
            rotation: self.rotation(),
        }
    }

    /// When the run's output log is rotated.
    pub(super) fn rotation(&self) -> Rotation {
        Rotation::of(&self.settings.config.log)
    }

    /// Has the keeper, a new one if need be, make the held child.
    async fn ask_for_child(&mut self, request: SpawnRequest) -> Result<Result<i32, StartError>, LinkError> {
        let kept = self.link.as_ref().map(|link| link.state.keeper_pid);
        match (self.ask_keeper(request.clone()).await, kept) {
            // Gone since it was last heard of. Whatever it had begun ends with it, as for any keeper that dies.
            (Err(LinkError::Lost(_)), Some(pid)) => {
                self.log(EventKind::KeeperLost, None, json!({"pid": pid}));
                self.ask_keeper(request).await
            }
            (answer, _) => answer,
        }
    }

    async fn ask_keeper(&mut self, request: SpawnRequest) -> Result<Result<i32, StartError>, LinkError> {
        let link = match &mut self.link {
            Some(link) => link,
            None => {
                let socket = self.settings.place.keeper_socket();
                self.link.insert(Link::start(&socket, &self.settings.place.name).await?)
            }
        };
        match ask(link, request).await {
            Ok(FromKeeper::Prepared { pid }) => Ok(Ok(pid)),
            Ok(FromKeeper::SpawnFailed { stage, errno }) => Ok(Err(StartError { stage, errno })),
            Ok(other) => Err(LinkError::OutOfTurn(format!("{other:?}"))),
            Err(error) => {
                // Whatever it was in the middle of ends with its connection.
                self.link = None;
                Err(error)
            }
        }
    }

    /// Completes the run's record from the held child, and writes it durably.
    fn record_child(&self, dir: &RunDir, record: &mut RunRecord, pid: i32) -> Result<LiveRun, DaemonError> {
        // Held and unreaped, so the PID cannot mean another process.
        let pidfd = Pidfd::open(pid).map_err(failed("cannot open the new process"))?;
        record.identity =
            Some(sexton_process::identity(pid).map_err(failed("cannot identify the new process"))?);
        record.started_at = Timestamp::now();
        if let Reading::Value(process) = Tasks::system().process(pid)
            && let Reading::Value(cgroups) = process.cgroups
        {
            record.cgroups = cgroups;
        }
        crate::durable::write_json(&dir.run_file(), record)
            .map_err(failed("cannot write the run's record"))?;
        let tracker = Tracker::new(pid, self.own_pids());
        LiveRun::new(dir.clone(), record.clone(), pidfd, Parent::Keeper, tracker)
            .map_err(failed("cannot watch the run"))
    }

    /// Lets the program run. `Some` is the record of a run whose program did not.
    async fn let_go(&mut self) -> Result<Option<ExitRecord>, LinkError> {
        let Some(link) = &mut self.link else { return Err(LinkError::Silent) };
        link.send(&ToKeeper::Go).await?;
        loop {
            match link.answer().await? {
                FromKeeper::Started => return Ok(None),
                // Its ending follows.
                FromKeeper::ExecFailed { .. } => {}
                FromKeeper::Ended(bytes) => {
                    let wait = serde_json::from_slice::<WaitRecord<'static>>(&bytes).ok();
                    return Ok(self.conclude(wait.as_ref()));
                }
                other => return Err(LinkError::OutOfTurn(format!("{other:?}"))),
            }
        }
    }

    /// The connection to the keeper broke: it died, or it dropped us.
    pub(super) async fn lost_keeper(&mut self) {
        let Some(link) = self.link.take() else { return };
        if !has_died(&link).await
            && let Ok(Some(again)) = Link::find(&self.settings.place.keeper_socket()).await
        {
            let held = again.state.run_id.clone();
            self.link = Some(again);
            // What ended meanwhile was told to nobody, but is on the disk.
            if let Some(live) = self.live.as_ref().filter(|live| live.dir.run_id() != held) {
                let wait = live.dir.wait_record().ok().flatten();
                self.end(wait).await;
            }
            return;
        }
        let keeper_pid = link.state.keeper_pid;
        let run_id = self.live.as_ref().map(|live| live.dir.run_id());
        self.log(EventKind::KeeperLost, run_id.as_deref(), json!({"pid": keeper_pid}));
        let rotation = self.rotation();
        let Some(live) = &mut self.live else { return };
        // It may have been killed between its last record and its last word.
        if let Ok(Some(wait)) = live.dir.wait_record() {
            return self.end(Some(wait)).await;
        }
        live.parent = if live.pidfd.peek().is_ok() { Parent::Us } else { Parent::Stranger };
        live.take_over_output(rotation);
        let whose = if live.parent == Parent::Us {
            "the supervisor waits for the prover now"
        } else {
            "its status may stay unknown"
        };
        self.say(&format!("keeper {keeper_pid} died: {whose}"));
        self.publish();
    }

    /// Takes over what an earlier supervisor of this place left: the living run, and endings without a record.
    /// Returns whether a living run was adopted.
    pub(super) async fn take_over(&mut self) -> Result<bool, DaemonError> {
        self.link = Link::find(&self.settings.place.keeper_socket()).await?;
        self.await_abandoned_child().await;
        let kept = self
            .link
            .as_ref()
            .filter(|link| link.state.phase == Phase::Running)
            .map(|link| link.state.run_id.clone());
        for dir in runs::list(&self.settings.place.runs_dir())? {
            if dir.exit_file().exists() {
                continue;
            }
            let is_kept = kept.as_ref().is_some_and(|kept| *kept == dir.run_id());
            let record = match dir.record() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    // Cut off before anything ran.
                    if !matches!(own_cgroup::remove(&dir), Ok(Removal::Gone)) {
                        continue;
                    }
                    fs::remove_dir_all(dir.path())
                        .map_err(failed("cannot remove an unfinished run's folder"))?;
                    continue;
                }
                // The living one must not be taken for dead; any other damaged one is no reason to stay down.
                Err(error) if is_kept => return Err(error.into()),
                Err(error) => {
                    self.say(&format!("passed over: {error}"));
                    continue;
                }
            };
            match self.process_to_adopt(&dir, &record, is_kept) {
                Some(pidfd) => self.adopt(dir, record, pidfd, is_kept)?,
                None => self.bury(&dir, &record),
            }
        }
        self.cgroups.take_over(&self.settings.place.runs_dir(), self.run_id().as_deref());
        Ok(self.live.is_some())
    }

    /// A start that its supervisor did not live to complete: the keeper gave it up when we came, and its record says so
    /// soon.
    async fn await_abandoned_child(&mut self) {
        let Some(link) = self.link.as_mut().filter(|link| link.state.phase == Phase::Held) else { return };
        loop {
            match link.answer().await {
                Ok(FromKeeper::Ended(_)) => return,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        self.link = None;
    }

    /// A handle on the run's process where that is to be adopted. The keeper's own may be dead already: until the keeper
    /// has told its ending, nobody else writes about it. Of any other run, only a living process is one.
    fn process_to_adopt(&self, dir: &RunDir, record: &RunRecord, is_kept: bool) -> Option<Pidfd> {
        let identity = record.identity.as_ref()?;
        let pidfd = Pidfd::open(identity.pid).ok()?;
        // Looked at after the handle was opened, so both mean the same process.
        let same = sexton_process::identity(identity.pid).is_ok_and(|now| now == *identity);
        let lives =
            || !pidfd.has_ended().unwrap_or(true) && dir.wait_record().is_ok_and(|wait| wait.is_none());
        (same && (is_kept || lives())).then_some(pidfd)
    }

    fn adopt(
        &mut self,
        dir: RunDir,
        record: RunRecord,
        pidfd: Pidfd,
        is_kept: bool,
    ) -> Result<(), DaemonError> {
        let pid = record.identity.as_ref().map_or(0, |identity| identity.pid);
        let parent = if is_kept { Parent::Keeper } else { Parent::Stranger };
        let tracker = match runs::read_json(dir.tracking_file()) {
            Ok(Some(tracked)) => Tracker::with(pid, self.own_pids(), tracked),
            Ok(None) | Err(_) => Tracker::midway(pid, self.own_pids()),
        };
        let mut live =
            LiveRun::new(dir, record, pidfd, parent, tracker).map_err(failed("cannot watch the run"))?;
        live.adopted = true;
        live.own_signals = self.signals_sent_before(&live.dir);
        if let Some(relay) = &self.relay {
            relay.follow(&live.dir.output_file(), true);
        }
        if parent == Parent::Stranger {
            live.take_over_output(self.rotation());
        }
        let run_id = live.dir.run_id();
        let waits = if is_kept { "" } else { "; its keeper is gone, so its exit status may stay unknown" };
        self.say(&format!("prover {pid} of run {run_id} is alive: taken over, not started anew{waits}"));
        let details = json!({"pid": pid, "kept": is_kept, "started_at": live.record.started_at});
        self.log(EventKind::RunAdopted, Some(&run_id), details);
        self.live = Some(live);
        self.machine = Machine::adopting(self.settings.config.policy(), self.origin.elapsed());
        self.publish();
        Ok(())
    }

    /// Gives a run that ended while no supervisor ran its exit record.
    fn bury(&mut self, dir: &RunDir, record: &RunRecord) {
        // Without a keeper nobody has read what the FIFO may still hold; with one it is empty.
        if let Ok(mut output) = crate::keeper::output::Output::open(dir.path(), self.rotation()) {
            output.drain();
        }
        // Damaged is as good as absent: unknown.
        let wait = dir.wait_record().ok().flatten();
        let own = self.signals_sent_before(dir);
        let exit = self.judged(live::finish(dir, record, wait.as_ref(), live::Known::later(own)));
        self.say(&format!("run {} ended while no supervisor ran: {}", exit.run_id, exit.wait));
        let details =
            json!({"wait": exit.wait, "cause": exit.verdict.cause, "pid": exit.pid, "found_later": true});
        self.log(EventKind::RunEnded, Some(&exit.run_id), details);
        self.last_exit = Some(exit);
    }

    /// Our own processes: no strangers where the prover is.
    pub(super) fn own_pids(&self) -> Vec<i32> {
        let keeper = self.link.as_ref().map(|link| link.state.keeper_pid);
        keeper.into_iter().chain([std::process::id() as i32]).collect()
    }

    /// What earlier supervisors sent to a run, as far as the journal can be read.
    fn signals_sent_before(&self, dir: &RunDir) -> Vec<OwnSignal> {
        live::own_signals(&self.settings.place.journal(), &dir.run_id()).unwrap_or_default()
    }
}

/// A command as records have it.
pub(super) fn recorded(command: &[OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

async fn ask(link: &mut Link, request: SpawnRequest) -> Result<FromKeeper, LinkError> {
    link.send(&ToKeeper::Spawn(Box::new(request))).await?;
    loop {
        match link.answer().await? {
            // Of a child that was given up before.
            FromKeeper::Ended(_) => {}
            answer => return Ok(answer),
        }
    }
}

async fn has_died(link: &Link) -> bool {
    let deadline = tokio::time::Instant::now() + KEEPER_DEATH_PATIENCE;
    while tokio::time::Instant::now() < deadline {
        // Only once it is a zombie have its children been handed on.
        if link.pidfd.has_ended().unwrap_or(true) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    false
}
