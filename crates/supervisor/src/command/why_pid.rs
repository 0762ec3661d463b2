//! `supervisor why --pid N`: a process that may not be ours, living or dying.
//!
//! Reads `/proc` through `host::task`, which leaves out the files that take the process's memory lock: a reader of
//! `cmdline` or `smaps` of a prover in a hung driver hangs with it.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;
use sexton_diagnosis::process_state::{classify, explain};
use sexton_host::task::Tasks;
use sexton_model::process_state::ProcessState;
use sexton_model::reading::Reading;
use sexton_model::task::{ProcessReading, ProcessRef, ResidentMemory, ThreadReading};
use sexton_model::units::{Bytes, Human};
use sexton_model::{SCHEMA_VERSION, Timestamp};

use super::{Failure, show};

/// How many threads are listed without `--json`.
const THREADS_SHOWN: usize = 16;

/// The JSON document.
#[derive(Debug, Serialize)]
struct Explained {
    schema_version: u32,
    at: Timestamp,
    pid: i32,
    state: ProcessState,
    sentence: String,
    action: String,
    process: Reading<ProcessReading>,
}

pub(super) fn why(pid: i32, json: bool) -> Result<(), Failure> {
    let process = Tasks::system().process(pid);
    let state = classify(&process);
    if let ProcessState::Unknown { obstacle } = &state {
        return Err(Failure::NotReadable(format!("cannot tell about process {pid}: {}", obstacle.detail)));
    }
    let explanation = explain(pid, &state);
    if json {
        return Ok(show::json(&Explained {
            schema_version: SCHEMA_VERSION,
            at: Timestamp::now(),
            pid,
            state,
            sentence: explanation.sentence,
            action: explanation.action,
            process,
        })?);
    }
    let mut page = format!("{}\n{}\n", explanation.sentence, explanation.action);
    if let Reading::Value(process) = &process {
        describe(&mut page, process);
    }
    show::text(&page)?;
    if state == ProcessState::Gone {
        return Err(Failure::NotRunning(format!("there is no process {pid}")));
    }
    Ok(())
}

fn describe(page: &mut String, process: &ProcessReading) {
    let mut line = |name: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(page, "{name:<11} {value}");
    };
    line("", String::new());
    line("process", format!("{} ({})", process.pid, process.leader.comm));
    line("executable", told(&process.executable, Clone::clone));
    line("parent", told(&process.parent, named));
    let age = told(&process.age_seconds, |age| Human(Duration::from_secs_f64(age.max(0.0))).to_string());
    line(
        "age",
        format!(
            "{age} since its start; CPU {:.1} s user, {:.1} s system",
            process.user_seconds, process.system_seconds
        ),
    );
    line("memory", process.threads().find_map(resident).map_or("no thread maps any".to_owned(), memory));
    line(
        "cgroups",
        told(&process.cgroups, |lines| {
            let shown =
                lines.iter().filter(|line| line.hierarchy == 0 || line.controllers.contains("memory"));
            shown.map(|line| format!("{}:{}", line.controllers, line.path)).collect::<Vec<_>>().join("  ")
        }),
    );
    let _ = writeln!(
        page,
        "\n  {:>7} state  {:<15} {:<28} innermost kernel frames",
        "thread", "name", "waits in"
    );
    for thread in process.threads().take(THREADS_SHOWN) {
        let frames =
            told(&thread.kernel_stack, |stack| stack.iter().take(3).cloned().collect::<Vec<_>>().join(" < "));
        let wchan = cell(&thread.wchan, Clone::clone);
        let state = char::from(thread.state);
        let leaving = if thread.exiting { "+exit" } else { "" };
        let _ = writeln!(
            page,
            "  {:>7} {state}{leaving:<5} {:<15} {wchan:<28} {frames}",
            thread.tid, thread.comm
        );
    }
    let more = process.others.len().saturating_sub(THREADS_SHOWN - 1);
    if more > 0 {
        let _ = writeln!(page, "  and {more} more threads (--json lists all)");
    }
}

fn resident(thread: &ThreadReading) -> Option<ResidentMemory> {
    match &thread.status {
        Reading::Value(status) => status.memory,
        _ => None,
    }
}

fn memory(memory: ResidentMemory) -> String {
    let part = |name: &str, bytes: Option<u64>| {
        bytes.map(|bytes| format!(", {name} {}", Bytes(bytes))).unwrap_or_default()
    };
    format!(
        "{} resident{}{}{}",
        Bytes(memory.total_bytes),
        part("anonymous", memory.anonymous_bytes),
        part("shared (pinned by the driver, or memfd)", memory.shared_bytes),
        part("files", memory.file_bytes),
    )
}

fn named(process: &ProcessRef) -> String {
    format!("{} ({})", process.pid, told(&process.comm, Clone::clone))
}

fn told<T>(reading: &Reading<T>, shown: impl Fn(&T) -> String) -> String {
    match reading {
        Reading::Value(value) => shown(value),
        Reading::Absent => "-".to_owned(),
        Reading::Unreadable(obstacle) => format!("unreadable: {}", obstacle.detail),
    }
}

/// As [`told`], for the cell of a table.
fn cell<T>(reading: &Reading<T>, shown: impl Fn(&T) -> String) -> String {
    match reading {
        Reading::Unreadable(_) => "unreadable".to_owned(),
        other => told(other, shown),
    }
}
