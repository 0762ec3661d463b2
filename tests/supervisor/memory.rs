//! Memory that outlives its run, starts that wait for it, budgets that shrink after proved OOMs only.

use serde_json::Value;
use sexton_model::drain::{DrainMeasure, Hold};
use sexton_model::status::State;
use sexton_model::verdict::Cause;
use sexton_tests::{Fixture, OrSkip, Supervised, V1Cgroup, fixture_path, wait_for};

const MIB: u64 = 1 << 20;

fn fixture() -> String {
    fixture_path().to_str().unwrap().to_owned()
}

fn events(place: &Supervised, kind: &str) -> Vec<Value> {
    let listed = place.command(&["events", "--kind", kind, "--json"]);
    listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Nothing is reaped twice, and a start into memory that is still held is the mistake that this program is against.
#[test]
fn a_start_waits_until_the_memory_of_the_run_before_is_back() {
    let Some(cgroup) = V1Cgroup::new("memory").or_skip() else { return };
    let place = Supervised::new();
    let [flag, file] = place.configured("[cgroup]\ncreate = \"always\"\n");
    let _running =
        place.run_through(&cgroup.entrance_for_parents(), &[&flag, &file], &[&fixture(), "pool", "96"]);
    let first = place.wait_for_state(State::Ready);
    let descriptor = wait_for(sexton_tests::DEADLINE, "its pool", || {
        let output = place.output(first.run_id.as_ref().unwrap());
        String::from_utf8(output).unwrap().strip_prefix("fd=")?.trim().parse::<i32>().ok()
    });
    // In another cgroup, and not below the supervisor: nobody stops it with the run.
    let holder =
        Fixture::try_spawn(&["keep-memfd", &first.pid.unwrap().to_string(), &descriptor.to_string()])
            .unwrap();
    place.kill(first.pid.unwrap());
    let held = place.wait_for_status("a holder by name", |status| {
        status.state == State::Releasing
            && status
                .drain
                .as_ref()
                .is_some_and(|drain| drain.held_by.iter().any(|one| one.pid == holder.pid()))
    });
    let drain = held.drain.unwrap();
    assert_eq!(drain.measure, DrainMeasure::Charge);
    // The pool less what the cgroup had been charged before.
    assert!(drain.held_bytes.value().is_some_and(|bytes| *bytes >= 90 * MIB), "{drain:?}");
    assert!(matches!(drain.held_by[0].what, Hold::SharedMemory | Hold::PerhapsSharedMemory), "{drain:?}");
    let page = place.command(&["status"]).stdout;
    assert!(page.contains("releasing") && page.contains(&holder.pid().to_string()), "{page}");
    assert_eq!(place.runs().len(), 1, "no second start into it");
    drop(holder);
    place.wait_for_status("another run", |status| {
        status.state == State::Ready && status.run_id != first.run_id
    });
    let released = &events(&place, "memory_released")[0];
    assert!(released["bytes"].as_u64().unwrap() >= 90 * MIB, "{released}");
}

/// earlyoom#309 is about the same mistake: acting on memory that is on its way back.
#[test]
fn a_start_that_does_not_fit_waits_names_the_limit_and_goes_on_when_there_is_room() {
    let Some(cgroup) = V1Cgroup::new("memory").or_skip() else { return };
    let place = Supervised::new();
    cgroup.limit_memory(256 * MIB);
    let mut neighbour = Fixture::try_spawn(&["hold-memory", "1"]).unwrap();
    cgroup.add_process(neighbour.pid());
    assert!(neighbour.ask("take 150").starts_with("held="));
    let [flag, file] = place.configured("[memory]\nneed = \"160MiB\"\n");
    let _running = place.run_through(&cgroup.entrance_for_parents(), &[&flag, &file], &["sleep", "1000"]);
    let waiting = place.wait_for_status("the gate", |status| status.gate.is_some());
    let gate = waiting.gate.unwrap();
    assert_eq!((waiting.state, gate.open, gate.can_ever_fit), (State::WaitingForMemory, false, true));
    assert!(gate.binding_limit.as_ref().is_some_and(|limit| limit.contains("sexton-test-")), "{gate:?}");
    assert!(gate.short_by_bytes > 0 && gate.need_bytes == Some(160 * MIB), "{gate:?}");
    let page = place.command(&["status"]).stdout;
    assert!(page.contains("gate") && page.contains("160.0 MiB"), "{page}");
    assert_eq!(place.runs().len(), 0);
    drop(neighbour);
    place.wait_for_state(State::Ready);
    assert_eq!(events(&place, "gate_shut").len(), 1);
    assert!(events(&place, "gate_opened")[0]["waited_seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_gate_that_stays_shut_fails_with_the_limit_by_name_and_start_now_starts_all_the_same() {
    let place = Supervised::new();
    let [flag, file] = place.configured("[memory]\nneed = \"900TiB\"\ngate_timeout = \"200ms\"\n");
    let _running = place.run(&[&flag, &file], &["sleep", "1000"]);
    let failed = place.wait_for_state(State::Failed);
    let reason = failed.reason.unwrap();
    assert!(reason.contains("can never fit") && reason.contains("900.0 TiB"), "{reason}");
    assert_eq!(events(&place, "gate_timed_out").len(), 1);
    assert_eq!(place.command(&["start", "--now"]).code, Some(0));
    place.wait_for_state(State::Ready);
}

#[test]
fn a_gate_that_stays_shut_takes_the_largest_budget_that_fits_for_that_start() {
    let place = Supervised::new();
    let config = "[memory]\nneed = \"900TiB\"\nbudget = \"900TiB\"\nladder = [\"100%\", \"64MiB\", \"32MiB\"]\n\
                  gate_timeout = \"200ms\"\n";
    let [flag, file] = place.configured(config);
    let _running =
        place.run(&[&flag, &file], &["sh", "-c", "echo $SEXTON_MEMORY_BUDGET_BYTES; exec sleep 1000"]);
    let ready = place.wait_for_state(State::Ready);
    assert_eq!(ready.budget_bytes, Some(64 * MIB));
    // A gate is no OOM: the next start begins at the top.
    let ladder = ready.ladder.unwrap();
    assert_eq!((ladder.step_bytes, ladder.reason), (900 << 40, None));
    assert_eq!(events(&place, "gate_opened")[0]["budget_bytes"], 64 * MIB);
}

/// Real OOM kills, one after the other, until it fits.
#[test]
fn the_budget_shrinks_with_each_proved_oom_until_it_fits_and_is_remembered() {
    let Some(cgroup) = V1Cgroup::new("memory").or_skip() else { return };
    let place = Supervised::new();
    cgroup.limit_memory(150 * MIB);
    let config = "[memory]\nbudget = \"120MiB\"\nladder = [\"100%\", \"85%\", \"70%\"]\nfloor = \"60MiB\"\n\
                  [restart]\ndelay = \"1ms\"\n";
    let [flag, file] = place.configured(config);
    // It takes half as much again as it is told.
    let running =
        place.run_through(&cgroup.entrance_for_parents(), &[&flag, &file], &[&fixture(), "budgeted", "150"]);
    let fits = wait_for(sexton_tests::DEADLINE, "a budget that fits", || {
        let run = place.runs().pop()?;
        let output = String::from_utf8(std::fs::read(run.join("output.log")).ok()?).ok()?;
        output.strip_prefix("fits ")?.trim().parse::<u64>().ok()
    });
    assert_eq!(fits, 120 * MIB * 70 / 100);
    let exits = place.exits();
    assert_eq!(exits.len(), 2, "{exits:?}");
    assert!(exits.iter().all(|exit| exit.verdict.cause == Cause::OomAncestorLimit), "{exits:?}");
    let status = place.wait_for_state(State::Ready);
    assert_eq!(status.budget_bytes, Some(fits));
    let ladder = status.ladder.unwrap();
    assert_eq!(ladder.steps_bytes, [120 * MIB, 102 * MIB, 84 * MIB, 60 * MIB]);
    assert!(
        ladder.reason.as_ref().is_some_and(|why| why.contains("102.0 MiB was killed for memory")),
        "{ladder:?}"
    );
    assert_eq!(events(&place, "budget_changed").len(), 2);
    let page = place.command(&["status"]).stdout;
    assert!(page.contains("budget") && page.contains("of 120.0 MiB"), "{page}");
    // Another supervisor of the same place knows it still.
    assert_eq!(place.command(&["shutdown"]).code, Some(0));
    assert_eq!(running.wait().code, Some(0));
    let _again =
        place.run_through(&cgroup.entrance_for_parents(), &[&flag, &file], &[&fixture(), "budgeted", "150"]);
    assert_eq!(place.wait_for_state(State::Ready).budget_bytes, Some(fits));
}

#[test]
fn without_a_smaller_budget_it_stays_down_and_says_so() {
    let Some(cgroup) = V1Cgroup::new("memory").or_skip() else { return };
    let place = Supervised::new();
    cgroup.limit_memory(120 * MIB);
    let config = "[memory]\nbudget = \"100MiB\"\nladder = [\"100%\", \"95%\"]\n[restart]\ndelay = \"1ms\"\n";
    let [flag, file] = place.configured(config);
    let _running =
        place.run_through(&cgroup.entrance_for_parents(), &[&flag, &file], &[&fixture(), "budgeted", "200"]);
    let failed = place.wait_for_state(State::Failed);
    assert!(failed.reason.as_ref().is_some_and(|why| why.contains("smallest budget")), "{failed:?}");
    assert_eq!(place.exits().len(), 2);
}

/// Never after a segfault, a kill, or a bare 137.
#[test]
fn no_other_death_shrinks_the_budget() {
    for words in [&["segv"][..], &["kill-self", "9"], &["exit", "137"], &["abort"]] {
        let place = Supervised::new();
        let config = "[memory]\nbudget = \"64MiB\"\n[restart]\ndelay = \"1ms\"\ndelay_max = \"1ms\"\n";
        let [flag, file] = place.configured(config);
        let program = fixture();
        let command = [&[program.as_str()], words].concat();
        let _running = place.run(&[&flag, &file], &command);
        place.wait_for_status("five restarts", |status| status.restarts >= 5);
        let status = place.status().unwrap();
        assert_eq!(status.ladder.map(|ladder| ladder.step_bytes), Some(64 * MIB), "{words:?}");
        assert_eq!(events(&place, "budget_changed"), [] as [Value; 0], "{words:?}");
    }
}

/// cuzk reads a file, in whole GiB.
#[test]
fn the_budget_is_handed_on_by_environment_arguments_and_a_template() {
    let place = Supervised::new();
    let (source, target) = (place.folder().join("cuzk.toml.in"), place.folder().join("cuzk.toml"));
    std::fs::write(&source, "total_budget = \"{budget_gib}GiB\"\n").unwrap();
    let config = format!(
        "[memory]\nbudget = \"3GiB\"\nneed = \"1MiB\"\ntemplate = {{ source = {source:?}, target = {target:?} }}\n"
    );
    let [flag, file] = place.configured(&config);
    let script = "echo $SEXTON_MEMORY_BUDGET_BYTES $1 $2; cat $3";
    let command =
        ["sh", "-c", script, "sh", "{budget_bytes}", "--budget={budget_gib}GiB", target.to_str().unwrap()];
    let ended = place.run(&[&flag, &file, "--restart", "never"], &command).wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = place.only_exit();
    let bytes = 3_u64 << 30;
    assert_eq!(record.last_words, format!("{bytes} {bytes} --budget=3GiB\ntotal_budget = \"3GiB\"\n"));
    assert_eq!(record.command[4], bytes.to_string(), "as it was executed");
}
