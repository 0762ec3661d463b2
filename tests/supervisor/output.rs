//! What a prover writes is kept, from its first byte to its last, and never in its way.

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;
use sexton_model::exit::LAST_WORDS_BYTES;
use sexton_model::status::State;
use sexton_model::wait::WaitStatus;
use sexton_tests::{DEADLINE, Ended, Gate, Skip, Supervised, wait_until};

use crate::sh;

const NEVER: [&str; 2] = ["--restart", "never"];

/// moby#43860, datadog-agent#4085: the last line was lost where it had no newline.
#[test]
fn moby_43860_last_words_without_a_newline_are_whole() {
    let place = Supervised::new();
    let ended = place.run(&NEVER, &sh("printf no-newline; exit 3")).wait();
    assert_eq!(ended.code, Some(3));
    let record = place.only_exit();
    assert_eq!((record.last_words.as_str(), record.last_words_truncated), ("no-newline", false));
    assert_eq!(ended.stdout, "no-newline", "and passed on before the supervisor leaves");
}

/// A program whose library is missing dies in the dynamic loader, long before any logging of its own starts.
#[test]
fn what_the_dynamic_loader_says_is_kept() {
    let place = Supervised::new();
    let file = |name: &str| place.folder().join(name).to_str().unwrap().to_owned();
    fs::write(file("gone.c"), "int gone(void) { return 0; }\n").unwrap();
    fs::write(file("main.c"), "int gone(void); int main(void) { return gone(); }\n").unwrap();
    let compile = |words: &[&str]| Command::new("cc").args(words).status();
    match compile(&["-shared", "-fPIC", "-o", &file("libgone.so"), &file("gone.c")]) {
        Ok(status) => assert!(status.success()),
        Err(error) => return Skip::because("cc", error).report(),
    }
    assert!(compile(&["-o", &file("prover"), &file("main.c"), &file("libgone.so")]).unwrap().success());
    fs::remove_file(file("libgone.so")).unwrap();

    let ended = place.run(&NEVER, &[&file("prover")]).wait();
    let record = place.only_exit();
    assert_eq!((ended.code, record.wait), (Some(127), WaitStatus::exited(127)));
    assert!(record.last_words.contains("libgone.so"), "{record:?}");
}

#[test]
fn bytes_that_are_no_text_are_raw_in_the_log_and_replaced_in_the_record() {
    let place = Supervised::new();
    place.run(&NEVER, &sh(r"printf 'a\377\000b'")).wait();
    let record = place.only_exit();
    assert_eq!(record.last_words, "a\u{fffd}\0b");
    assert_eq!(place.output(&record.run_id), b"a\xff\0b");
}

#[test]
fn five_mebibytes_in_one_go_are_complete_byte_for_byte() {
    let place = Supervised::new();
    let mut bytes = vec![0; 5 << 20];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    let file = place.folder().join("bytes");
    fs::write(&file, &bytes).unwrap();
    place.run(&NEVER, &["cat", file.to_str().unwrap()]).wait();
    let record = place.only_exit();
    assert_eq!(record.wait, WaitStatus::exited(0));
    assert!(place.output(&record.run_id) == bytes, "the log differs");
    assert!(record.last_words_truncated);
    let tail = String::from_utf8_lossy(&bytes[bytes.len() - LAST_WORDS_BYTES..]);
    assert!(record.last_words == tail, "the last words differ");
}

/// A worker that outlives its prover holds the FIFO: nobody waits for its end-of-file, and what it writes is kept too.
#[test]
fn a_grandchild_that_holds_the_output_delays_no_record() {
    let place = Supervised::new();
    let gate = Gate::new(place.folder(), "gate");
    let script =
        format!("(read x < {}; echo from-the-grandchild) & echo from-the-prover; exit 4", gate.path());
    let [flag, file] = place.configured("[restart]\npolicy = \"never\"\n[stop]\nleft_over = \"leave\"\n");
    let ended = place.run(&[&flag, &file], &sh(&script)).wait();
    let record = place.only_exit();
    assert_eq!((ended.code, record.wait), (Some(4), WaitStatus::exited(4)));
    assert_eq!(record.last_words, "from-the-prover\n");

    gate.open();
    place.wait_until_all_gone();
    assert_eq!(place.output(&record.run_id), b"from-the-prover\nfrom-the-grandchild\n");
}

/// supervisor#1554, habitat#2395: nobody read the supervisor's own output, and the child blocked.
#[test]
fn supervisor_1554_a_standard_output_that_nobody_reads_stops_nothing() {
    let place = Supervised::new();
    let piped = |command: &mut Command| {
        command.stdout(std::process::Stdio::piped());
    };
    let flags = ["--restart", "always", "--backoff", "1ms", "--backoff-max", "1ms", "--intensity", "0"];
    // More than a pipe holds, each time.
    let mut running = place.run_with(&flags, &sh("head -c 300000 /dev/zero; exit 1"), piped);
    let descriptors = |pid: i32| fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    place.wait_for_status("five restarts", |status| status.restarts >= 5);
    let before = descriptors(running.pid());
    place.wait_for_status("twenty restarts", |status| status.restarts >= 20);
    // Those of a start under way.
    assert!(descriptors(running.pid()) <= before + 8, "descriptors pile up");
    assert!(place.exits().iter().take(20).all(|exit| exit.wait == WaitStatus::exited(1)));
    running.signal(Signal::SIGTERM);
    wait_until(DEADLINE, "the supervisor's end", || !running.is_alive());
}

