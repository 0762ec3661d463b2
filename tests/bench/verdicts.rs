//! `scripts/bench verdicts`: the whole matrix of real deaths, the verdict on each, and how long that takes.
#![allow(clippy::expect_used, clippy::panic, reason = "a step of a measurement ends it")]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use serde_json::{Value, json};
use sexton_tests::Skip;
use sexton_tests::deaths::{Death, Outcome, Tally, excluded, latency, run_all};

/// Deaths of which the median is told.
const SAMPLES: usize = 101;

fn main() -> ExitCode {
    let json = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--json" => true,
        other => {
            eprintln!("bench-verdicts: {}: unknown, the only flag is --json", other.join(" "));
            return ExitCode::from(2);
        }
    };
    match measure(json) {
        Ok(right) => ExitCode::from(u8::from(!right)),
        Err(Skip(why)) => {
            eprintln!("bench-verdicts: cannot be measured here: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure(json: bool) -> Result<bool, Skip> {
    let mut tally = Tally::default();
    let mut rows: Vec<Value> = Vec::new();
    let progress = std::io::stderr().is_terminal();
    for (number, death) in Death::ALL.into_iter().enumerate() {
        if progress {
            eprint!("\r\x1b[K{number}/{} {death}", Death::ALL.len());
        }
        for outcome in run_all(&[death], 1)? {
            tally.count(&outcome);
            if json {
                rows.push(row(&outcome));
            } else {
                say(&outcome.to_string());
            }
        }
    }
    if progress {
        eprint!("\r\x1b[K");
    }
    let latency = latency::measure(SAMPLES)?;
    let us = |time: std::time::Duration| time.as_secs_f64() * 1e6;
    if json {
        let left_out: Vec<Value> = excluded()
            .map(|(death, company, why)| json!({"death": death.name(), "cgroup": company.to_string(), "why": why}))
            .collect();
        let document = json!({
            "schema_version": 1, "cells": rows, "left_out": left_out, "tally": tally.to_json(),
            "latency": {
                "samples": latency.samples, "bare_waitpid_us": us(latency.bare_waitpid),
                "durable_record_us": us(latency.durable_record), "verdict_us": us(latency.verdict),
            },
        });
        say(&document.to_string());
    } else {
        for (death, company, why) in excluded() {
            say(&format!("{death:<22} {company:<10} left out: {why}"));
        }
        say(&tally.to_string());
        say(&format!(
            "from kill(2), medians of {}: bare waitpid {:.0} µs; durable record {:.0} µs ({:.1}×); verdict on the disk {:.0} µs ({:.1}×)",
            latency.samples,
            us(latency.bare_waitpid),
            us(latency.durable_record),
            us(latency.durable_record) / us(latency.bare_waitpid),
            us(latency.verdict),
            us(latency.verdict) / us(latency.bare_waitpid),
        ));
    }
    Ok(tally.right == tally.all)
}

fn row(outcome: &Outcome) -> Value {
    json!({
        "death": outcome.cell.death.name(), "cgroup": outcome.cell.company.to_string(),
        "kernel_log": outcome.cell.log.to_string(), "verdict": outcome.record.verdict,
        "expected": outcome.expected.to_string(), "wrong": outcome.wrong,
    })
}

/// A reader that has had enough is no error of ours.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
