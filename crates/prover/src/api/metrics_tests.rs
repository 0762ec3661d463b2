//! The text is read back with a reader of its own, written after the format's specification.

use std::collections::{BTreeMap, HashMap};

use sexton_model::pipeline::{
    Allocation, Allocations, Buffers, Counters, JobCounts, MemoryStatus, PipelineStatus, Priority,
    QueueStatus, StageTotals, SynthesisStatus,
};

use super::*;

type Labels = BTreeMap<String, String>;

/// Samples by name and labels; a sample without `# TYPE`, or with two values, is an error.
fn read_back(text: &str) -> Result<HashMap<(String, Labels), f64>, String> {
    let (mut types, mut samples) = (HashMap::new(), HashMap::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or(line)?;
            if types.insert(name.to_owned(), kind.to_owned()).is_some() {
                return Err(format!("two types: {line}"));
            }
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').ok_or(line)?;
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, read_labels(labels.strip_suffix('}').ok_or(line)?)?),
            None => (series, BTreeMap::new()),
        };
        let kind = types.get(name).ok_or(format!("no type: {line}"))?;
        assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
        let value = value.parse().map_err(|_| format!("no number: {line}"))?;
        if samples.insert((name.to_owned(), labels), value).is_some() {
            return Err(format!("two values: {line}"));
        }
    }
    Ok(samples)
}

fn read_labels(mut text: &str) -> Result<Labels, String> {
    let mut labels = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").ok_or(text)?;
        let (mut value, mut chars) = (String::new(), rest.char_indices());
        let end = loop {
            match chars.next().ok_or("open quote")? {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next().ok_or("open escape")?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.insert(name.to_owned(), value);
        text = rest[end + 1..].trim_start_matches(',');
    }
    Ok(labels)
}

fn status() -> PipelineStatus {
    let zero = |value: u64| BTreeMap::from([("mimc".to_owned(), value), ("sha256".to_owned(), 0)]);
    let totals = StageTotals { proofs: 3, prove_us: 1_500_000, ..StageTotals::default() };
    PipelineStatus {
        schema_version: Some(1),
        uptime_secs: 1.5,
        memory: MemoryStatus { total_bytes: Some(1 << 30), used_bytes: 7, available_bytes: None, note: None },
        synthesis: SynthesisStatus { max_concurrent: 1, active: 0 },
        pipelines: Vec::new(),
        gpu_workers: Vec::new(),
        allocations: Allocations {
            srs: vec![Allocation {
                circuit_id: "quote \" backslash \\ line\nfeed".to_owned(),
                bytes: 9,
                last_used_secs_ago: 0.0,
                evictable: false,
            }],
            pce: Vec::new(),
        },
        counters: Counters { completed_by_kind: zero(3), failed_by_kind: zero(0), ..Counters::default() },
        buffers: Buffers::default(),
        state: None,
        quiesced: Some(true),
        run_id: None,
        version: Some("1.2.3".to_owned()),
        queue: Some(QueueStatus {
            capacity: 4,
            depth_by_priority: Priority::ALL.into_iter().map(|priority| (priority, 0)).collect(),
            oldest_wait_seconds: None,
        }),
        cpu_workers: None,
        jobs: Some(JobCounts { accepted: 3, done: 3, ..JobCounts::default() }),
        timings: Some(BTreeMap::from([("mimc".to_owned(), totals)])),
        last_error: None,
    }
}

#[test]
fn the_text_is_read_back_with_every_value() {
    let samples = read_back(&render(&status())).unwrap();
    let value = |name: &str, labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        samples.get(&(name.to_owned(), labels)).copied()
    };
    assert_eq!(value("sexton_prover_proofs_done_total", &[("circuit", "mimc")]), Some(3.0));
    assert_eq!(
        value("sexton_prover_proofs_done_total", &[("circuit", "sha256")]),
        Some(0.0),
        "counters begin at 0"
    );
    assert_eq!(value("sexton_prover_jobs_ended_total", &[("ending", "handed_back")]), Some(0.0));
    assert_eq!(value("sexton_prover_queue_depth", &[("priority", "critical")]), Some(0.0));
    let prove = [("circuit", "mimc"), ("stage", "prove")];
    assert_eq!(value("sexton_prover_stage_seconds_total", &prove), Some(1.5));
    assert_eq!(value("sexton_prover_quiesced", &[]), Some(1.0));
    assert_eq!(value("sexton_prover_memory_budget_bytes", &[]), Some(1_073_741_824.0));
}

#[test]
fn labels_are_escaped() {
    let samples = read_back(&render(&status())).unwrap();
    let circuit = "quote \" backslash \\ line\nfeed".to_owned();
    let labels = BTreeMap::from([("circuit".to_owned(), circuit)]);
    assert_eq!(samples[&("sexton_prover_key_bytes".to_owned(), labels)], 9.0);
}
