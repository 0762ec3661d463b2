//! Commands that are run on events: page somebody, open a ticket, ask a load balancer to send jobs elsewhere.
//!
//! A hook gets one JSON document on its standard input, `{"schema_version", "name", "event", "exit_record"}`: the event as
//! `supervisor events --json` prints it, and for `run_ended` the exit record, else `null`. One hook runs one command at a
//! time, in the order of the events, so the last it hears is the last that happened; what comes faster than it works
//! waits, up to [`QUEUE_MAX`], and is then dropped and counted. Only failures are told, and no hook is run for those.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use sexton_model::SCHEMA_VERSION;
use sexton_model::event::{Event, EventKind};
use sexton_model::exit::ExitRecord;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::side_command::{self, Outcome, SideChildren, SideCommand};
use crate::place::Place;

/// How many events wait for one hook at most. With an exit record each is up to 100 KiB.
pub const QUEUE_MAX: usize = 32;

/// One `[[hook]]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Kinds of events that it is for.
    pub on: Vec<EventKind>,
    /// What to run, and for how long at most.
    pub command: SideCommand,
}

/// A hook that did not do its work.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Its command.
    pub command: String,
    /// The event that it was for: kind, number, run.
    pub event: EventKind,
    /// The event's number.
    pub seq: u64,
    /// The event's run.
    pub run_id: Option<String>,
    /// What happened.
    pub what: What,
}

/// How a hook failed.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// Its command did.
    Command(Outcome),
    /// It was too slow, and so many events were dropped, this one first.
    Dropped(u64),
}

impl Failure {
    /// For the journal.
    pub fn details(&self) -> Value {
        let mut details =
            json!({"command": self.command, "event": self.event, "event_seq": self.seq, "why": self.why()});
        match &self.what {
            What::Command(outcome) => {
                details["duration_seconds"] = json!(outcome.duration.as_secs_f64());
                details["output"] = json!(outcome.output);
            }
            What::Dropped(events) => details["dropped"] = json!(events),
        }
        details
    }

    /// One line without the command: `exited with 1 after 20 ms: no route to host`.
    pub fn why(&self) -> String {
        match &self.what {
            What::Command(outcome) => outcome.to_string(),
            What::Dropped(events) => format!("it is too slow: {events} events were not passed on"),
        }
    }
}

/// What a hook reads.
#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    name: &'a str,
    event: &'a Event,
    exit_record: Option<&'a ExitRecord>,
}

/// An event that waits for a hook.
#[derive(Debug)]
struct Job {
    kind: EventKind,
    seq: u64,
    run_id: Option<String>,
    document: Arc<[u8]>,
}

/// A hook, and what it has to do.
#[derive(Debug)]
struct Worker {
    hook: Hook,
    running: bool,
    waiting: VecDeque<Job>,
    /// First event that found no room, and how many did.
    dropped: Option<(Job, u64)>,
}

/// The hooks of one supervisor.
#[derive(Debug)]
pub struct Hooks {
    name: String,
    told: Vec<(String, OsString)>,
    children: SideChildren,
    workers: Vec<Worker>,
    /// Rises with each new configuration: what an earlier one started is none of these workers'.
    generation: u64,
    running: JoinSet<(u64, usize, Job, Outcome)>,
    failures: VecDeque<Failure>,
}

impl Hooks {
    /// Hooks for the supervisor of `place`. Nothing runs yet.
    pub fn new(hooks: Vec<Hook>, place: &Place, children: SideChildren) -> Self {
        let told = [
            ("SEXTON_NAME", place.name.clone().into()),
            ("SEXTON_STATE_DIR", place.state_dir.clone().into_os_string()),
            ("SEXTON_RUNTIME_DIR", place.runtime_dir.clone().into_os_string()),
        ];
        let mut new = Self {
            name: place.name.clone(),
            told: told.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            children,
            workers: Vec::new(),
            generation: 0,
            running: JoinSet::new(),
            failures: VecDeque::new(),
        };
        new.replace(hooks);
        new
    }

