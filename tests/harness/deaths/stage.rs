//! A prover under a supervisor, where it is to die, and known there to its supervisor.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sexton_diagnosis::death::Facts;
use sexton_model::event::{Event, EventKind};
use sexton_model::exit::ExitRecord;
use sexton_model::run::RunRecord;

use super::{Company, Death, KernelLog, LIMIT_BYTES, MEAL_MIB, PATIENCE};
use crate::{Fixture, Gate, Running, Skip, Supervised, V1Cgroup, fixture_path, wait_for, wait_until};

/// Everything of one death. Dropped from top to bottom: processes first, then their cgroups from the leaves up.
#[derive(Debug)]
pub(super) struct Stage {
    /// The supervisor; none before it is started.
    pub(super) supervisor: Option<Running>,
    /// How it is started: prefix, flags and the prover's command line.
    start: [Vec<String>; 3],
    /// Its place.
    pub(super) place: Supervised,
    /// Lets the prover go on.
    pub(super) gate: Gate,
    /// In the prover's cgroup, where that is shared.
    _neighbour: Option<Fixture>,
    /// Where the prover goes, where it does.
    target: Option<V1Cgroup>,
    /// Where supervisor, keeper and at first the prover are.
    own: V1Cgroup,
    /// Beside these.
    pub(super) sibling: V1Cgroup,
    /// Above these.
    pub(super) parent: V1Cgroup,
}

impl Stage {
    /// Makes it, and waits until the prover is where it is to die and its supervisor knows.
    ///
    /// # Errors
    /// Where this machine lacks what it takes.
    pub(super) fn set(death: Death, company: Company, log: KernelLog) -> Result<Self, Skip> {
        let prefix = log.prefix()?;
        let parent = V1Cgroup::new("memory")?;
        let [own, sibling] = [parent.child("own")?, parent.child("sibling")?];
        let target = (company == Company::Moved).then(|| parent.child("target")).transpose()?;
        let neighbour = (company == Company::Shared).then(|| Fixture::spawn(&["idle"]));
        neighbour.iter().for_each(|neighbour| own.add_process(neighbour.pid()));
        let place = Supervised::new();
        let gate = Gate::new(place.folder(), "gate");

        let mut stage = Self {
            supervisor: None,
            start: Default::default(),
            place,
            gate,
            _neighbour: neighbour,
            target,
            own,
            sibling,
            parent,
        };
        stage.limit_memory(death, company);
        let command = stage.command(death);
        let flags: &[&str] = match death {
            Death::AbortWithCore => &["--restart", "never", "--core"],
            Death::OwnEscalation => &["--restart", "never", "--stop-timeout", "50ms"],
            _ => &["--restart", "never"],
        };
        let entrance = [stage.own.entrance(), in_folder(&stage.place), prefix].concat();
        stage.start = [entrance, flags.iter().map(ToString::to_string).collect(), command];
        stage.start_supervisor();
        if death != Death::StartFailure {
            stage.wait_until_known();
        }
        Ok(stage)
    }

    fn limit_memory(&self, death: Death, company: Company) {
        match death {
            Death::AncestorLimit => self.parent.limit_memory(LIMIT_BYTES),
            Death::SiblingThenKill if company != Company::Shared => self.parent.limit_memory(LIMIT_BYTES),
            Death::OwnLimit | Death::ThreadAtOwnLimit | Death::SiblingThenKill => {
                self.provers().limit_memory(LIMIT_BYTES);
            }
            Death::StallThenKill => {
                self.provers().limit_memory(LIMIT_BYTES);
                self.provers().write("memory.oom_control", 1);
            }
            death if death.has_dead_member() => self.provers().limit_memory(LIMIT_BYTES),
            _ => {}
        }
    }

