//! Many provers that die at random moments, in every way there is: each is recorded as it was.

use std::fs;
use std::path::Path;

use sexton_host::task::Tasks;
use sexton_model::exit::ExitRecord;
use sexton_model::process_state::ProcessState;
use sexton_model::status::SupervisorStatus;
use sexton_tests::{Supervised, fixture_path, observe};

/// Supervisors side by side.
const SUPERVISORS: u64 = 4;

/// Deaths in all; ten times as many with `SEXTON_TEST_LONG=1`.
fn deaths() -> usize {
    if std::env::var_os("SEXTON_TEST_LONG").is_some_and(|long| long == "1") { 2000 } else { 200 }
}

/// As the fixture wrote it down before it died.
fn ending(record: &ExitRecord) -> String {
    match (record.wait.code, record.wait.signal) {
        (Some(code), None) => format!("code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        other => format!("{other:?}"),
    }
}

/// Open files and resident memory, KiB, of a process.
#[derive(Debug)]
struct Size {
    descriptors: usize,
    resident_kib: u64,
}

fn size(pid: i32) -> Size {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident_kib = resident.trim().trim_end_matches(" kB").parse().unwrap();
    Size { descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(), resident_kib }
}

/// Neither grew: some descriptors of a start or an ending under way, whose evidence is a dozen files; a MiB for the
/// allocator.
fn assert_flat(who: &str, before: &Size, after: &Size) {
    assert!(after.descriptors <= before.descriptors + 24, "{who}: {before:?} -> {after:?}");
    assert!(after.resident_kib <= before.resident_kib + 1024, "{who}: {before:?} -> {after:?}");
}

fn zombies_below(pid: i32) -> Vec<i32> {
    let mut below = Tasks::system().descendants(pid).into_value().unwrap_or_default();
    below.retain(|pid| matches!(observe(*pid), ProcessState::Unreaped { .. }));
    below
}

/// The numbers of the supervisor and of its keeper.
fn sizes(status: &SupervisorStatus) -> [Size; 2] {
    [size(status.supervisor_pid), size(status.keeper_pid.expect("a keeper"))]
}

fn supervise_many_deaths(seed: u64, deaths: usize) {
    let place = Supervised::new();
    let intents = place.folder().join("intents");
    fs::create_dir(&intents).unwrap();
    let (program, seed) = (fixture_path(), seed.to_string());
    let command = [program.to_str().unwrap(), "die-at-random", &seed, intents.to_str().unwrap()];
    // Among the random codes are those that no restart follows by default.
    let config = place.folder().join("sexton.toml");
    fs::write(
        &config,
        "[restart]\npolicy = \"always\"\ndelay = \"1ms\"\ndelay_max = \"1ms\"\nintensity = 0\ncodes = {}\n",
    )
    .unwrap();
    let flags = ["--config", config.to_str().unwrap()];
    let _running = place.run(&flags, &command);

    let restarted = |times: usize| {
        let what = format!("{times} restarts");
        // Each wait has its own deadline, so the number of them may be anything.
        let mut done = 0;
        while done < times {
            done = (done + 20).min(times);
            place.wait_for_status(&what, |status| status.restarts >= done as u64);
        }
        place.wait_for_status(&what, |status| status.keeper_pid.is_some())
    };
    let before = sizes(&restarted(deaths / 4));
    let status = restarted(deaths);
    let after = sizes(&status);
    assert_flat("supervisor", &before[0], &after[0]);
    assert_flat("keeper", &before[1], &after[1]);

    assert_eq!(place.command(&["stop"]).code, Some(0));
    // The newest grandchild may die just now.
    sexton_tests::wait_until(sexton_tests::DEADLINE, "no zombie below the supervisor", || {
        zombies_below(status.supervisor_pid).is_empty()
    });
    assert_eq!(place.command(&["shutdown"]).code, Some(0));
    place.wait_until_all_gone();

    let exits = place.exits();
    assert_eq!(exits.len(), place.runs().len(), "an exit record for every run");
    assert!(exits.len() >= deaths);
    // The last one was stopped before or after it wrote its intent down.
    for record in &exits[..exits.len() - 1] {
        assert_recorded(record, &intents, &place);
    }
}

fn assert_recorded(record: &ExitRecord, intents: &Path, place: &Supervised) {
    let intent = fs::read_to_string(intents.join(&record.run_id)).unwrap();
    assert_eq!(ending(record), intent, "{record:?}");
    assert_eq!(place.output(&record.run_id), format!("{intent}\n").into_bytes());
}

#[test]
fn deaths_at_random_moments_are_recorded_exactly_and_leave_nothing() {
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    std::thread::scope(|scope| {
        for number in 0..SUPERVISORS {
            let each = deaths() / SUPERVISORS as usize;
            scope.spawn(move || supervise_many_deaths(seed.wrapping_add(number), each));
        }
    });
}
