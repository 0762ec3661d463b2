//! Whole logs: those of real deaths in `../shared/data`, and the corpus beside this file.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use sexton_host::kernel_log::{events, record};
use sexton_model::kernel::fact::{KernelFact, OomScope};
use sexton_model::kernel::{Door, KernelEvent, KernelWindow};

use crate::{kind, skipped};

fn folder(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The lines of `name` among the recorded logs; none where they are not at hand.
fn recorded(name: &str) -> Option<Vec<String>> {
    let path = folder("../../../shared/data").join(name);
    match fs::read_to_string(&path) {
        Ok(text) => Some(text.lines().map(str::to_owned).collect()),
        Err(error) => {
            skipped(format!("{}: {error}", path.display()));
            None
        }
    }
}

/// Events of a log with one record of `/dev/kmsg` a line; lines of another kind are left out.
fn from_kmsg(lines: &[String]) -> Vec<KernelEvent> {
    let records = lines.iter().filter_map(|line| record::parse(line.as_bytes()).ok()).collect();
    events(&KernelWindow { records, ..KernelWindow::empty(Door::Kmsg) })
}

/// Events of the output of `dmesg`: `[ 1874.555574] TEXT`.
fn from_dmesg(lines: &[String]) -> Vec<KernelEvent> {
    let records = lines.iter().enumerate().filter_map(|(number, line)| {
        let (time, text) = line.strip_prefix('[')?.split_once("] ")?;
        let time = time.trim().replace('.', "");
        record::parse(format!("4,{number},{time},-;{text}").as_bytes()).ok()
    });
    let records = records.collect();
    events(&KernelWindow { records, ..KernelWindow::empty(Door::Kmsg) })
}

fn counted(events: &[KernelEvent]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in events {
        *counts.entry(kind(&event.fact)).or_default() += 1;
    }
    counts
}

fn counts<const N: usize>(expected: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expected.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect()
}

/// Victims: pid, name, scope, anonymous bytes.
fn victims(events: &[KernelEvent]) -> Vec<(i32, &str, Option<OomScope>, Option<u64>)> {
    events
        .iter()
        .filter_map(|event| match &event.fact {
            KernelFact::OomKilled(killed) => {
                Some((killed.victim.pid, killed.victim.comm.as_str(), killed.scope, killed.anon_bytes))
            }
            _ => None,
        })
        .collect()
}

/// Of a context: oom_memcg, task_memcg, pid, global.
type Context<'a> = (Option<&'a str>, Option<&'a str>, Option<i32>, bool);

fn contexts(events: &[KernelEvent]) -> Vec<Context<'_>> {
    let context = |event| match event {
        &KernelEvent { fact: KernelFact::OomContext(ref context), .. } => {
            let (oom, task) = (context.oom_memcg.as_deref(), context.task_memcg.as_deref());
            Some((oom, task, context.pid, context.global_oom))
        }
        _ => None,
    };
    events.iter().filter_map(context).collect()
}

const MEMCG: Option<OomScope> = Some(OomScope::Memcg);
const HOST: Option<OomScope> = Some(OomScope::Host);

#[test]
fn a_v1_kill_through_both_formats_gives_the_same_facts() {
    let (Some(kmsg), Some(dmesg)) = (recorded("oom-v1-kmsg.txt"), recorded("oom-v1-dmesg.txt")) else {
        return;
    };
    let (kmsg, dmesg) = (from_kmsg(&kmsg), from_dmesg(&dmesg));
    let facts = |events: &[KernelEvent]| events.iter().map(|event| event.fact.clone()).collect::<Vec<_>>();
    assert_eq!(facts(&kmsg), facts(&dmesg));
    assert_eq!(
        counted(&kmsg),
        counts([
            ("oom_invoked", 1),
            ("memcg_usage", 3),
            ("memcg_stats", 1),
            ("oom_context", 1),
            ("oom_killed", 1)
        ])
    );
    let cgroup = Some("/docker/8f3c2a90/oomtest-5715");
    assert_eq!(contexts(&kmsg), [(cgroup, cgroup, Some(5756), false)]);
    assert_eq!(victims(&kmsg), [(5756, "python3", MEMCG, Some(72848 << 10))]);
    let last = kmsg.last().unwrap();
    assert_eq!((last.seq, last.at_us), (Some(1580), 1_110_759_538));
}

