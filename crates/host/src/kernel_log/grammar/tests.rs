//! Every format, hostile names, cut lines.

use sexton_model::kernel::fact::{KernelFact, OomContext, OomKilled, OomScope, Segfault, Xid};

use super::fact;

fn killed(text: &str) -> OomKilled {
    match fact(text) {
        Some(KernelFact::OomKilled(killed)) => killed,
        other => panic!("{text:?}: {other:?}"),
    }
}

fn context(text: &str) -> OomContext {
    match fact(text) {
        Some(KernelFact::OomContext(context)) => context,
        other => panic!("{text:?}: {other:?}"),
    }
}

fn segfault(text: &str) -> Segfault {
    match fact(text) {
        Some(KernelFact::Segfault(fault)) => fault,
        other => panic!("{text:?}: {other:?}"),
    }
}

fn xid(text: &str) -> Xid {
    match fact(text) {
        Some(KernelFact::Xid(xid)) => xid,
        other => panic!("{text:?}: {other:?}"),
    }
}

/// Kind, pid and name of a fact, as JSON has them.
fn summary(text: &str) -> String {
    let Some(fact) = fact(text) else { return "-".to_owned() };
    let json = serde_json::to_value(&fact).unwrap();
    let field = |name: &str| json.get(name).filter(|value| !value.is_null()).map(|value| format!(" {value}"));
    let fields = ["pid", "comm"].into_iter().filter_map(field).collect::<String>();
    format!("{}{fields}", json["kind"].as_str().unwrap())
}

