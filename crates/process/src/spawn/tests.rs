//! Real children of `/bin/sh`.

use std::ffi::OsStr;

use super::*;
use sexton_model::wait::WaitStatus;

fn shell(script: &str) -> Spawn {
    Spawn {
        program: "/bin/sh".into(),
        arguments: ["sh", "-c", script].map(OsString::from).to_vec(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        ..Default::default()
    }
}

fn output_of(mut spawn: Spawn) -> String {
    let (mut reader, writer) = io::pipe().unwrap();
    spawn.descriptors.push((1, writer.into()));
    let (pidfd, result) = spawn.start().unwrap().release();
    result.unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    pidfd.wait().unwrap();
    text
}

#[test]
fn a_held_child_exists_but_has_not_run_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("ran");
    let held = shell(&format!("touch {}; exit 7", mark.display())).start().unwrap();
    let identity = crate::identity(held.pid()).unwrap();
    assert_eq!(identity.pid, held.pid());
    assert!(!mark.exists());
    let (pidfd, result) = held.release();
    result.unwrap();
    assert_eq!(pidfd.wait().unwrap().status, WaitStatus::exited(7));
    assert!(mark.exists());
}

#[test]
fn dropping_a_held_child_ends_it_without_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("ran");
    let held = shell(&format!("touch {}", mark.display())).start().unwrap();
    let pidfd = Pidfd::open(held.pid()).unwrap();
    drop(held);
    assert_eq!(pidfd.wait().unwrap().status, WaitStatus::exited(127));
    assert!(!mark.exists());
}

#[test]
fn exec_failure_is_reported_with_its_errno_and_leaves_the_ending_to_be_recorded() {
    for (program, errno, code) in [
        ("/no/such/prover", libc::ENOENT, 127),
        ("/etc/passwd", libc::EACCES, 126),
        ("no-such-name", libc::ENOENT, 127),
    ] {
        let spawn = Spawn { program: program.into(), arguments: vec![program.into()], ..Default::default() };
        let (pidfd, result) = spawn.start().unwrap().release();
        assert_eq!(result.unwrap_err().step(), Some((Stage::Exec, errno)), "{program}");
        assert_eq!(pidfd.wait().unwrap().status, WaitStatus::exited(code), "{program}");
    }
}

#[test]
fn a_file_on_the_path_that_is_not_executable_is_found_after_all_that_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tool");
    std::fs::write(&file, "").unwrap();
    let path = format!("/nonexistent:{}", folder.path().display());
    assert_eq!(find_program(OsStr::new("tool"), Some(OsStr::new(&path))), file);
    assert!(!find_program(OsStr::new("other"), Some(OsStr::new(&path))).exists());
}

#[test]
fn failures_before_exec_name_their_stage() {
    let folder = Spawn { folder: Some("/no/such/folder".into()), ..shell("true") };
    assert_eq!(folder.start().unwrap_err().step(), Some((Stage::Folder, libc::ENOENT)));
    let cgroup = Spawn { cgroup_procs: vec!["/no/such/cgroup.procs".into()], ..shell("true") };
    assert_eq!(cgroup.start().unwrap_err().step(), Some((Stage::Cgroup, libc::ENOENT)));
    let nul = Spawn { arguments: vec!["a\0b".into()], ..shell("true") };
    assert!(matches!(nul.start(), Err(SpawnError::Nul(_))));
}

#[test]
fn signals_are_reset_whatever_the_parent_ignores() {
    // The test runner ignores SIGPIPE, as every Rust program does.
    let status = output_of(shell("grep -E '^Sig(Blk|Ign)' /proc/self/status"));
    let masks: Vec<_> = status.split_ascii_whitespace().filter(|word| !word.starts_with("Sig")).collect();
    assert_eq!(masks, ["0000000000000000", "0000000000000000"], "{status}");
}

#[test]
fn only_named_descriptors_are_open() {
    let extra = std::fs::File::open("/etc/passwd").unwrap();
    let spawn = Spawn { descriptors: vec![(7, extra.into())], ..shell("cd /proc/self/fd && echo *") };
    // `echo *` of the shell itself: the folder's own descriptor is 3.
    let open = output_of(spawn);
    let numbers: Vec<&str> = open.split_ascii_whitespace().filter(|number| *number != "3").collect();
    assert_eq!(numbers, ["0", "1", "2", "7"]);
}

