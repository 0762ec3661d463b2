//! The start gate beside a real drain.

use nix::sys::signal::Signal;
use sexton_diagnosis::drain::Settings;
use sexton_model::gate::{Need, NeedSource};
use sexton_supervisor::daemon::gate::Gate;
use sexton_tests::OrSkip;

use crate::run::{MIB, Run, wait_for_release};

const NEED: Option<Need> = Some(Need { bytes: 150 * MIB, source: NeedSource::Configured });

/// systemd#13288, haproxy#155: what a new run needs is still held by the one before; the limit that binds is named.
#[test]
fn it_stays_shut_until_the_run_before_is_gone_and_its_memory_fits() {
    let Some(mut run) = Run::holding(128).or_skip() else { return };
    run.cgroup.limit_memory(256 * MIB);
    let gate = Gate::system();
    let lines = run.tracker.tracked.stays[0].lines.clone();
    let mut watch = run.watch(Settings::default());

    let report = gate.check(NEED, 16 * MIB, &lines, Some(&watch.sample()));
    assert!(!report.open);
    assert!(report.summary.starts_with("the run before is not gone"), "{}", report.summary);
    assert!(report.short_by_bytes >= 38 * MIB && report.still_releasing_bytes >= 128 * MIB, "{report:?}");
    let limit = report.binding_limit.expect("a limit binds");
    let name = run.cgroup.path().file_name().expect("a name").to_string_lossy().into_owned();
    assert!(limit.contains(&name) && limit.contains("(256.0 MiB)"), "{limit}");

    let report = gate.check(NEED, 16 * MIB, &lines, None);
    assert!(!report.open);
    assert!(report.summary.contains("do not fit"), "{}", report.summary);
    let step = gate.largest_that_fits(&[200 * MIB, 100 * MIB, 10 * MIB], 0, 0, 16 * MIB, &lines);
    assert_eq!(step, Some(100 * MIB));
    let step = gate.largest_that_fits(&[200 * MIB, 150 * MIB], 150 * MIB, 0, 16 * MIB, &lines);
    assert_eq!(step, None, "nothing above the floor");

    watch.asked_to_exit();
    run.fixture.signal(Signal::SIGKILL);
    run.fixture.reap();
    let drained = wait_for_release(&mut watch);
    let report = gate.check(NEED, 16 * MIB, &lines, Some(&drained));
    assert!(report.open, "{}", report.summary);
    assert_eq!((report.short_by_bytes, report.eta_seconds), (0, Some(0.0)));
}
