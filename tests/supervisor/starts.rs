//! One prover at a time, wherever in a start its supervisor dies.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_model::status::{State, SupervisorStatus};
use sexton_tests::{DEADLINE, Running, Supervised, fixture_path, wait_until};

/// Kills of a supervisor; ten times as many with `SEXTON_TEST_LONG=1`.
fn rounds() -> usize {
    if std::env::var_os("SEXTON_TEST_LONG").is_some_and(|long| long == "1") { 300 } else { 30 }
}

fn assert_whole(run: &Path) {
    let names: Vec<String> =
        fs::read_dir(run).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let has = |name: &str| names.iter().any(|found| found == name);
    assert!(has("run.json") && has("exit.json"), "{}: {names:?}", run.display());
    assert!(!has("output.fifo") && !names.iter().any(|name| name.ends_with(".tmp")), "{names:?}");
}

/// A place whose prover says so when it is not alone.
struct Jealous {
    place: Supervised,
    violations: PathBuf,
    command: [String; 4],
    random: fastrand::Rng,
}

impl Jealous {
    fn new() -> Self {
        let seed = fastrand::u64(..);
        eprintln!("seed {seed}");
        let place = Supervised::new();
        let [lock, violations] = ["lock", "violations"].map(|name| place.folder().join(name));
        let text = |path: &Path| path.display().to_string();
        let command = [text(&fixture_path()), "alone".to_owned(), text(&lock), text(&violations)];
        Self { place, violations, command, random: fastrand::Rng::with_seed(seed) }
    }

    fn command(&self) -> [&str; 4] {
        self.command.each_ref().map(String::as_str)
    }

    /// A random moment is the point here; nobody waits for anything.
    fn let_pass_up_to(&mut self, micros: u64) {
        std::thread::sleep(Duration::from_micros(self.random.u64(..micros)));
    }

    /// Ends `supervisor`, whose prover is ready, and looks at what is left.
    #[track_caller]
    fn assert_one_at_a_time(&self, supervisor: Running, status: &SupervisorStatus) {
        let place = &self.place;
        let mut expected = vec![status.pid.unwrap(), status.keeper_pid.unwrap()];
        expected.sort_unstable();
        // The keeper of the round before may be on its way out.
        wait_until(DEADLINE, "one keeper and one prover", || {
            let mut living = place.living();
            living.sort_unstable();
            living == expected
        });
        assert_eq!(place.command(&["shutdown"]).code, Some(0));
        assert_eq!(supervisor.wait().code, Some(0));
        place.wait_until_all_gone();
        assert_eq!(fs::read_to_string(&self.violations).unwrap_or_default(), "");
        place.runs().iter().for_each(|run| assert_whole(run));
        // Nobody ever ended it politely but the shutdown.
        let exits = place.exits();
        assert!(exits[..exits.len() - 1].iter().all(|exit| exit.wait.code != Some(0)), "{exits:?}");
    }
}

/// KwaaiNet#35: a PID file was gone, and a second GPU process was started.
#[test]
fn kwaainet_35_never_two_provers_whenever_the_supervisor_is_killed() {
    let mut jealous = Jealous::new();
    for round in 0..rounds() {
        let supervisor = jealous.place.run(&[], &jealous.command());
        jealous.let_pass_up_to(60_000);
        let place = &jealous.place;
        let status = place.status().filter(|status| status.supervisor_pid == supervisor.pid());
        supervisor.kill();
        // Without a prover there is a start to be killed in, the next time.
        if let Some(pid) = status.and_then(|status| status.pid)
            && round % 2 == 0
        {
            place.kill(pid);
        }
    }

    let (supervisor, status) = jealous.place.run_until_ready(&[], &jealous.command());
    jealous.assert_one_at_a_time(supervisor, &status);
}

/// The same for the keeper: whether a start that it did not live to complete has become a prover is learned from the
/// process itself.
#[test]
fn never_two_provers_whenever_the_keeper_is_killed() {
    let mut jealous = Jealous::new();
    let flags = ["--restart", "always", "--backoff", "0s", "--backoff-max", "0s", "--intensity", "0"];
    let (mut supervisor, _) = jealous.place.run_until_ready(&flags, &jealous.command());
    for _ in 0..rounds() {
        let status = jealous.place.wait_until_ready(&mut supervisor);
        jealous.place.kill(status.pid.unwrap());
        jealous.let_pass_up_to(20_000);
        status.keeper_pid.into_iter().for_each(|keeper| jealous.place.kill(keeper));
    }
    // A new keeper comes with the next start only.
    let ready = jealous.place.wait_until_ready(&mut supervisor);
    assert_eq!(jealous.place.command(&["restart"]).code, Some(0));
    let status = jealous.place.wait_for_status("another run", |status| {
        status.state == State::Ready && status.run_id != ready.run_id
    });
    jealous.assert_one_at_a_time(supervisor, &status);
}

#[test]
fn a_second_supervisor_of_the_same_name_is_refused_in_one_line() {
    let place = Supervised::new();
    let (first, _) = place.run_until_ready(&[], &["sleep", "1000"]);
    let second = place.run(&[], &["sleep", "1000"]).wait();
    assert_eq!((second.code, second.stderr.lines().count()), (Some(1), 1), "{second:?}");
    let said = format!("already runs (pid {})", first.pid());
    assert!(second.stderr.contains(&said), "{second:?}");
    assert_eq!(place.wait_for_state(State::Ready).supervisor_pid, first.pid(), "the first one is untouched");
    assert_eq!(place.runs().len(), 1);
}

/// An unfinished run is one without `run.json`. Whatever else lies there is not the supervisor's to remove, and a
/// record that cannot be read is no reason to leave a prover down.
#[test]
fn strange_things_among_the_runs_keep_no_prover_down() {
    let place = Supervised::new();
    let runs = place.state().join("runs");
    fs::create_dir_all(runs.join("20200101T000000.000Z-0001")).unwrap();
    fs::write(runs.join("20200101T000000.000Z-0001/run.json"), "{\"schema_version\":").unwrap();
    fs::create_dir_all(runs.join("lost+found/precious")).unwrap();
    fs::write(runs.join("notes.txt"), "mine").unwrap();

    let (supervisor, _) = place.run_until_ready(&[], &["sleep", "1000"]);
    assert!(supervisor.stderr().contains("20200101T000000.000Z-0001"), "{}", supervisor.stderr());
    assert!(runs.join("lost+found/precious").exists() && runs.join("notes.txt").exists());
    for command in [&["status"][..], &["runs"], &["runs", "--json"], &["stop"], &["why"]] {
        let ended = place.command(command);
        assert_eq!(ended.code, Some(0), "{command:?}: {ended:?}");
    }
}