#[test]
fn a_standard_error_that_is_gone_or_full_stops_nothing() {
    for keep_reader in [false, true] {
        let place = Supervised::new();
        let flags = ["--restart", "always", "--backoff", "1ms", "--backoff-max", "1ms", "--intensity", "0"];
        let mut running = place.run_with(&flags, &sh("exit 1"), |command| {
            command.stderr(std::process::Stdio::piped());
        });
        let reader = running.child().stderr.take().filter(|_| keep_reader);
        if let Some(reader) = &reader {
            // As small as a pipe gets, so that it is full soon.
            let size = nix::fcntl::FcntlArg::F_SETPIPE_SZ(4096);
            nix::fcntl::fcntl(reader, size).unwrap();
        }
        place.wait_for_status("thirty restarts", |status| status.restarts >= 30);
        assert_eq!(place.command(&["shutdown"]).code, Some(0));
        wait_until(DEADLINE, "the supervisor's end", || !running.is_alive());
    }
}

/// What a prover or its children are called is theirs to choose; JSON has it as it is.
#[test]
fn nothing_that_a_prover_chose_steers_the_operators_terminal() {
    let place = Supervised::new();
    let hostile = "missing-\u{1b}]0;title\u{7}\u{9b}2J\nsupervisor: all is well";
    let ended = place.run(&NEVER, &[hostile]).wait();
    assert_eq!(ended.code, Some(127));
    assert_eq!(place.only_exit().command, [hostile]);
    let pages = ["status", "runs", "why", "events"].map(|command| place.command(&[command]));
    for Ended { stdout, stderr, .. } in pages.iter().chain([&ended]) {
        for text in [stdout, stderr] {
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        }
    }
    assert!(pages[2].stdout.contains("missing-\u{fffd}]0;title"), "{pages:?}");
    assert!(!ended.stderr.lines().any(|line| line == "supervisor: all is well"), "{ended:?}");
    assert_eq!(place.command(&["why", "--json"]).json()["command"][0], hostile);
}

/// Other programs of the user have used up inotify: here there is none at all.
#[test]
fn output_is_passed_on_also_where_no_file_can_be_watched() {
    let place = Supervised::new();
    let none = "echo 0 >/proc/sys/user/max_inotify_instances";
    let may = Command::new("unshare").args(["-Ur", "sh", "-c", none]).output();
    if !may.as_ref().is_ok_and(|output| output.status.success()) {
        return Skip::because("a user namespace of our own", format!("{may:?}")).report();
    }
    let exec = format!("{none} && exec \"$@\"");
    let prefix = ["unshare", "-Ur", "sh", "-c", &exec, "sh"].map(str::to_owned);
    let flags = ["--restart", "always", "--backoff", "1ms", "--backoff-max", "1ms", "--intensity", "0"];
    let gate = Gate::new(place.folder(), "gate");
    let script = format!("echo living; read x < {}; exit 3", gate.path());
    let running = place.run_through(&prefix, &flags, &sh(&script));
    for run in 1..=2 {
        let passed_on = || running.stdout() == "living\n".repeat(run);
        wait_until(DEADLINE, "the output of a prover that lives", passed_on);
        gate.open();
    }
    assert_eq!(running.stderr().matches("cannot watch").count(), 1, "{}", running.stderr());
}

#[test]
fn a_closed_standard_output_stops_nothing() {
    let place = Supervised::new();
    let mut running = place.run_with(&NEVER, &sh("echo kept; exit 6"), |command| {
        command.stdout(std::process::Stdio::piped());
    });
    // Whoever read has gone away.
    drop(running.child().stdout.take());
    assert_eq!(running.wait().code, Some(6));
    assert_eq!(place.only_exit().last_words, "kept\n");
}

/// Nobody has the FIFO open for writing any more: that state lasts, so it must not count as news for ever.
#[test]
fn a_prover_that_closes_its_output_costs_nothing() {
    let place = Supervised::new();
    let (running, status) = place.run_until_ready(&NEVER, &sh("exec sleep 1000 >/dev/null 2>&1"));
    let sleeps = |pid: i32| {
        // "running" means that it wants the processor, which a waiting process does not.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    };
    let calm = |pid: i32, who: &str| {
        let mut looks = 0;
        wait_until(DEADLINE, who, || {
            looks = if sleeps(pid) { looks + 1 } else { 0 };
            looks == 20
        });
    };
    calm(status.keeper_pid.unwrap(), "a keeper at rest");
    place.kill_keeper(&status);
    place.wait_for_status("a lost keeper", |status| status.keeper_pid.is_none());
    calm(running.pid(), "a supervisor at rest");
    assert_eq!(place.wait_for_state(State::Ready).pid, status.pid);
}