#[test]
fn a_host_wide_kill_has_no_limit() {
    let Some(lines) = recorded("oom-global-6.18-dmesg.txt") else { return };
    let events = from_dmesg(&lines);
    assert_eq!(counted(&events), counts([("oom_invoked", 1), ("oom_context", 1), ("oom_killed", 1)]));
    assert_eq!(contexts(&events), [(None, Some("/docker/8f3c2a90"), Some(12880), true)]);
    assert_eq!(victims(&events), [(12880, "gpuprobe", HOST, Some(24_316_032 << 10))]);
    let KernelFact::OomKilled(killed) = &events[2].fact else { panic!() };
    assert_eq!((killed.uid, killed.oom_score_adj), (Some(0), Some(1000)));
    assert_eq!(killed.pgtables_bytes, Some(47656 << 10));
}

#[test]
fn pinned_memory_over_a_v2_limit_is_an_ordinary_kill() {
    let Some(lines) = recorded("oom-v2-h200-kmsg.txt") else { return };
    let events = from_kmsg(&lines);
    let [alloc, register, pageable] =
        ["/gpuprobe_lim_alloc", "/gpuprobe_lim_register", "/gpuprobe_lim_pageable"].map(Some);
    assert_eq!(
        counted(&events),
        counts([
            ("oom_invoked", 3),
            ("memcg_usage", 6),
            ("memcg_stats", 3),
            ("oom_context", 3),
            ("oom_killed", 3)
        ])
    );
    assert_eq!(
        contexts(&events).into_iter().map(|context| (context.0, context.2)).collect::<Vec<_>>(),
        [(alloc, Some(837)), (register, Some(843)), (pageable, Some(854))]
    );
    let KernelFact::OomKilled(killed) =
        &events.iter().find(|event| kind(&event.fact) == "oom_killed").unwrap().fact
    else {
        panic!()
    };
    assert_eq!(killed.shmem_bytes, Some(2_071_936 << 10), "cuMemHostAlloc counts as shared memory");
}

#[test]
fn the_console_of_a_virtual_machine_with_other_output_in_between() {
    let Some(lines) = recorded("oom-v2-qemu-tcg.log") else { return };
    let events = from_dmesg(&lines);
    let pids: Vec<i32> = victims(&events).into_iter().map(|victim| victim.0).collect();
    assert!(pids.starts_with(&[86]) && pids.contains(&100) && pids.contains(&101), "{pids:?}");
    let hosts: Vec<i32> =
        victims(&events).into_iter().filter(|victim| victim.2 == HOST).map(|victim| victim.0).collect();
    assert!(!hosts.is_empty() && hosts.iter().all(|pid| *pid == 108), "{hosts:?}");
    assert!(contexts(&events).contains(&(Some("/t"), Some("/t"), Some(86), false)));
    assert!(contexts(&events).contains(&(None, Some("/"), Some(108), true)));
}

/// Each `NAME.kmsg` of the corpus with the facts that `NAME.facts` lists, one JSON object a line.
#[test]
fn the_corpus_gives_the_listed_facts() {
    let mut names: Vec<PathBuf> = fs::read_dir(folder("tests/corpus"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "kmsg"))
        .collect();
    names.sort();
    assert!(names.len() >= 6, "the corpus was found");
    for path in names {
        let lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
        for line in &lines {
            assert!(record::parse(line.as_bytes()).is_ok(), "{}: {line}", path.display());
        }
        let json = |event: &KernelEvent| serde_json::to_string(event).unwrap() + "\n";
        let found: String = from_kmsg(&lines).iter().map(json).collect();
        let expected = fs::read_to_string(path.with_extension("facts")).unwrap_or_default();
        assert_eq!(found, expected, "{}", path.display());
    }
}
