//! Prometheus text (exposition format 0.0.4), made of nothing but [`PipelineStatus`], so that the two never disagree.

use std::fmt::{Display, Write};

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use sexton_model::pipeline::PipelineStatus;

use super::Api;

/// `GET /metrics`.
pub(super) async fn get(State(api): State<Api>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], render(&api.engine.status()))
}

/// Writes a status as Prometheus text. Counters start at 0 with every label that is known beforehand.
#[must_use]
pub fn render(status: &PipelineStatus) -> String {
    let mut text = Exposition::default();
    text.family("sexton_prover_info", "gauge", "What this prover is; always 1.");
    let version = status.version.as_deref().unwrap_or_default();
    let run_id = status.run_id.as_deref().unwrap_or_default();
    text.sample("sexton_prover_info", &[("version", version), ("run_id", run_id)], 1);
    text.single("sexton_prover_uptime_seconds", "gauge", "Seconds since the start.", status.uptime_secs);
    let quiesced = u8::from(status.quiesced.unwrap_or(false));
    text.single("sexton_prover_quiesced", "gauge", "1 while no jobs are admitted.", quiesced);

    memory(&mut text, status);
    jobs(&mut text, status);
    stages(&mut text, status);
    text.0
}

fn memory(text: &mut Exposition, status: &PipelineStatus) {
    let used = status.memory.used_bytes;
    text.single("sexton_prover_memory_accounted_bytes", "gauge", "Accounted, not measured.", used);
    if let Some(total) = status.memory.total_bytes {
        text.single("sexton_prover_memory_budget_bytes", "gauge", "The memory budget.", total);
    }
    text.family("sexton_prover_key_bytes", "gauge", "Proving keys in memory.");
    for key in &status.allocations.srs {
        text.sample("sexton_prover_key_bytes", &[("circuit", &key.circuit_id)], key.bytes);
    }
}

fn jobs(text: &mut Exposition, status: &PipelineStatus) {
    if let Some(jobs) = &status.jobs {
        text.single("sexton_prover_jobs_accepted_total", "counter", "Jobs taken.", jobs.accepted);
        text.family("sexton_prover_jobs_ended_total", "counter", "Jobs answered, by how they ended.");
        let endings = [
            ("done", jobs.done),
            ("failed", jobs.failed),
            ("cancelled", jobs.cancelled),
            ("handed_back", jobs.handed_back),
        ];
        for (ending, count) in endings {
            text.sample("sexton_prover_jobs_ended_total", &[("ending", ending)], count);
        }
        text.single("sexton_prover_jobs_running", "gauge", "Jobs with a worker.", jobs.running);
        text.single("sexton_prover_answers_kept", "gauge", "Answers that can be fetched.", jobs.answers_kept);
    }
    if let Some(queue) = &status.queue {
        text.family("sexton_prover_queue_depth", "gauge", "Jobs waiting, by priority.");
        for (priority, depth) in &queue.depth_by_priority {
            text.sample("sexton_prover_queue_depth", &[("priority", priority.name())], depth);
        }
        text.single("sexton_prover_queue_capacity", "gauge", "Jobs that may wait.", queue.capacity);
        let oldest = queue.oldest_wait_seconds.unwrap_or(0.0);
        text.single("sexton_prover_queue_oldest_wait_seconds", "gauge", "Wait of the oldest job.", oldest);
    }
    for (name, help, by_circuit) in [
        ("sexton_prover_proofs_done_total", "Proofs made, by circuit.", &status.counters.completed_by_kind),
        ("sexton_prover_proofs_failed_total", "Proofs failed, by circuit.", &status.counters.failed_by_kind),
    ] {
        text.family(name, "counter", help);
        for (circuit, count) in by_circuit {
            text.sample(name, &[("circuit", circuit)], count);
        }
    }
}

fn stages(text: &mut Exposition, status: &PipelineStatus) {
    let name = "sexton_prover_stage_seconds_total";
    text.family(name, "counter", "Time spent in each stage of the proofs that were made, by circuit.");
    for (circuit, totals) in status.timings.iter().flatten() {
        let stages = [
            ("queued", totals.queued_us),
            ("key", totals.key_us),
            ("synthesis", totals.synthesis_us),
            ("prove", totals.prove_us),
            ("verify", totals.verify_us),
        ];
        for (stage, micros) in stages {
            text.sample(name, &[("circuit", circuit), ("stage", stage)], micros as f64 / 1e6);
        }
    }
}

#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<_> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

/// A label value between its quotes: backslash, quote and line feed are escaped, and nothing else is.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
