//! Making a run, and taking over what an earlier supervisor left.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use sexton_host::task::Tasks;
use sexton_model::event::EventKind;
use sexton_model::exit::ExitRecord;
use sexton_model::reading::Reading;
use sexton_model::run::RunRecord;
use sexton_model::{SCHEMA_VERSION, Timestamp};
use sexton_process::{Pidfd, fifo};

use super::link::{Link, LinkError, prover_environment};
use super::live::{self, LiveRun, Parent};
use super::relay::Relay;
use super::{Daemon, DaemonError, failed};
use crate::keeper::wait_file::{StartError, WaitRecord};
use crate::keeper::wire::{FromKeeper, Phase, SpawnRequest, ToKeeper};
use crate::machine::{Input, Machine};
use crate::place::Place;
use crate::policy::Ending;
use crate::runs::{self, RunDir};

/// How long a keeper that closed its connection may take to be gone.
const KEEPER_DEATH_PATIENCE: Duration = Duration::from_secs(2);

/// Takes both locks of a place: one supervisor for a runtime folder, and one for a state folder.
pub(super) fn lock(place: &Place) -> Result<[File; 2], DaemonError> {
    let lock = |folder: &Path| {
        let path = folder.join("supervisor.lock");
        let open = File::options().create(true).read(true).write(true).truncate(false).open(path);
        let mut file = open.map_err(failed("cannot open the lock file"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                return Err(DaemonError::AlreadyRuns {
                    name: place.name.clone(),
                    pid: pid.trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed("cannot lock")(error)),
        }
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(failed("cannot write the lock file"))?;
        Ok(file)
    };
    Ok([lock(&place.runtime_dir)?, lock(&place.state_dir)?])
}

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
                self.say(&error);
                self.reason = Some(error);
                Input::Ended(Ending { success: false, start_failed: true })
            }
        }
    }

    async fn try_launch(&mut self) -> Result<(), LaunchError> {
        let unrecorded = |error: &dyn std::fmt::Display| LaunchError::Unrecorded(error.to_string());
        let (dir, mut record) = self.prepare().map_err(|error| unrecorded(&error))?;
        let request = self.request(&dir);
        let run_id = dir.run_id();
        self.log(EventKind::RunStarting, Some(&run_id), json!({"command": record.command}));

        let pid = match self.ask_for_child(request).await.map_err(|error| unrecorded(&error))? {
            Ok(pid) => pid,
            Err(error) => {
                let durable = crate::durable::write_json(&dir.run_file(), &record);
                durable.map_err(|error| unrecorded(&error))?;
                let mut wait = WaitRecord::new(&run_id, 0, None);
                wait.start_error = Some(error);
                let record = live::finish(&dir, &record, Some(&wait), Vec::new());
                return Err(
                    record.map_or_else(|e| unrecorded(&e), |record| LaunchError::Recorded(Box::new(record)))
                );
            }
        };
        let live = self.record_child(&dir, &mut record, pid);
        let mut live = match live {
            Ok(live) => live,
            Err(error) => {
                // No prover without a record.
                if let Some(link) = &mut self.link {
                    let _ = link.send(&ToKeeper::Abandon).await;
                }
                return Err(unrecorded(&error));
            }
        };
        live.relay = Relay::start(&dir.output_file(), false).ok();
        self.live = Some(live);
        match self.let_go().await.map_err(|error| unrecorded(&error))? {
            None => {
                self.reason = None;
                self.log(EventKind::RunStarted, Some(&run_id), json!({"pid": pid}));
                self.say(&format!("prover started, pid {pid}, run {run_id}"));
                Ok(())
            }
            Some(record) => Err(LaunchError::Recorded(Box::new(record))),
        }
    }

    /// The run's folder, with its FIFO and an empty log, and its record as far as it is known.
    fn prepare(&mut self) -> Result<(RunDir, RunRecord), DaemonError> {
        let now = Timestamp::now();
        let (command, path) = (&self.settings.command, std::env::var_os("PATH"));
        let program = command.first().map(|word| word.as_os_str()).unwrap_or_default();
        let executable = self.hasher.executable(program, path.as_deref());
        self.serial += 1;
        let dir = RunDir::new(&self.settings.place.runs_dir(), &runs::new_id(now, self.serial));
        fs::create_dir(dir.path()).map_err(failed("cannot make the run's folder"))?;
        fifo::make(&dir.fifo()).map_err(failed("cannot make the output FIFO"))?;
        File::create(dir.output_file()).map_err(failed("cannot make the output log"))?;
        let record = RunRecord {
            schema_version: SCHEMA_VERSION,
            run_id: dir.run_id(),
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            identity: None,
            executable,
            started_at: now,
            cgroups: Vec::new(),
            budget_bytes: None,
        };
        Ok((dir, record))
    }

    fn request(&self, dir: &RunDir) -> SpawnRequest {
        let told = [
            ("SEXTON_RUN_ID", dir.run_id().into()),
            ("SEXTON_PROVER_SOCKET", self.settings.place.prover_socket().into_os_string()),
        ];
        SpawnRequest {
            run_id: dir.run_id(),
            run_dir: dir.path().into(),
            program: self.settings.command.first().cloned().unwrap_or_default(),
            arguments: self.settings.command.clone(),
            environment: prover_environment(&told),
            folder: std::env::current_dir().unwrap_or_default().into_os_string(),
            cgroup_procs: Vec::new(),
            core: self.settings.core,
        }
    }

    /// Has the keeper, a new one if need be, make the held child.
    async fn ask_for_child(&mut self, request: SpawnRequest) -> Result<Result<i32, StartError>, LinkError> {
        let link = match &mut self.link {
            Some(link) => link,
            None => {
                let socket = self.settings.place.keeper_socket();
                self.link.insert(Link::start(&socket, &self.settings.place.name).await?)
            }
        };
        let asked = link.send(&ToKeeper::Spawn(Box::new(request))).await;
        let answer = match asked {
            Ok(()) => link.answer().await,
            Err(error) => Err(error.into()),
        };
        match answer {
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
        LiveRun::new(dir.clone(), record.clone(), pid, pidfd, Parent::Keeper)
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
                    let Some(mut live) = self.live.take() else { return Ok(None) };
                    let record = live::finish(&live.dir, &live.record, wait.as_ref(), Vec::new());
                    if let Some(relay) = live.relay.take() {
                        relay.finish();
                    }
                    return Ok(Some(record.unwrap_or_else(|error| {
                        self.say(&error.to_string());
                        live::exit_record(&live.dir, &live.record, wait.as_ref(), Vec::new())
                    })));
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
            self.link = Some(again);
            return;
        }
        let keeper_pid = link.state.keeper_pid;
        let run_id = self.live.as_ref().map(|live| live.dir.run_id());
        self.log(EventKind::KeeperLost, run_id.as_deref(), json!({"pid": keeper_pid}));
        let Some(live) = &mut self.live else { return };
        // It may have been killed between its last record and its last word.
        if let Ok(Some(wait)) = live.dir.wait_record() {
            return self.end(Some(wait)).await;
        }
        live.parent = if live.pidfd.peek().is_ok() { Parent::Us } else { Parent::Stranger };
        live.take_over_output();
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
        let kept = self
            .link
            .as_ref()
            .filter(|link| link.state.phase == Phase::Running)
            .map(|link| link.state.clone());
        for dir in runs::list(&self.settings.place.runs_dir())? {
            if dir.exit_record()?.is_some() {
                continue;
            }
            let Some(record) = dir.record()? else {
                // Cut off before anything ran.
                fs::remove_dir_all(dir.path()).map_err(failed("cannot remove an unfinished run's folder"))?;
                continue;
            };
            let is_kept = kept.as_ref().is_some_and(|kept| kept.run_id == dir.run_id());
            match alive(&record).filter(|_| is_kept || dir.wait_record().is_ok_and(|wait| wait.is_none())) {
                Some(pidfd) => self.adopt(dir, record, pidfd, is_kept)?,
                None => self.bury(&dir, &record)?,
            }
        }
        Ok(self.live.is_some())
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
        let mut live =
            LiveRun::new(dir, record, pid, pidfd, parent).map_err(failed("cannot watch the run"))?;
        live.adopted = true;
        live.relay = Relay::start(&live.dir.output_file(), true).ok();
        if parent == Parent::Stranger {
            live.take_over_output();
        }
        let run_id = live.dir.run_id();
        let waits = if is_kept { "" } else { "; its keeper is gone, so its exit status may stay unknown" };
        self.say(&format!("prover {pid} of run {run_id} is alive: taken over, not started anew{waits}"));
        self.log(EventKind::RunAdopted, Some(&run_id), json!({"pid": pid, "kept": is_kept}));
        self.live = Some(live);
        self.machine = Machine::adopting(self.settings.policy, self.origin.elapsed());
        self.publish();
        Ok(())
    }

    /// Gives a run that ended while no supervisor ran its exit record.
    fn bury(&mut self, dir: &RunDir, record: &RunRecord) -> Result<(), DaemonError> {
        // Without a keeper nobody has read what the FIFO may still hold; with one it is empty.
        if let Ok(mut output) = crate::keeper::output::Output::open(dir.path()) {
            output.drain();
        }
        let wait = dir.wait_record()?;
        let own = live::own_signals(&self.settings.place.journal(), &dir.run_id());
        let own = own.map_err(failed("cannot read the journal"))?;
        let exit = live::finish(dir, record, wait.as_ref(), own)?;
        self.say(&format!("run {} ended while no supervisor ran: {}", exit.run_id, exit.wait));
        let details =
            json!({"wait": exit.wait, "cause": exit.verdict.cause, "pid": exit.pid, "found_later": true});
        self.log(EventKind::RunEnded, Some(&exit.run_id), details);
        self.last_exit = Some(exit);
        Ok(())
    }
}

/// A handle on the run's process, if that process still lives.
fn alive(record: &RunRecord) -> Option<Pidfd> {
    let identity = record.identity.as_ref()?;
    let pidfd = Pidfd::open(identity.pid).ok()?;
    // Looked at after the handle was opened, so both mean the same process.
    let same = sexton_process::identity(identity.pid).is_ok_and(|now| now == *identity);
    (same && !pidfd.has_ended().unwrap_or(true)).then_some(pidfd)
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
