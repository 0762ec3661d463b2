//! cuzk under the supervisor, by a stand-in that behaves as it does: a start that takes long, no way to quiesce it, SIGINT that
//! never ends it, SIGTERM that ends it at once.

use std::path::PathBuf;

use serde_json::Value;
use sexton_model::status::{State, SupervisorStatus};
use sexton_model::verdict::Cause;
use sexton_tests::{Running, Supervised, fixture_path};

struct Cuzk {
    place: Supervised,
    socket: PathBuf,
    jobs: PathBuf,
    go: PathBuf,
}

impl Cuzk {
    fn new() -> Self {
        let place = Supervised::new();
        let file = |name: &str| place.folder().join(name);
        let (socket, jobs, go) = (file("cuzk.sock"), file("jobs"), file("go"));
        Self { place, socket, jobs, go }
    }

    /// Has it list these jobs, all at once.
    fn list(&self, jobs: &str) {
        let new = self.jobs.with_extension("new");
        std::fs::write(&new, jobs).unwrap();
        std::fs::rename(&new, &self.jobs).unwrap();
    }

    fn be_read(&self) {
        std::fs::write(&self.go, "").unwrap();
    }

    /// With the preset, its URL, shorter times and `more`.
    fn run(&self, more: &str) -> Running {
        let config = format!(
            "[prover]\npreset = \"cuzk\"\n[ready]\nurl = \"unix:{}:/status\"\n{more}",
            self.socket.display()
        );
        let [flag, file] = self.place.configured(&config);
        let program = fixture_path();
        let words = [&self.socket, &self.jobs, &self.go].map(|path| path.to_str().unwrap());
        let command = [&[program.to_str().unwrap(), "cuzk"], &words[..]].concat();
        self.place.run(&[&flag, &file], &command)
    }

