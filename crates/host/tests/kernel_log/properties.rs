//! Any bytes, and known lines with any damage: no parser panics, and no fact has a number that does not stand in its
//! line. A second for each always; five minutes with `SEXTON_TEST_LONG=1`.

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};

use sexton_host::kernel_log::{grammar, record};
use sexton_host::tracefs::line;
use sexton_model::kernel::KernelFact;
use sexton_model::kernel::trace::TraceEvent;

const LINES: &[&str] = &[
    "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=-998",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0-1,3,oom_memcg=/p,task_memcg=/p/c,task=hog,pid=22550,uid=1000",
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/c,task=hog,pid=1234,uid=0",
    "Memory cgroup out of memory: Killed process 1234 (dd) total-vm:207060kB, anon-rss:65352kB, file-rss:4kB, shmem-rss:1580kB, UID:1000 pgtables:168kB oom_score_adj:0",
    "Killed process 2592 (mysqld), UID 27, total-vm:3281kB, anon-rss:2358kB, file-rss:0kB",
    "Out of memory: Kill process 4015 (python) score 1923 or sacrifice child",
    "Task in /x killed as a result of limit of /y",
    "Tasks in /x are going to be killed due to memory.oom.group set",
    "oom_reaper: reaped process 1234 (dd), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
    "oom_reaper: unable to reap pid:1234 (dd)",
    "memory+swap: usage 65536kB, limit 9007199254740988kB, failcnt 19",
    "Memory cgroup stats for /docker/8f3c2a90:",
    "hog[24354]: segfault at 10 ip 000055c58279a3d5 sp 00007ffe error 6 in hog[118a,564a+1000] likely on CPU 1 (core 1, socket 0)",
    "traps: hog[24355] trap divide error ip:55 sp:7f error:0 in hog[1,2+3]",
    "NVRM: Xid (PCI:0000:41:00 GPU-I:05 GPU-CI:01): 31, pid=7194, name=prover, Ch 00000008, intr 0",
    "NVRM: GPU at PCI:0000:01:00: GPU-2f3a4b5c-0000-1111-2222-333344445555",
    "NVRM: The NVIDIA GPU 0000:01:00.0\nNVRM: (PCI ID: 10de:2684) installed in this system has\nNVRM: fallen off the bus and is not responding to commands.",
    "INFO: task prover:1234 blocked for more than 120 seconds.",
    "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [prover:1234]",
    "show_signal_msg: 8 callbacks suppressed",
];

const TRACE: &[&str] = &[
    "            bash-812     [001] d..1.  2195.357893: signal_generate: sig=9 errno=0 code=0 comm=prover pid=99 grp=1 res=0\n",
    "            bash-812     (    812) [001] d..1.  2195.357893: signal_generate: sig=9 errno=0 code=128 comm=a\nb pid=99 grp=1 res=0\n",
    "          prover-99      [000] .....  2196.120011: mark_victim: pid=99 comm=prover total-vm=8kB anon-rss=4kB file-rss:0kB shmem-rss:0kB uid=5 pgtables=1kB oom_score_adj=0\n",
    "CPU:1 [LOST 5 EVENTS]\n",
];

/// Pieces that steer a parser: hostile names are made of these.
const PIECES: &[&str] = &[
    "[1]: segfault at ",
    ") total-vm:",
    " (",
    ",task=",
    ",pid=",
    ",uid=",
    ",task_memcg=/",
    ",oom_memcg=/",
    ",global_oom",
    "Killed process ",
    "pid=",
    ", ",
    "]",
    "[",
    ":",
    "\n",
    "0",
    "12",
    "kB",
    "ä",
    "\u{fffd}",
    " comm=",
    " res=",
    "-1",
    ".",
];