    /// The prover's command line.
    fn command(&self, death: Death) -> Vec<String> {
        if death == Death::StartFailure {
            return vec!["/no/such/prover".to_owned()];
        }
        let meal = MEAL_MIB.to_string();
        let ignore_term = "trap '' TERM; echo armed; while :; do sleep 0.01; done";
        let then: &[&str] = match death {
            Death::OwnLimit | Death::AncestorLimit | Death::StallThenKill => &["eat", &meal],
            Death::ThreadAtOwnLimit | Death::LeaderGoneThenKill => &["leader-leaves", &meal],
            Death::MemberOom | Death::MemberOomThenKill | Death::MemberOomThenTerm => &["member-eats", &meal],
            Death::OwnEscalation => &["exec", "sh", "-c", ignore_term],
            Death::ExitOneHundredThirtySeven => &["exit", "137"],
            Death::TimeoutKill => &["exec", "timeout", "-s", "KILL", "0.01", "sleep", "1000"],
            Death::Segfault => &["segv"],
            Death::Abort | Death::AbortWithCore => &["abort"],
            Death::IllegalInstruction => &["trap"],
            Death::Division => &["divide"],
            Death::BusError => &["bus"],
            Death::Panic => &["panic"],
            Death::PanicAbort => &["panic-and-abort"],
            Death::CleanExit => &["exit", "0"],
            Death::ErrorExit => &["exit", "3"],
            _ => &["linger"],
        };
        let program = fixture_path().display().to_string();
        let gate = self.gate.path().to_string();
        let target =
            self.target.as_ref().map_or_else(|| "-".into(), |target| target.path().display().to_string());
        let first = [program, "staged".into(), gate, target];
        first.into_iter().chain(then.iter().map(ToString::to_string)).collect()
    }

    /// Waits until the prover is where it is to die, and every cgroup that it was in has its baseline.
    fn wait_until_known(&mut self) {
        let stays = if self.target.is_some() { 2 } else { 1 };
        self.wait_for_output("staged\n");
        wait_until(PATIENCE, "the supervisor follows the prover's cgroups", || {
            self.tracking()
                .is_some_and(|tracked| tracked["stays"].as_array().is_some_and(|all| all.len() == stays))
        });
    }

    /// Waits until the prover has written so much.
    #[track_caller]
    pub(super) fn wait_for_output(&mut self, wanted: &str) {
        let supervisor = self.supervisor.as_mut().expect("a supervisor");
        wait_until(PATIENCE, &format!("{wanted:?} from the prover"), || {
            assert!(supervisor.is_alive(), "the supervisor has left: {}", supervisor.stderr());
            let log = self.place.runs().first().and_then(|run| fs::read(run.join("output.log")).ok());
            log.is_some_and(|log| String::from_utf8_lossy(&log).ends_with(wanted))
        });
    }

    /// Where the prover dies.
    pub(super) fn provers(&self) -> &V1Cgroup {
        self.target.as_ref().unwrap_or(&self.own)
    }

    /// What the supervisor has tracked so far.
    pub(super) fn tracking(&self) -> Option<Value> {
        self.of_run("tracking.json")
    }

    /// The prover's PID.
    #[track_caller]
    pub(super) fn pid(&self) -> i32 {
        let record: RunRecord = self.of_run("run.json").expect("a run");
        record.identity.expect("a process").pid
    }

    /// Sends a signal to the prover, as any process may.
    #[track_caller]
    pub(super) fn signal_prover(&self, signal: Signal) {
        let pid = nix::unistd::Pid::from_raw(self.pid());
        nix::sys::signal::kill(pid, signal).expect("its keeper has not reaped it");
    }

    fn start_supervisor(&mut self) {
        let [prefix, flags, command] = &self.start;
        self.supervisor = Some(self.place.run_through(prefix, &words(flags), &words(command)));
    }

    /// Waits for the verdict. A supervisor in the same cgroup may be OOM-killed as well, when the memory of the first
    /// victim is slow to come back: another one is started then, as a service manager does.
    #[track_caller]
    pub(super) fn verdict(&mut self) -> ExitRecord {
        wait_for(PATIENCE, "an exit record", || {
            let alive = self.supervisor.as_mut().expect("a supervisor").is_alive();
            let record = self.of_run("exit.json");
            if record.is_none() && !alive {
                self.start_supervisor();
            }
            record
        })
    }

    /// What the supervisor knew: `facts.json`.
    pub(super) fn facts(&self) -> Option<Facts> {
        self.of_run("facts.json")
    }

    /// The first event of this kind, if there is one.
    pub(super) fn event(&self, kind: EventKind) -> Option<Event> {
        let journal = fs::read_to_string(self.place.state().join("journal.ndjson")).ok()?;
        // Its last line may be in the making.
        let mut events = journal.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok());
        events.find(|event| event.kind == kind)
    }

    fn of_run<T: DeserializeOwned>(&self, file: &str) -> Option<T> {
        let path: PathBuf = self.place.runs().into_iter().next()?.join(file);
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }
}

/// A core is written where it is removed with everything else, if the supervisor allows one.
fn in_folder(place: &Supervised) -> Vec<String> {
    let folder = place.folder().display().to_string();
    let script = "cd \"$0\" && ulimit -Sc unlimited && exec \"$@\"";
    ["sh", "-c", script].map(str::to_owned).into_iter().chain([folder]).collect()
}

fn words(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}
