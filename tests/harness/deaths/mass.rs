//! Very many OOM kills at once, with other kills among them.

use std::fs;

use sexton_diagnosis::death::Facts;
use sexton_model::exit::ExitRecord;
use sexton_model::verdict::Cause;

use super::cell::was_starved;
use super::{KernelLog, LIMIT_BYTES, MEAL_MIB, PATIENCE, Tally};
use crate::{Skip, Supervised, V1Cgroup, fixture_path, wait_until};

/// Cgroups side by side.
const LANES: usize = 20;

/// At least so many OOM kills in cgroups side by side, with one `kill -9` to every four of them; every second supervisor
/// cannot read the kernel log. Returns the tally and what was wrong.
///
/// # Errors
/// Where this machine lacks what it takes.
#[track_caller]
pub fn run(kills: usize, seed: u64) -> Result<(Tally, Vec<String>), Skip> {
    let lane = |number: usize| {
        let log = KernelLog::ALL[number % 2];
        // One more in case that decoys are many; the tally says how many there were.
        let deaths = kills.div_ceil(LANES) * 5 / 4 + 2;
        move || supervise_many(log, deaths, seed.wrapping_add(number as u64))
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|number| scope.spawn(lane(number))).collect();
        lanes.into_iter().map(|lane| lane.join().expect("a lane fails with a message")).collect()
    });
    let (mut tally, mut wrong) = (Tally::default(), Vec::new());
    for result in results {
        for (intent, known, record) in result? {
            count(&mut tally, &mut wrong, &intent, &record, known.as_ref());
        }
    }
    Ok((tally, wrong))
}

/// What it meant to die of, what was known, and the record.
type Death = (String, Option<Facts>, ExitRecord);

fn supervise_many(log: KernelLog, deaths: usize, seed: u64) -> Result<Vec<Death>, Skip> {
    let cgroup = V1Cgroup::new("memory")?;
    cgroup.limit_memory(LIMIT_BYTES);
    let prefix = [cgroup.entrance(), log.prefix()?].concat();
    let place = Supervised::new();
    let intents = place.folder().join("intents");
    fs::create_dir(&intents).expect("a folder in a temporary folder");
    let words = [
        fixture_path().display().to_string(),
        "eat-or-be-killed".into(),
        seed.to_string(),
        intents.display().to_string(),
        MEAL_MIB.to_string(),
    ];
    let flags = ["--restart", "always", "--backoff", "1ms", "--backoff-max", "1ms", "--intensity", "0"];
    let start = || place.run_through(&prefix, &flags, &words.each_ref().map(String::as_str));
    let mut running = start();
    let mut done = 0;
    while done < deaths {
        done = (done + 5).min(deaths);
        wait_until(PATIENCE, &format!("{done} deaths"), || {
            // It is in that cgroup too, and may be OOM-killed when the memory of the first victim is slow to come back.
            if !running.is_alive() {
                running = start();
            }
            place.exits().len() >= done
        });
    }
    assert_eq!(place.command(&["shutdown"]).code, Some(0));
    drop(running);
    place.wait_until_all_gone();

    let mut exits = place.exits();
    // The last one was stopped on its way.
    exits.truncate(deaths);
    let known = |record: &ExitRecord| {
        let facts = fs::read(place.state().join("runs").join(&record.run_id).join("facts.json")).ok()?;
        serde_json::from_slice::<Facts>(&facts).ok()
    };
    let intent = |record: &ExitRecord| fs::read_to_string(intents.join(&record.run_id)).unwrap_or_default();
    Ok(exits.into_iter().map(|record| (intent(&record), known(&record), record)).collect())
}

fn count(
    tally: &mut Tally,
    wrong: &mut Vec<String>,
    intent: &str,
    record: &ExitRecord,
    known: Option<&Facts>,
) {
    let whole = known.and_then(|known| Some(known.kernel_log.value()?.whole));
    let expected = if intent == "oom" { Cause::OomOwnLimit } else { Cause::KilledUnknown };
    let starved = intent != "oom" && known.is_some_and(was_starved);
    let suspected = starved && record.verdict.cause == Cause::OomSuspected;
    let is_right =
        (record.verdict.cause == expected || suspected) && record.wait.signal == Some(libc::SIGKILL);
    tally.all += 1;
    tally.right += usize::from(is_right);
    tally.overrun += usize::from(whole == Some(false));
    tally.count_oom(intent == "oom", record.verdict.cause);
    if !is_right {
        wrong.push(format!("{intent}: {:?}, {}, kernel log whole: {whole:?}", record.verdict, record.wait));
    }
}
