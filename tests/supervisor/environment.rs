//! What a prover inherits, and what it does not.

use sexton_tests::Supervised;

use crate::sh;

fn output_of(place: &Supervised, script: &str, adjust: impl FnOnce(&mut std::process::Command)) -> String {
    let ended = place.run_with(&["--restart", "never"], &sh(script), adjust).wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    String::from_utf8(place.output(&place.only_exit().run_id)).unwrap()
}

/// sd_notify(3) and its kin: a prover that answered in the supervisor's place would confuse the service manager.
#[test]
fn what_is_meant_for_the_supervisor_is_not_handed_on() {
    let place = Supervised::new();
    let ours =
        ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID"];
    let environment = output_of(&place, "env", |command| {
        ours.iter().for_each(|name| {
            command.env(name, "1");
        });
        command.env("KEPT", "yes").env("SEXTON_RUN_ID", "somebody else's");
    });
    let value = |name: &str| environment.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    let notify = place.control_socket().with_file_name("notify.sock");
    assert_eq!(value("NOTIFY_SOCKET"), notify.to_str(), "it has one of its own");
    assert!(ours[1..].iter().all(|name| value(name).is_none()), "{environment}");
    assert_eq!(value("KEPT"), Some("yes"));
    assert_eq!(value("SEXTON_RUN_ID"), Some(place.only_exit().run_id.as_str()));
    let socket = place.control_socket().with_file_name("prover.sock");
    assert_eq!(value("SEXTON_PROVER_SOCKET"), socket.to_str());
}

#[test]
fn signals_limits_session_and_descriptors_are_the_provers_own() {
    let place = Supervised::new();
    let script = "grep -E '^Sig(Blk|Ign)' /proc/self/status
        ulimit -Sc
        [ $(cut -d' ' -f6 /proc/self/stat) = $$ ] && echo leads a session
        readlink /proc/self/fd/0
        cd /proc/self/fd && echo *";
    let output = output_of(&place, script, |_| {});
    let lines: Vec<&str> = output.lines().collect();
    let none = "0000000000000000";
    assert_eq!(lines[..2], [format!("SigBlk:\t{none}"), format!("SigIgn:\t{none}")], "{output}");
    // The shell lists its own folder by descriptor 3.
    assert_eq!(lines[2..5], ["0", "leads a session", "/dev/null"], "{output}");
    assert!(["0 1 2", "0 1 2 3"].contains(&lines[5]), "{output}");
}

#[test]
fn the_working_folder_is_the_supervisors() {
    let place = Supervised::new();
    let folder = place.folder().to_owned();
    let output = output_of(&place, "pwd", |command| {
        command.current_dir(&folder);
    });
    assert_eq!(output.trim_end(), folder.to_str().unwrap());
}