/// One of `lines`, damaged up to four times: cut, a piece put in, a part taken out, or spliced with another line.
fn damaged(lines: &'static [&'static str]) -> impl Strategy<Value = String> {
    let damage = (0..4_u8, any::<Index>(), any::<Index>(), select(PIECES), select(lines));
    (select(lines), vec(damage, 0..4)).prop_map(|(line, damages)| {
        let mut letters: Vec<char> = line.chars().collect();
        for (kind, from, to, piece, other) in damages {
            let (from, to) = (from.index(letters.len() + 1), to.index(letters.len() + 1));
            match kind {
                0 => letters.truncate(from),
                1 => drop(letters.splice(from..from, piece.chars())),
                2 => drop(letters.drain(from.min(to)..from.max(to))),
                _ => {
                    letters.truncate(from);
                    letters.extend(other.chars().skip(to));
                }
            }
        }
        letters.into_iter().collect()
    })
}

/// Runs `check` on values of `strategy` until the time is over.
fn for_a_while<S: Strategy>(strategy: S, check: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let long = std::env::var_os("SEXTON_TEST_LONG").is_some_and(|value| value == "1");
    let end = Instant::now() + if long { Duration::from_secs(300) } else { Duration::from_secs(1) };
    let config = Config { cases: 500, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    while Instant::now() < end {
        if let Err(error) = runner.run(&strategy, &check) {
            panic!("{error}\n{runner}");
        }
    }
}

/// Whether `number` is one of the whole numbers in `text`, not a part of a longer one.
fn stands_in(text: &str, number: i64) -> bool {
    text.split(|letter: char| !letter.is_ascii_digit()).any(|run| run.parse() == Ok(number))
}

fn consistent(text: &str, fact: &KernelFact) -> Result<(), TestCaseError> {
    if let Some(pid) = fact.pid() {
        prop_assert!(stands_in(text, i64::from(pid)), "{pid} in {text:?}");
    }
    let json = serde_json::to_value(fact).map_err(|error| TestCaseError::fail(error.to_string()))?;
    for key in ["comm", "oom_memcg", "task_memcg", "memcg", "pci", "uuid", "name", "mapping"] {
        if let Some(name) = json.get(key).and_then(serde_json::Value::as_str) {
            prop_assert!(text.contains(name), "{key} {name:?} in {text:?}");
        }
    }
    if let Some(comm) = json.get("comm").and_then(serde_json::Value::as_str) {
        prop_assert!(comm.chars().count() <= 15, "{comm:?}");
    }
    Ok(())
}

#[test]
fn facts_of_damaged_lines_agree_with_their_line() {
    for_a_while(damaged(LINES), |text| match grammar::fact(&text) {
        Some(fact) => consistent(&text, &fact),
        None => Ok(()),
    });
}

#[test]
fn any_text_is_taken() {
    for_a_while(any::<String>(), |text| match grammar::fact(&text) {
        Some(fact) => consistent(&text, &fact),
        None => Ok(()),
    });
}

#[test]
fn any_record_is_taken() {
    let header = select(&["6,1,2,-;", "30,160,424069,-,caller=T1;", "8,", ";", ",", "\\x0a", "\n A=b"][..]);
    let bytes = (header, vec(any::<u8>(), 0..200), damaged(LINES));
    for_a_while(bytes, |(header, noise, line)| {
        let bytes = [header.as_bytes(), line.as_bytes(), &noise].concat();
        if let Ok(record) = record::parse(&bytes) {
            prop_assert_eq!(record.is_from_kernel(), record.priority < 8);
            let _ = grammar::fact(&record.text);
        }
        let _ = record::parse(&noise);
        Ok(())
    });
}

#[test]
fn any_trace_is_taken() {
    for_a_while((vec(damaged(TRACE), 0..4), vec(any::<u8>(), 0..100)), |(lines, noise)| {
        let text = lines.concat();
        let mut bytes = text.clone().into_bytes();
        for event in line::parse(&bytes).events {
            let (pid, other) = match event {
                TraceEvent::Signal(signal) => (signal.pid, signal.sender_pid),
                TraceEvent::OomVictim(victim) => (victim.pid, victim.pid),
            };
            prop_assert!(stands_in(&text, i64::from(pid.abs())), "{pid} in {text:?}");
            prop_assert!(stands_in(&text, i64::from(other.abs())), "{other} in {text:?}");
        }
        bytes.extend(noise);
        let _ = line::parse(&bytes);
        Ok(())
    });
}
