//! The engine with its threads, over a backend whose proofs take as long as the test wants.

use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::json;
use sexton_model::pipeline::{Allocation, Priority};

use super::backend::{Document, Proved, Stage};
use super::*;

/// How long a test waits for what must happen.
const DEADLINE: Duration = Duration::from_secs(20);

/// What the next proof of a [`Staged`] backend does.
enum Play {
    Prove,
    Fail,
    Panic,
}

/// A backend that tells when it has begun a proof, and ends it when it is told how.
struct Staged {
    begun: Mutex<Sender<()>>,
    plays: Mutex<Receiver<Play>>,
}

impl Backend for Staged {
    fn prove(&self, _: &Statement, enter: &mut dyn FnMut(Stage)) -> Result<Proved, String> {
        enter(Stage::Prove);
        self.begun.lock().unwrap().send(()).unwrap();
        match self.plays.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(DEADLINE).unwrap() {
            Play::Prove => {
                let document = Document { proof: json!(1), public: json!([]) };
                let (native, snarkjs) = (document.clone(), document);
                Ok(Proved { key_id: "k".into(), development_key: true, native, snarkjs })
            }
            Play::Fail => Err("as told".into()),
            Play::Panic => panic!("as told"),
        }
    }

    fn resident(&self) -> Vec<Allocation> {
        Vec::new()
    }
}

struct Theatre {
    engine: Engine,
    begun: Receiver<()>,
    play: Sender<Play>,
}

fn engine() -> Theatre {
    let ((begun_sender, begun), (play, plays)) = (channel(), channel());
    let backend = Staged { begun: Mutex::new(begun_sender), plays: Mutex::new(plays) };
    let settings = Settings {
        workers: 1,
        limits: Limits { queue_jobs: 16, answers: 16 },
        budget_bytes: Some(1 << 30),
        run_id: None,
    };
    Theatre { engine: Engine::start(settings, Arc::new(backend), false).unwrap(), begun, play }
}

impl Theatre {
    fn submit(&self, id: &str, priority: Priority) {
        let request = ProofRequest {
            id: Some(id.into()),
            circuit: "mimc".into(),
            inputs: json!({"size": "2^4"}),
            priority,
            deadline_seconds: None,
        };
        self.engine.submit(request, true).unwrap();
    }

    /// Submits a job and waits until the worker has it.
    fn submit_and_begin(&self, id: &str) {
        self.submit(id, Priority::Normal);
        self.begun.recv_timeout(DEADLINE).unwrap();
    }

    fn wait(&self, id: &str) -> ProofAnswer {
        let mut states = self.engine.watch(id).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            tokio::time::timeout(DEADLINE, states.wait_for(|state| state.is_ended())).await.unwrap().unwrap();
        });
        self.engine.answer(id, ProofFormat::Native).unwrap()
    }
}

#[test]
fn urgent_jobs_overtake_waiting_ones() {
    let stage = engine();
    stage.submit_and_begin("first");
    stage.submit("normal", Priority::Normal);
    stage.submit("critical", Priority::Critical);
    stage.play.send(Play::Prove).unwrap();
    stage.begun.recv_timeout(DEADLINE).unwrap();
    assert_eq!(stage.engine.answer("critical", ProofFormat::Native).unwrap().state, JobState::Proving);
    stage.play.send(Play::Prove).unwrap();
    stage.play.send(Play::Prove).unwrap();
    assert_eq!(stage.wait("normal").state, JobState::Done);
}

#[test]
fn a_panic_costs_one_job_and_not_its_worker() {
    let stage = engine();
    for (id, play) in [("panics", Play::Panic), ("fails", Play::Fail), ("done", Play::Prove)] {
        stage.play.send(play).unwrap();
        stage.submit_and_begin(id);
        stage.wait(id);
    }
    let error = |id| stage.engine.answer(id, ProofFormat::Native).unwrap().error;
    assert_eq!(error("panics").as_deref(), Some("the prover panicked: as told"));
    assert_eq!((error("fails").as_deref(), error("done")), (Some("as told"), None));
    let status = stage.engine.status();
    assert_eq!((status.counters.total_completed, status.counters.total_failed), (1, 2));
    assert_eq!(status.last_error.as_deref(), Some("fails: as told"));
    assert!(status.pipelines.is_empty(), "what ended is not in flight");
}

#[test]
fn a_cancelled_running_job_is_answered_at_once_and_its_result_discarded() {
    let stage = engine();
    stage.submit_and_begin("a");
    let cancellation = stage.engine.cancel("a").unwrap();
    assert_eq!((cancellation.was, cancellation.result_discarded), (JobState::Proving, true));
    assert_eq!(stage.wait("a").error.as_deref(), Some("cancelled by a client while proving"));
    let workers = stage.engine.status().cpu_workers.unwrap();
    assert_eq!(workers[0].current_job.as_deref(), Some("a"), "the worker still has it");

    stage.play.send(Play::Prove).unwrap();
    stage.play.send(Play::Prove).unwrap();
    stage.submit_and_begin("b");
    assert_eq!(stage.wait("b").state, JobState::Done);
    assert_eq!(stage.engine.answer("a", ProofFormat::Native).unwrap().state, JobState::Cancelled);
}

#[test]
fn a_drain_is_over_when_all_is_answered_and_fetched() {
    let stage = engine();
    stage.submit_and_begin("runs");
    stage.submit("waits", Priority::Normal);
    assert_eq!(stage.engine.drain_progress(DEADLINE), Drain::None);
    let admission = stage.engine.drain("test", false);
    assert_eq!((admission.state, admission.queued, admission.running), (EngineState::Draining, 0, 1));
    assert_eq!(stage.wait("waits").state, JobState::HandedBack);
    assert_eq!(stage.engine.drain_progress(DEADLINE), Drain::Running);
    stage.play.send(Play::Prove).unwrap();
    let mut states = stage.engine.watch("runs").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(states.wait_for(|state| state.is_ended())).map(drop).unwrap();
    assert!(matches!(stage.engine.drain_progress(DEADLINE), Drain::Answering(_)));
    assert_eq!(stage.wait("runs").state, JobState::Done);
    assert_eq!(stage.engine.drain_progress(DEADLINE), Drain::Over);
}

#[test]
fn an_idle_engine_drains_at_once() {
    let stage = engine();
    stage.engine.drain("test", false);
    assert_eq!(stage.engine.drain_progress(DEADLINE), Drain::Over);
}

#[test]
fn the_books_count_what_is_in_progress() {
    let stage = engine();
    assert_eq!(stage.engine.status().memory.used_bytes, 0);
    stage.submit_and_begin("a");
    let memory = stage.engine.status().memory;
    assert_eq!(memory.used_bytes, 16 * 512);
    assert_eq!(memory.available_bytes, Some((1 << 30) - 16 * 512));
    stage.play.send(Play::Prove).unwrap();
    stage.wait("a");
}