/// cadvisor#2417, node-problem-detector#480: the text changed with kernel 5.x, and the parsers went blind.
#[test]
fn every_format_gives_its_fact() {
    let table = [
        (
            "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
            r#"oom_invoked "python3""#,
        ),
        (
            "java invoked oom-killer: gfp_mask=0x201da, order=0, oom_adj=0, oom_score_adj=-17",
            r#"oom_invoked "java""#,
        ),
        ("Task in /x killed as a result of limit of /y", "oom_limit"),
        (
            "Memory cgroup out of memory: Kill process 4015 (python) score 1923 or sacrifice child",
            r#"oom_chosen 4015 "python""#,
        ),
        (
            "Out of memory: Kill process 4015 (python) score 1 or sacrifice child",
            r#"oom_chosen 4015 "python""#,
        ),
        (
            "Killed process 4015 (python) total-vm:32812kB, anon-rss:23588kB, file-rss:1684kB",
            r#"oom_killed 4015 "python""#,
        ),
        (
            "Killed process 4015 (python) total-vm:32812kB, anon-rss:23588kB, file-rss:1684kB, shmem-rss:0kB",
            r#"oom_killed 4015 "python""#,
        ),
        (
            "Killed process 2592 (mysqld), UID 27, total-vm:3281kB, anon-rss:2358kB, file-rss:0kB, shmem-rss:0kB",
            r#"oom_killed 2592 "mysqld""#,
        ),
        (
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/p,task_memcg=/p/c,task=hog,pid=22550,uid=0",
            r#"oom_context 22550 "hog""#,
        ),
        (
            "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/c,task=hog,pid=7,uid=0",
            r#"oom_context 7 "hog""#,
        ),
        (
            "Memory cgroup out of memory: Killed process 86 (dd) total-vm:207060kB, anon-rss:65352kB, file-rss:4kB, shmem-rss:1580kB, UID:0 pgtables:168kB oom_score_adj:0",
            r#"oom_killed 86 "dd""#,
        ),
        (
            "Out of memory (oom_kill_allocating_task): Killed process 9 (dd) total-vm:1kB, anon-rss:1kB, file-rss:4kB, shmem-rss:1kB, UID:0 pgtables:1kB oom_score_adj:0",
            r#"oom_killed 9 "dd""#,
        ),
        (
            "oom_reaper: reaped process 86 (dd), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
            r#"oom_reaped 86 "dd""#,
        ),
        ("oom_reaper: unable to reap pid:86 (dd)", r#"oom_unreapable 86 "dd""#),
        ("Tasks in /x are going to be killed due to memory.oom.group set", "oom_group"),
        ("memory: usage 65536kB, limit 65536kB, failcnt 19", "memcg_usage"),
        ("memory+swap: usage 65536kB, limit 9007199254740988kB, failcnt 0", "memcg_usage"),
        ("Memory cgroup stats for /docker/8f3c2a90/t:", "memcg_stats"),
        ("Memory cgroup stats for /a:b: cache:0KB rss:65536KB", "memcg_stats"),
        (
            "hog[24354]: segfault at 10 ip 000055c58279a3d5 sp 00007ffeebf86af0 error 6 in hog[118a,564a00000000+1000] likely on CPU 1 (core 1, socket 0)",
            r#"segfault 24354 "hog""#,
        ),
        ("hog[24354]: segfault at 0 ip           (null) sp 00007ffeebf86af0 error 14", "-"),
        (
            "hog[24354]: segfault at 0 ip 0000000000000000 sp 00007ffeebf86af0 error 14 in hog[400000+1000]",
            r#"segfault 24354 "hog""#,
        ),
        ("traps: hog[24355] trap divide error ip:55 sp:7f error:0 in hog[1,2+3]", r#"trap 24355 "hog""#),
        (
            "traps: hog[24355] general protection fault ip:55 sp:7f error:0 in libc.so.6[1,2+3]",
            r#"trap 24355 "hog""#,
        ),
        ("traps: hog[1] trap invalid opcode ip:55 sp:7f error:0", r#"trap 1 "hog""#),
        ("traps: hog[1] trap int3 ip:55 sp:7f error:0", r#"trap 1 "hog""#),
        ("NVRM: Xid (PCI:0000:01:00): 31, pid=7194, name=prover, Ch 00000008, intr 00000000.", "xid 7194"),
        ("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.", "xid"),
        ("NVRM: GPU at PCI:0000:01:00: GPU-2f3a4b5c-0000-1111-2222-333344445555", "gpu_identity"),
        ("NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.", "gpu_lost"),
        (
            "NVRM: The NVIDIA GPU 0000:01:00.0\nNVRM: (PCI ID: 10de:2684) installed in this system has\nNVRM: fallen off the bus and is not responding to commands.",
            "gpu_lost",
        ),
        ("INFO: task prover:1234 blocked for more than 120 seconds.", r#"hung_task 1234 "prover""#),
        ("INFO: task a:b c:1234 blocked in I/O wait for more than 120 seconds.", r#"hung_task 1234 "a:b c""#),
        ("watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [prover:1234]", r#"soft_lockup 1234 "prover""#),
        ("show_signal_msg: 8 callbacks suppressed", "suppressed"),
    ];
    for (text, expected) in table {
        assert_eq!(summary(text), expected, "{text}");
    }
}

#[test]
fn what_is_only_similar_is_no_fact() {
    for text in [
        "",
        "Killed process",
        "Killed process 5",
        "x: Killed process 5 (a) total-vm:1kB",
        "Out of memory and no killable processes...",
        "oom_reaper: reaped process 5 (a)",
        "memory: usage 1kB, limit 1kB",
        "network: usage 1kB, limit 1kB, failcnt 0",
        "a_name_longer_than_fifteen[5]: segfault at 1 ip 2 sp 3 error 4",
        "hog[5a]: segfault at 1 ip 2 sp 3 error 4",
        "hog[5]: segfault at 1 ip 2",
        "NVRM: Xid (PCI:0000:01:00): 3",
        "NVRM: Xid (PCI:0000:01:00",
        "NVRM: loading NVIDIA UNIX Open Kernel Module",
        "NVRM: GPU at PCI:0000:01:00: GPU-x y",
        "GPU has fallen off the bus",
        "INFO: task prover:1234 blocked for more than 12",
        "a b: 3 callbacks suppressed",
    ] {
        assert_eq!(fact(text), None, "{text}");
    }
}

#[test]
fn sizes_users_and_scope_of_a_killed_process() {
    let new = killed(
        "Memory cgroup out of memory: Killed process 837 (gpuprobe) total-vm:19872628kB, anon-rss:13632kB, file-rss:85696kB, shmem-rss:2071936kB, UID:1000 pgtables:4384kB oom_score_adj:-998",
    );
    assert_eq!((new.scope, new.uid, new.oom_score_adj), (Some(OomScope::Memcg), Some(1000), Some(-998)));
    assert_eq!((new.total_vm_bytes, new.anon_bytes), (Some(19_872_628 << 10), Some(13_632 << 10)));
    assert_eq!((new.file_bytes, new.shmem_bytes), (Some(85_696 << 10), Some(2_071_936 << 10)));
    assert_eq!(new.pgtables_bytes, Some(4384 << 10));
    let old = killed("Killed process 2592 (mysqld), UID 27, total-vm:3281kB, anon-rss:2358kB, file-rss:0kB");
    assert_eq!((old.scope, old.uid, old.shmem_bytes, old.oom_score_adj), (None, Some(27), None, None));
}

#[test]
fn names_that_imitate_the_line_stay_names() {
    let tail = "total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0";
    for name in ["a) total-vm:9kB", "(a) (b", ") (", "pid=1 uid=0", "", "a, UID 7, b", "a\nb"]
        .map(|name| name.get(..15).unwrap_or(name))
    {
        let killed = killed(&format!("Out of memory: Killed process 1234 ({name}) {tail}"));
        assert_eq!((killed.victim.pid, killed.victim.comm.as_str()), (1234, name));
        assert_eq!(killed.anon_bytes, Some(1024));
    }
    for name in ["[1]: segfault a", "a[1] trap b", "a[1]", "a b(c),d", "x\ny", "pid=1"] {
        let fault = segfault(&format!("{name}[1234]: segfault at 10 ip 20 sp 30 error 6 in f[1,2+3]"));
        assert_eq!((fault.task.pid, fault.task.comm.as_str()), (1234, name));
        let trap = format!("traps: {name}[1234] trap divide error ip:20 sp:30 error:0 in f[1,2+3]");
        assert_eq!(summary(&trap), format!("trap 1234 {}", serde_json::to_string(name).unwrap()));
    }
    // The name of a file may be long enough for a whole sentence.
    let file = "x[1]: segfault at 0 ip 0 sp 0 error 4 in y[1,2+3]";
    let fault = segfault(&format!("hog[1234]: segfault at 10 ip 20 sp 30 error 6 in {file}"));
    assert_eq!((fault.task.pid, fault.address, fault.mapping.as_deref()), (1234, 0x10, Some(file)));
}

#[test]
fn the_context_line_is_read_from_the_end_that_no_name_can_imitate() {
    let line = |oom: &str, task: &str, comm: &str| {
        context(&format!(
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0-1,3,oom_memcg={oom},task_memcg={task},task={comm},pid=1234,uid=5"
        ))
    };
    let plain = line("/p", "/p/c", "hog");
    assert_eq!((plain.cpuset.as_deref(), plain.mems_allowed.as_deref()), (Some("c"), Some("0-1,3")));
    assert_eq!((plain.oom_memcg.as_deref(), plain.task_memcg.as_deref()), (Some("/p"), Some("/p/c")));
    assert_eq!((plain.comm.as_deref(), plain.pid, plain.uid), (Some("hog"), Some(1234), Some(5)));
    assert!(!plain.global_oom);

    let name = line("/p", "/p/c", ",pid=1,uid=0");
    assert_eq!((name.comm.as_deref(), name.pid, name.uid), (Some(",pid=1,uid=0"), Some(1234), Some(5)));
    let name = line("/p", "/p/c", "a,task=b");
    assert_eq!((name.comm, name.pid), (None, Some(1234)), "two readings of the name: none");
    let path = line("/p", "/p/x,task=init,pid=1,uid=0", "hog");
    assert_eq!((path.comm, path.task_memcg, path.pid), (None, None, Some(1234)));
    let path = line("/p,global_oom", "/p/c", "hog");
    assert!(!path.global_oom && path.oom_memcg.as_deref() == Some("/p,global_oom"));

    let global = context(
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/x,oom_memcg=/y,task=hog,pid=1234,uid=5",
    );
    assert!(global.global_oom && global.oom_memcg.is_none());
}

#[test]
fn a_context_line_in_pieces_gives_what_each_piece_holds() {
    let head = context("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)");
    assert_eq!((head.constraint.as_deref(), head.pid), (Some("CONSTRAINT_MEMCG"), None));
    let middle = context(",oom_memcg=/p,task_memcg=/p/c,task=hog,pid=1234,uid=0");
    assert_eq!((middle.oom_memcg.as_deref(), middle.pid), (Some("/p"), Some(1234)));
    let tail = context(",task=hog,pid=1234,uid=0");
    assert_eq!((tail.comm.as_deref(), tail.pid, tail.task_memcg), (Some("hog"), Some(1234), None));
    assert_eq!(fact(",task=hog,pid=12"), None, "cut off: perhaps 1234");
    assert_eq!(fact(",task=hog"), None);
}

#[test]
fn a_cut_line_never_gives_another_number() {
    let lines = [
        "Memory cgroup out of memory: Killed process 1234 (dd) total-vm:207060kB, anon-rss:65352kB, file-rss:4kB, shmem-rss:1580kB, UID:1000 pgtables:168kB oom_score_adj:0",
        "Killed process 1234 (mysqld), UID 27, total-vm:3281kB, anon-rss:2358kB, file-rss:0kB",
        "Memory cgroup out of memory: Kill process 1234 (python) score 1923 or sacrifice child",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/p,task_memcg=/p/c,task=hog,pid=1234,uid=0",
        "oom_reaper: reaped process 1234 (dd), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
        "oom_reaper: unable to reap pid:1234 (dd)",
        "hog[1234]: segfault at 10 ip 000055c58279a3d5 sp 00007ffeebf86af0 error 6 in hog[118a,564a+1000]",
        "traps: hog[1234] trap divide error ip:55 sp:7f error:0 in hog[1,2+3]",
        "NVRM: Xid (PCI:0000:01:00): 31, pid=1234, name=prover, Ch 00000008",
        "INFO: task prover:1234 blocked for more than 120 seconds.",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [prover:1234]",
    ];
    for line in lines {
        for end in 0..line.len() {
            if let Some(fact) = fact(&line[..end]) {
                assert!(matches!(fact.pid(), None | Some(1234)), "{}: {fact:?}", &line[..end]);
                let full = super::fact(line).unwrap();
                if let (KernelFact::OomKilled(cut), KernelFact::OomKilled(full)) = (fact, full) {
                    assert!(cut.uid.is_none() || cut.uid == full.uid);
                    assert!(cut.anon_bytes.is_none() || cut.anon_bytes == full.anon_bytes);
                }
            }
        }
    }
}

#[test]
fn interleaved_lines_give_no_wrong_fact() {
    for text in [
        "Memory cgroup out of memory: Killed process 12usb 1-1: new device",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)usb 1-1: new,task=a,pid=b,uid=0",
        "hog[1234]: segfault at usb 1-1",
    ] {
        assert!(fact(text).is_none_or(|fact| fact.pid().is_none()), "{text}");
    }
}

#[test]
fn xids_with_and_without_their_optional_parts() {
    let full =
        xid("NVRM: Xid (PCI:0000:41:00 GPU-I:05 GPU-CI:01): 31, pid=7194, name=prover, Ch 00000008, intr 0");
    assert_eq!((full.pci.as_str(), full.code), ("0000:41:00", 31));
    assert_eq!((full.gpu_instance, full.compute_instance), (Some(5), Some(1)));
    assert_eq!((full.pid, full.name.as_deref()), (Some(7194), Some("prover")));
    let unknown = xid("NVRM: Xid (PCI:0000:01:00.0): 45, pid='<unknown>', name=<unknown>, Ch 00000008");
    assert_eq!((unknown.pid, unknown.name, unknown.pci.as_str()), (None, None, "0000:01:00.0"));
    let old = xid("NVRM: Xid (0000:01:00): 13, Graphics Exception: ESR 0x404490=0x80000001");
    assert_eq!((old.code, old.pid, old.name), (13, None, None));
    let cut = xid("NVRM: Xid (PCI:0000:01:00): 31, pid=71");
    assert_eq!(cut.pid, None, "cut off: perhaps 7194");
    let bare = xid("NVRM: Xid (PCI:0000:b3:00.0): 79, pid=12345, GPU has fallen off the bus.");
    assert_eq!((bare.pid, bare.text.as_str()), (Some(12345), "pid=12345, GPU has fallen off the bus."));
}

/// NVSentinel#155, gpud#1209: fallen off the bus in several lines, without an Xid.
#[test]
fn the_gpu_that_fell_off_the_bus_is_named_where_the_line_has_it() {
    let lost = |text: &str| match fact(text) {
        Some(KernelFact::GpuLost(lost)) => lost.pci,
        other => panic!("{other:?}"),
    };
    let address = Some("0000:b3:00.0".to_owned());
    assert_eq!(lost("NVRM: GPU 0000:b3:00.0: GPU has fallen off the bus."), address);
    assert_eq!(lost("NVRM: GPU at 0000:b3:00.0 has fallen off the bus."), address);
    assert_eq!(
        lost(
            "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:26b5) installed in this system has\nNVRM: fallen off the bus and is not responding to commands."
        ),
        address
    );
    assert_eq!(lost("NVRM: fallen off the bus and is not responding to commands."), None);
}
