//! Memory that outlives the process: a memfd that somebody else has open, in another cgroup.

use sexton_diagnosis::drain::Settings;
use sexton_model::drain::{DrainPhase, DrainReport, Hold, Holder};
use sexton_tests::{Fixture, OrSkip, Skip};

use crate::run::{IMPATIENT, MIB, Run, held, wait_for_release, wait_for_report};

/// A run with 96 MiB in a memfd that a second process has open too. `seen`: the supervisor had a look at it.
fn shared(seen: bool) -> Result<(Run, Fixture), Skip> {
    let mut run = Run::start(&["own-memfd"])?;
    assert_eq!(run.fixture.ask("fill 96"), "ok");
    let (pid, descriptor) = (run.fixture.pid().to_string(), run.fixture.ready::<i32>("fd").to_string());
    let keeper = Fixture::try_spawn(&["keep-memfd", &pid, &descriptor])?;
    if seen {
        run.look();
    }
    Ok((run, keeper))
}

fn holder_of<'a>(report: &'a DrainReport, fixture: &Fixture) -> Option<&'a Holder> {
    report.held_by.iter().find(|holder| holder.pid == fixture.pid())
}

#[test]
fn who_keeps_a_memfd_open_is_named_and_each_step_that_it_gives_back_is_progress() {
    let Some((mut run, mut keeper)) = shared(true).or_skip() else { return };
    let mut watch = run.watch(Settings::default());
    watch.asked_to_exit();
    run.fixture.tell("exit 0");
    run.fixture.reap();
    watch.reaped();
    let report = watch.sample();
    assert_eq!(report.phase, DrainPhase::Releasing, "the reap is not the end: {}", report.summary);
    assert!(held(&report) >= 96 * MIB);

    let report = wait_for_report(&mut watch, "a holder", |report| holder_of(report, &keeper).is_some());
    let holder = holder_of(&report, &keeper).expect("just found");
    assert_eq!((holder.what, holder.object.as_deref()), (Hold::SharedMemory, Some("memfd:pool")));
    assert_eq!(holder.bytes, Some(96 * MIB));
    assert_eq!(report.held_by.len(), 1, "others have memfds of their own: {:?}", report.held_by);

    for left in [64, 32] {
        assert_eq!(keeper.ask(&format!("shrink {left}")), "ok");
        let report = wait_for_report(&mut watch, "less held", |report| held(report) < (left + 16) * MIB);
        assert_eq!((report.phase, report.stalled), (DrainPhase::Releasing, false));
    }
    drop(keeper);
    assert!(wait_for_release(&mut watch).held_by.is_empty());
    assert!(watch.past().is_some_and(|past| past.releasing_seconds > 0.0));
}

#[test]
fn a_holder_that_keeps_everything_stalls_the_drain() {
    let Some((mut run, keeper)) = shared(true).or_skip() else { return };
    run.fixture.tell("exit 0");
    run.fixture.reap();
    let mut watch = run.watch(IMPATIENT);
    let report = wait_for_report(&mut watch, "a stall with its holder", |report| {
        report.stalled && holder_of(report, &keeper).is_some()
    });
    let action = report.action.expect("something to do");
    assert!(action.starts_with(&format!("end process {}", keeper.pid())), "{action}");
    drop(keeper);
    wait_for_release(&mut watch);
}

/// A run that died before anybody had looked: its files are not known, so those are named who could hold them.
#[test]
fn of_a_run_that_was_never_looked_at_the_suspects_are_named() {
    let Some((mut run, keeper)) = shared(false).or_skip() else { return };
    run.fixture.tell("exit 0");
    run.fixture.reap();
    let mut watch = run.watch(Settings::default());
    let report = wait_for_report(&mut watch, "a suspect", |report| holder_of(report, &keeper).is_some());
    let holder = holder_of(&report, &keeper).expect("just found");
    assert_eq!(holder.what, Hold::PerhapsSharedMemory);
    assert!(report.summary.contains("perhaps its memory"), "{}", report.summary);
    drop(keeper);
    wait_for_release(&mut watch);
}

/// DESIGN 7: a pool that its keeper holds on purpose is no left-over.
#[test]
fn a_pool_that_is_kept_on_purpose_is_not_waited_for() {
    let Some((mut run, _keeper)) = shared(true).or_skip() else { return };
    run.fixture.tell("exit 0");
    run.fixture.reap();
    let mut watch = run.watch(Settings { kept_bytes: 96 * MIB, ..Settings::default() });
    assert_eq!(wait_for_release(&mut watch).phase, DrainPhase::Released);
}
