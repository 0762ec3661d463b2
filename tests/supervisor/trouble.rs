//! Full disks, read-only disks, silent clients.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use sexton_model::status::State;
use sexton_tests::{DEADLINE, Gate, OrSkip, Running, Skip, Supervised, wait_until};

use crate::sh;

/// `supervisor run` in a mount namespace of its own, whose state folder is a tmpfs with `options`. It ends with its last
/// process, whatever a test does.
fn run_on_tmpfs(place: &Supervised, options: &str, prepare: &str, words: &[&str]) -> Result<Running, Skip> {
    let may = Command::new("unshare").args(["--mount", "true"]).output();
    if !may.as_ref().is_ok_and(|output| output.status.success()) {
        return Err(Skip(format!("no mount namespace of our own: {may:?}")));
    }
    let supervisor = place.command_line(words);
    let script = format!("mount -t tmpfs -o {options} tmpfs \"$STATE\" && {prepare} exec \"$0\" \"$@\"");
    Ok(place.spawn(words, |command| {
        let mut inside = Command::new("unshare");
        inside
            .args(["--mount", "sh", "-c", &script])
            .arg(supervisor.get_program())
            .args(supervisor.get_args());
        inside.env("STATE", place.state());
        std::mem::swap(command, &mut inside);
        let said = |name: &str| fs::File::create(place.folder().join(name)).unwrap();
        command
            .stdin(std::process::Stdio::null())
            .stdout(said("inside.stdout"))
            .stderr(said("inside.stderr"));
    }))
}

/// `path` as the process sees it.
fn seen_by(pid: i32, path: &Path) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/root{}", path.display()))
}

#[test]
fn a_full_disk_stops_no_prover() {
    let place = Supervised::new();
    let gate = Gate::new(place.folder(), "gate");
    let finished = place.folder().join("finished");
    // Ten times what the disk holds.
    let script = format!(
        "read x < {}; head -c 20000000 /dev/zero; touch {}; read x < {}; exit 5",
        gate.path(),
        finished.display(),
        gate.path()
    );
    let words = [&["run", "--restart", "never", "--"][..], &sh(&script)].concat();
    let Some(running) = run_on_tmpfs(&place, "size=2m,mode=700", "", &words).or_skip() else { return };
    let status = place.wait_for_state(State::Ready);
    gate.open();
    wait_until(DEADLINE, "the prover has written everything", || finished.exists());
    assert_eq!(place.command(&["status"]).code, Some(0));
    let log = seen_by(status.keeper_pid.unwrap(), &place.state())
        .join("runs")
        .join(status.run_id.unwrap())
        .join("output.log");
    let kept = fs::metadata(log).unwrap().len();
    assert!((1_000_000..2_097_152).contains(&kept), "as much as the disk took: {kept}");
    gate.open();
    assert_eq!(running.wait().code, Some(5), "the status is true all the same");
    let said = fs::read_to_string(place.folder().join("inside.stderr")).unwrap();
    assert!(said.contains("exited with 5"), "{said}");
    assert!(said.contains("of the prover's output are lost"), "{said}");
}

#[test]
fn a_read_only_state_folder_is_said_in_one_line() {
    for prepare in ["", "mkdir -m 700 \"$STATE/runs\" &&"] {
        let place = Supervised::new();
        let prepare = format!("{prepare} mount -o remount,ro \"$STATE\" &&");
        let words = ["run", "--restart", "never", "--", "true"];
        let Some(running) = run_on_tmpfs(&place, "mode=700", &prepare, &words).or_skip() else { return };
        assert_eq!(running.wait().code, Some(78), "{prepare}");
        let said = fs::read_to_string(place.folder().join("inside.stderr")).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("Read-only file system") && said.contains("/state"), "{said}");
    }
}

#[test]
fn clients_that_say_nothing_block_nobody() {
    let place = Supervised::new();
    let (running, _) = place.run_until_ready(&[], &["sleep", "1000"]);
    let silent: Vec<_> = (0..20).map(|_| UnixStream::connect(place.control_socket()).unwrap()).collect();
    assert_eq!(place.command(&["status"]).code, Some(0));
    assert_eq!(place.command(&["restart"]).code, Some(0));
    assert_eq!(place.command(&["shutdown"]).code, Some(0));
    assert_eq!(running.wait().code, Some(0));
    drop(silent);
}

/// Whoever else of this user connects to the keeper takes its supervisor's place for a moment; no ending gets lost.
#[test]
fn a_stranger_on_the_keepers_socket_costs_no_ending() {
    let place = Supervised::new();
    let (running, status) = place.run_until_ready(&["--restart", "never"], &["sleep", "1000"]);
    let mut stranger = UnixStream::connect(place.control_socket().with_file_name("keeper.sock")).unwrap();
    // Greeted, so the supervisor's own connection is closed.
    stranger.read_exact(&mut [0; 4]).unwrap();
    place.kill(status.pid.unwrap());
    assert_eq!(running.wait().code, Some(137));
    drop(stranger);
    assert_eq!(place.only_exit().wait.signal, Some(9));
}

/// A start of which there is not even a record is a failure all the same.
#[test]
fn a_start_that_cannot_even_be_recorded_is_a_failure() {
    let place = Supervised::new();
    let words = ["run", "--restart", "on-failure", "--", "true"];
    let runs = "mkdir -m 700 \"$STATE/runs\" && mount -t tmpfs -o ro,mode=700 tmpfs \"$STATE/runs\" &&";
    let Some(running) = run_on_tmpfs(&place, "mode=700", runs, &words).or_skip() else { return };
    let code = running.wait().code;
    let said = fs::read_to_string(place.folder().join("inside.stderr")).unwrap();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Read-only file system"), "{said}");
}

/// A rename onto `/dev/null`, as root, would leave the host without it.
#[test]
fn an_archive_never_takes_the_place_of_a_device_or_a_link() {
    let place = Supervised::new();
    let (kept, link) = (place.folder().join("kept"), place.folder().join("link"));
    fs::write(&kept, "precious").unwrap();
    std::os::unix::fs::symlink(&kept, &link).unwrap();
    for path in [link.as_path(), Path::new("/dev/null")] {
        let refused = place.command(&["diag", "-o", path.to_str().unwrap(), "--force"]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("not a regular file"), "{refused:?}");
    }
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&kept).unwrap(), "precious");
    let made = place.command(&["diag", "-o", kept.to_str().unwrap(), "--force"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_ne!(fs::read(&kept).unwrap(), b"precious");
}