    /// Other hooks from now on. What runs is finished, what waits is dropped.
    pub fn replace(&mut self, hooks: Vec<Hook>) {
        self.generation += 1;
        let worker = |hook| Worker { hook, running: false, waiting: VecDeque::new(), dropped: None };
        self.workers = hooks.into_iter().map(worker).collect();
    }

    /// Has the hooks run that are for this event: now, or when they are free. To be called inside the runtime.
    pub fn offer(&mut self, event: &Event, exit_record: Option<&ExitRecord>) {
        // A hook for a hook's failure would fail for ever.
        if event.kind == EventKind::HookFailed {
            return;
        }
        let mut document = None;
        for index in 0..self.workers.len() {
            if !self.workers[index].hook.on.contains(&event.kind) {
                continue;
            }
            let document = document.get_or_insert_with(|| {
                let document =
                    Document { schema_version: SCHEMA_VERSION, name: &self.name, event, exit_record };
                // Strings, numbers and maps with string keys: nothing in it can fail.
                let mut bytes = serde_json::to_vec(&document).unwrap_or_default();
                bytes.push(b'\n');
                Arc::<[u8]>::from(bytes)
            });
            let job = Job {
                kind: event.kind,
                seq: event.seq,
                run_id: event.run_id.clone(),
                document: document.clone(),
            };
            let worker = &mut self.workers[index];
            match &mut worker.dropped {
                // Nothing overtakes what was dropped, so that the count is of one gap.
                Some((_, count)) => *count += 1,
                None if worker.waiting.len() >= QUEUE_MAX => worker.dropped = Some((job, 1)),
                None => worker.waiting.push_back(job),
            }
            self.go_on(index);
        }
    }

    /// The next failure. Cancel-safe; to be awaited all the time, since it is what keeps the hooks going.
    pub async fn next(&mut self) -> Failure {
        loop {
            if let Some(failure) = self.failures.pop_front() {
                return failure;
            }
            match self.running.join_next().await {
                Some(Ok(done)) => self.note(done),
                // A task that panicked or was aborted, which ours are not.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Gives what runs and waits `patience` to end, then kills it. Returns the failures.
    pub async fn finish(&mut self, patience: Duration) -> Vec<Failure> {
        let deadline = Instant::now() + patience;
        while let Ok(Some(done)) = tokio::time::timeout_at(deadline, self.running.join_next()).await {
            done.into_iter().for_each(|done| self.note(done));
        }
        self.running.shutdown().await;
        self.failures.drain(..).collect()
    }

    fn note(&mut self, (generation, index, job, outcome): (u64, usize, Job, Outcome)) {
        let command = |hook: &Hook| {
            let words: Vec<_> = hook.command.command.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        };
        let Some(worker) = self.workers.get_mut(index).filter(|_| generation == self.generation) else {
            return;
        };
        worker.running = false;
        if !outcome.is_success() {
            self.failures.push_back(Failure {
                command: command(&worker.hook),
                event: job.kind,
                seq: job.seq,
                run_id: job.run_id,
                what: What::Command(outcome),
            });
        }
        // The gap is told once there is room again, so that it is told once.
        if let Some((job, count)) = worker.dropped.take() {
            self.failures.push_back(Failure {
                command: command(&worker.hook),
                event: job.kind,
                seq: job.seq,
                run_id: job.run_id,
                what: What::Dropped(count),
            });
        }
        self.go_on(index);
    }

    fn go_on(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        if worker.running {
            return;
        }
        let Some(job) = worker.waiting.pop_front() else { return };
        worker.running = true;
        let mut told = self.told.clone();
        // As JSON has it, without the quotes.
        let kind = serde_json::to_value(job.kind).ok();
        told.push((
            "SEXTON_EVENT".to_owned(),
            kind.as_ref().and_then(Value::as_str).unwrap_or_default().into(),
        ));
        told.extend(job.run_id.iter().map(|run_id| ("SEXTON_RUN_ID".to_owned(), run_id.into())));
        let (children, command, generation) =
            (self.children.clone(), worker.hook.command.clone(), self.generation);
        self.running.spawn(async move {
            let outcome = side_command::run(&children, &command, &told, &job.document).await;
            (generation, index, job, outcome)
        });
    }
}

#[cfg(test)]
mod tests;
