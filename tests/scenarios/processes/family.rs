//! Names and relatives.

use sexton_host::task::Tasks;
use sexton_model::process_state::ProcessState;
use sexton_model::reading::Reading;
use sexton_tests::{DEADLINE, Fixture, observe, read_process, wait_until};

/// A name is any 15 bytes, chosen by the process. Naive parsers of `/proc/PID/stat` read this one as another state.
#[test]
fn a_name_with_parentheses_newline_and_bytes_that_are_no_text() {
    let name = b") Z 1 (\n\xff:\x1b[m";
    let hex: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    let fixture = Fixture::spawn(&["rename", &hex]);
    let reading = read_process(fixture.pid());
    assert_eq!(reading.leader.comm, ") Z 1 (\n\u{fffd}:\u{1b}[m");
    assert_eq!(
        reading.leader.status.value().map(|status| status.threads),
        Some(1),
        "status is readable as well"
    );
    assert!(matches!(observe(fixture.pid()), ProcessState::Running { .. }));
}

#[test]
fn a_living_process_is_read_in_full() {
    let fixture = Fixture::spawn(&["hold-memory", "8"]);
    let reading = read_process(fixture.pid());
    assert_eq!(reading.parent.value().map(|parent| parent.pid), i32::try_from(std::process::id()).ok());
    assert_eq!(reading.others.len(), 1);
    assert_eq!(reading.others[0].comm, "worker");
    assert!(
        matches!(reading.age_seconds, Reading::Value(age) if (0.0..60.0).contains(&age)),
        "{:?}",
        reading.age_seconds
    );
    assert!(reading.cgroups.value().is_some_and(|lines| !lines.is_empty()));
    wait_until(DEADLINE, "the leader sleeps somewhere", || {
        matches!(read_process(fixture.pid()).leader.wchan, Reading::Value(_) | Reading::Unreadable(_))
    });
    let same_by_thread = read_process(fixture.ready::<i32>("worker"));
    assert_eq!((same_by_thread.pid, same_by_thread.start_ticks), (fixture.pid(), reading.start_ticks));
}

/// pitchfork#633: an orphan is nobody's child by name; only the tree tells whose it is.
#[test]
fn a_double_forked_grandchild_leaves_its_grandparents_tree() {
    let fixture = Fixture::spawn(&["double-fork"]);
    let grandchild = fixture.ready::<i32>("grandchild");
    let tasks = Tasks::system();
    assert_eq!(tasks.children(fixture.pid()), Reading::Value(Vec::new()));
    let parent = read_process(grandchild).parent.into_value().expect("a new parent");
    assert_ne!(parent.pid, fixture.pid(), "it belongs to the nearest subreaper, or to PID 1");
    assert!(tasks.descendants(parent.pid).into_value().is_some_and(|all| all.contains(&grandchild)));
}

#[test]
fn a_zombie_child_is_a_child() {
    let parent = Fixture::spawn(&["zombie-parent", "0"]);
    let child = parent.ready::<i32>("child");
    assert_eq!(Tasks::system().descendants(parent.pid()), Reading::Value(vec![child]));
}