    fn ready(&self, more: &str) -> (Running, SupervisorStatus) {
        self.be_read();
        let running = self.run(more);
        (running, self.place.wait_for_state(State::Ready))
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        let listed = self.place.command(&["events", "--kind", kind, "--json"]);
        listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

const SETTLES_SOON: &str = "[stop]\nquiesce_settle = \"200ms\"\n";

#[test]
fn it_is_ready_once_its_status_answers_and_not_before() {
    let cuzk = Cuzk::new();
    let _running = cuzk.run("timeout = \"50ms\"\n");
    // Late is an event, and no reason to restart a program that reads parameters for minutes.
    cuzk.place.wait_for_status("that it is late", |status| {
        status.state == State::Starting
            && status.reason.as_deref().is_some_and(|why| why.contains("not ready in time"))
    });
    cuzk.be_read();
    let ready = cuzk.place.wait_for_state(State::Ready);
    assert_eq!((ready.restarts, ready.reason), (0, None));
    assert_eq!(cuzk.events("readiness_overdue").len(), 1);
}

#[test]
fn a_drain_waits_until_its_work_is_done_and_then_ends_it_by_sigterm() {
    let cuzk = Cuzk::new();
    cuzk.list("porep-1 3 10 gpu\n");
    let (_running, _) = cuzk.ready(SETTLES_SOON);
    let mut drain = cuzk.place.spawn(&["drain"], |_| {});
    cuzk.place.wait_for_status("its job in flight", |status| {
        status.state == State::Quiescing && status.in_flight == Some(1)
    });
    assert!(drain.is_alive());
    cuzk.list("porep-1 10 10 done\n");
    let ended = drain.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("drained and stopped"), "{ended:?}");
    let record = cuzk.place.only_exit();
    assert_eq!((record.wait.signal, record.verdict.cause), (Some(15), Cause::StoppedBySupervisor));
    assert_eq!(cuzk.events("quiesced").len(), 1);
}

/// Failed jobs never leave its page: they must not hold a drain for ever.
#[test]
fn jobs_that_failed_long_ago_hold_no_drain() {
    let cuzk = Cuzk::new();
    cuzk.list("porep-1 3 10 pending\n");
    let (_running, _) = cuzk.ready(SETTLES_SOON);
    assert_eq!(cuzk.place.command(&["stop"]).code, Some(0));
    let quiesced = &cuzk.events("quiesced")[0];
    assert_eq!(quiesced["abandoned"][0]["id"], "porep-1", "{quiesced}");
}

#[test]
fn a_drain_that_takes_too_long_is_given_up_and_it_goes_on_working() {
    let cuzk = Cuzk::new();
    cuzk.list("porep-1 3 10 gpu\n");
    let (_running, ready) = cuzk.ready("[stop]\nquiesce_settle = \"200ms\"\nquiesce_timeout = \"600ms\"\n");
    let drained = cuzk.place.command(&["drain"]);
    assert_eq!(drained.code, Some(75), "{drained:?}");
    assert!(drained.stderr.contains("has not finished its work in time and goes on: ready"), "{drained:?}");
    let status = cuzk.place.wait_for_state(State::Ready);
    assert_eq!((status.pid, status.restarts), (ready.pid, 0));
}

/// A stop is a stop: with the time for its work over, it is asked to end all the same.
#[test]
fn a_stop_gives_its_work_time_and_no_more() {
    let cuzk = Cuzk::new();
    cuzk.list("porep-1 3 10 gpu\n");
    let (_running, _) = cuzk.ready("[stop]\nquiesce_timeout = \"300ms\"\n");
    assert_eq!(cuzk.place.command(&["stop"]).code, Some(0));
    let record = cuzk.place.only_exit();
    assert_eq!((record.wait.signal, record.verdict.cause), (Some(15), Cause::StoppedBySupervisor));
    assert_eq!(record.in_flight.len(), 1, "{:?}", record.in_flight);
    assert_eq!((record.in_flight[0].id.as_str(), record.in_flight[0].partitions_done), ("porep-1", 3));
}

#[test]
fn by_sigint_it_never_ends_and_sigkill_follows() {
    let cuzk = Cuzk::new();
    let (_running, _) =
        cuzk.ready("[stop]\nsignal = \"SIGINT\"\nexit_timeout = \"300ms\"\nquiesce = \"none\"\n");
    assert_eq!(cuzk.place.command(&["stop"]).code, Some(0));
    let record = cuzk.place.only_exit();
    assert_eq!((record.wait.signal, record.verdict.cause), (Some(9), Cause::KilledBySupervisor));
}

/// It answers pings all the time.
#[test]
fn a_hung_one_is_found_by_its_work_and_is_restarted_where_that_is_configured() {
    let cuzk = Cuzk::new();
    cuzk.list("porep-1 3 10 gpu\n");
    let (_running, first) = cuzk
        .ready("[watchdog]\nprogress_timeout = \"1s\"\non_stall = \"restart\"\n[restart]\ndelay = \"1ms\"\n");
    let second = cuzk.place.wait_for_status("another run", |status| {
        status.state == State::Ready && status.run_id != first.run_id
    });
    let record = second.last_exit.unwrap();
    assert_eq!(record.verdict.cause, Cause::Watchdog, "{:?}", record.verdict);
    assert!(record.verdict.summary.contains("no partition has ended for"), "{:?}", record.verdict);
    assert_eq!(record.in_flight.len(), 1);
    let stalled = &cuzk.events("progress_stalled")[0];
    assert_eq!((&stalled["in_hand"], &stalled["in_flight"][0]["id"]), (&true.into(), &"porep-1".into()));
}

#[test]
fn by_default_a_stall_is_an_event_and_a_reason_and_nothing_else() {
    let cuzk = Cuzk::new();
    cuzk.list("porep-1 3 10 gpu\n");
    let (_running, ready) = cuzk.ready("[watchdog]\nprogress_timeout = \"1s\"\n");
    let stalled = cuzk.place.wait_for_status("a reason", |status| status.reason.is_some());
    assert_eq!((stalled.state, stalled.pid), (State::Ready, ready.pid));
    assert!(stalled.reason.unwrap().contains("no partition has ended"));
    cuzk.list("porep-1 4 10 gpu\n");
    cuzk.place.wait_for_status("that it goes on", |status| status.reason.is_none());
    assert_eq!(cuzk.events("progress_resumed").len(), 1);
}