#[test]
fn descriptors_may_swap_numbers() {
    let (a, b) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
    std::fs::write(a.path(), "a").unwrap();
    std::fs::write(b.path(), "b").unwrap();
    let open = |file: &tempfile::NamedTempFile| OwnedFd::from(std::fs::File::open(file.path()).unwrap());
    let (fd_a, fd_b) = (open(&a), open(&b));
    let (number_a, number_b) = (fd_a.as_raw_fd(), fd_b.as_raw_fd());
    let spawn = Spawn {
        descriptors: vec![(number_b, fd_a), (number_a, fd_b)],
        ..shell(&format!("cat /proc/self/fd/{number_b} /proc/self/fd/{number_a}"))
    };
    assert_eq!(output_of(spawn), "ab");
}

#[test]
fn limits_session_environment_and_folder_are_as_asked() {
    let spawn = Spawn {
        limits: vec![ResourceLimit { resource: libc::RLIMIT_CORE, soft: 0, hard: 0 }],
        own_session: true,
        folder: Some("/usr".into()),
        oom_score_adj: Some(500),
        ..shell(
            "ulimit -c; ulimit -Hc; pwd; cat /proc/self/oom_score_adj; env | grep -cv -e ^PATH= -e ^PWD= -e ^_=; [ $(cut -d' ' -f6 /proc/self/stat) = $$ ] && echo leads",
        )
    };
    assert_eq!(output_of(spawn), "0\n0\n/usr\n500\n0\nleads\n");
}

#[test]
fn peek_leaves_the_zombie_and_has_its_usage() {
    let (pidfd, result) = shell("exit 3").start().unwrap().release();
    result.unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !pidfd.has_ended().unwrap() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
    let peeked = pidfd.peek().unwrap().unwrap();
    assert_eq!(peeked.status, WaitStatus::exited(3));
    assert!(peeked.usage.max_rss_bytes > 0);
    assert_eq!(pidfd.reap().unwrap().unwrap().status, WaitStatus::exited(3));
    assert_eq!(pidfd.reap().unwrap_err().raw_os_error(), Some(libc::ECHILD));
}

#[test]
fn a_stranger_that_is_not_reaped_has_no_status() {
    let (pidfd, result) = shell("exit 42").start().unwrap().release();
    result.unwrap();
    while !pidfd.has_ended().unwrap() {
        std::thread::yield_now();
    }
    // An unreaped zombie answers 0 without the mask's bit: that is not "exited with 0".
    assert_eq!(pidfd.exit_status_of_stranger(), None);
    pidfd.wait().unwrap();
    // Linux ≥ 6.15 keeps the raw status for whoever holds the pidfd; older ones do not say.
    assert!(matches!(pidfd.exit_status_of_stranger(), None | Some(WaitStatus { code: Some(42), .. })));
}

/// Whoever may not raise a hard limit gets what is allowed: a prover with fewer descriptors than wished is better than
/// none.
#[test]
fn a_limit_above_the_hard_one_becomes_the_hard_one() {
    let lowered = ResourceLimit { resource: libc::RLIMIT_NOFILE, soft: 64, hard: 64 };
    // Raising again what was lowered before takes the capability, which a user without privileges lacks.
    let raised = ResourceLimit { soft: 128, hard: 4096, ..lowered };
    let spawn = Spawn { limits: vec![lowered, raised], ..shell("ulimit -n; ulimit -Hn") };
    let may_raise = std::fs::read_to_string("/proc/self/status").unwrap().lines().any(|line| {
        let mask = line.strip_prefix("CapEff:").map(|mask| u64::from_str_radix(mask.trim(), 16).unwrap());
        mask.is_some_and(|mask| mask & 1 << 24 != 0)
    });
    let expected = if may_raise { "128\n4096\n" } else { "64\n64\n" };
    assert_eq!(output_of(spawn), expected);
}

#[test]
fn memory_is_bound_to_the_nodes_or_the_start_fails_with_the_reason() {
    let policy = "while read -r _ policy _; do echo $policy; break; done < /proc/self/numa_maps";
    let missing = Spawn { memory_nodes: vec![NODES_MAX], ..shell(policy) };
    assert!(matches!(missing.start(), Err(SpawnError::Node(NODES_MAX))));
    let bound = |node| Spawn { memory_nodes: vec![node], ..shell(policy) };
    match bound(0).start() {
        Ok(held) => {
            drop(held);
            assert_eq!(output_of(bound(0)), "bind:0\n");
            let error = bound(NODES_MAX - 1).start().unwrap_err();
            assert_eq!(error.step(), Some((Stage::MemoryPolicy, libc::EINVAL)));
            assert!(error.to_string().contains("a node is not there"), "{error}");
        }
        // No NUMA in this kernel, or a seccomp filter.
        Err(error) => assert!(
            matches!(error.step(), Some((Stage::MemoryPolicy, libc::ENOSYS | libc::EPERM))),
            "{error}"
        ),
    }
}
