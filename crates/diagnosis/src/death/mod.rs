//! Why a run ended: from everything that is known about it to a cause, a level, a confidence and a sentence.
//!
//! Pure, so that a recorded death can be judged again by a later version. The order of the questions is the order in
//! which an answer rules the others out:
//!
//! 1. Did the program run at all?
//! 2. Is the wait status known? Else nothing is.
//! 3. Did *we* end it? Our own signals are always known.
//! 4. Did it end itself (exit code, panic, abort, fault)? The wait status says that, kernel log and output say more.
//! 5. SIGKILL from outside: the kernel's OOM killer ([`memory`]), a userspace killer, another process, nobody known.
//!
//! 137 proves nothing, and neither does a bare SIGKILL. A source that could not be read lowers the confidence and is
//! never taken for "no".

pub mod facts;
pub mod gpu;
pub mod kernel_lines;
pub mod memory;
pub mod program;
mod rows;
mod signals;
#[cfg(test)]
mod tests;

use sexton_model::kernel::trace::SignalOrigin;
use sexton_model::reading::Reading;
use sexton_model::verdict::{Cause, Confidence, Evidence, Level, Verdict};
use sexton_model::wait::{WaitStatus, signal_name};

pub use facts::{Facts, KernelLog, Membership, OwnSignal, Tasks};
use memory::Answer;
use signals::SIGKILL;

/// A judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What was looked at, a row a source.
    pub evidence: Vec<Evidence>,
    /// OOM kills of other processes in the run's cgroup, in words: an event each, and no verdict on the run.
    pub members_killed: Vec<String>,
    /// Why no restart can help, where that is so.
    pub hopeless: Option<&'static str>,
}

struct Conclusion {
    cause: Cause,
    confidence: Confidence,
    level: Option<Level>,
    summary: String,
}

impl From<(Cause, Confidence, String)> for Conclusion {
    fn from((cause, confidence, summary): (Cause, Confidence, String)) -> Self {
        Self { cause, confidence, level: None, summary }
    }
}

/// Judges a death.
pub fn judge(facts: &Facts) -> Judgement {
    let Conclusion { cause, confidence, level, summary } = conclude(facts);
    let run_itself = facts.wait.signal == Some(SIGKILL);
    let members_killed = match kernel_lines::oom_kills(facts) {
        Reading::Value(kills) => {
            let own = memory::counted(facts).into_value();
            let path = own.as_ref().map_or("", |own| own.path.as_str());
            let gained = own.as_ref().is_some_and(|own| own.kills > 0);
            let others = kills.iter().filter(|kill| kill.victim == kernel_lines::Victim::Other);
            let in_ours = others.filter(|kill| gained && kill.is_in(path));
            in_ours.map(kernel_lines::OomKill::words).collect()
        }
        _ => match memory::counted(facts) {
            Reading::Value(counted) if counted.kills > 0 && !run_itself => {
                vec![format!("the OOM-kill counter of {} rose by {}", counted.path, counted.kills)]
            }
            _ => Vec::new(),
        },
    };
    let is_lost = || gpu::fault(facts).is_some_and(|fault| !fault.restart_helps);
    let hopeless = (cause == Cause::GpuFault && is_lost())
        .then_some("its GPU needs a reset, or is gone: no restart helps before that is mended");
    Judgement {
        verdict: Verdict { cause, level, confidence, summary },
        evidence: rows::all(facts),
        members_killed,
        hopeless,
    }
}

fn conclude(facts: &Facts) -> Conclusion {
    use Confidence::{Certain, Unknown};
    let wait = facts.wait;
    if let Some(error) = &facts.start_error {
        return (Cause::StartFailed, Certain, format!("the program never ran: {error}")).into();
    }
    if wait == WaitStatus::UNKNOWN {
        return (Cause::Unknown, Unknown, "it ended, and nobody who could learn how was there".to_owned())
            .into();
    }
    if let Some(own) = ended_by_us(facts) {
        return own.into();
    }
    if wait.signal == Some(SIGKILL) {
        return killed(facts);
    }
    let by_itself = match (wait.code, wait.signal) {
        (Some(code), _) => program::exited(facts, code),
        (None, signal) => program::signalled(facts, signal.unwrap_or_default()),
    };
    if by_itself.0 != Cause::CleanExit
        && by_itself.0 != Cause::Terminated
        && let Some(fault) = gpu::fault(facts)
    {
        let summary = format!("it {} after the NVIDIA driver reported a fault: {}", ended(wait), fault.words);
        return (Cause::GpuFault, fault.confidence, summary).into();
    }
    by_itself.into()
}

/// `exited with 7`, `was killed by SIGTERM (15)`.
fn ended(wait: WaitStatus) -> String {
    match wait.signal {
        Some(_) => format!("was {wait}"),
        None => wait.to_string(),
    }
}

fn ended_by_us(facts: &Facts) -> Option<(Cause, Confidence, String)> {
    let wait = facts.wait;
    let sent = |signal| facts.own_signals.iter().any(|own| own.signal == signal);
    let asked = facts.own_signals.iter().any(|own| own.signal != SIGKILL);
    let died_of_ours = wait.signal.is_some_and(sent) || (asked && wait.code.is_some());
    if let Some(found) =
        facts.own_signals.iter().find_map(|own| own.watchdog.as_ref()).filter(|_| died_of_ours)
    {
        let summary = format!("the supervisor stopped it because {found}, and it {}", ended(wait));
        return Some((Cause::Watchdog, Confidence::Certain, summary));
    }
    // The kernel reports the first fatal signal: a drain asked for by SIGTERM and hastened by SIGKILL shows either.
    if wait.signal == Some(SIGKILL) && sent(SIGKILL) {
        let late = if asked { " after it had not ended in time" } else { "" };
        return Some((
            Cause::KilledBySupervisor,
            Confidence::Certain,
            format!("the supervisor killed it{late}"),
        ));
    }
    let stopped = wait.signal.is_some_and(sent) || (asked && wait.code.is_some());
    stopped.then(|| {
        let summary = format!("the supervisor asked it to stop, and it {}", ended(wait));
        (Cause::StoppedBySupervisor, Confidence::Certain, summary)
    })
}

/// SIGKILL, and not ours.
fn killed(facts: &Facts) -> Conclusion {
    let answer = memory::judge(facts);
    if let Answer::Killed { confidence, place, because } = answer {
        let (cause, whose) = match place.level {
            Level::Own => (Cause::OomOwnLimit, "the memory limit of its own cgroup"),
            Level::Ancestor => (Cause::OomAncestorLimit, "the memory limit of a cgroup above its own"),
            // Without a kernel line nothing tells a limit above from the end of the host's memory.
            Level::Hidden if place.path.is_none() => (
                Cause::OomAncestorLimit,
                "a memory limit outside what can be seen from here, or the host's own",
            ),
            Level::Hidden => (Cause::OomAncestorLimit, "a memory limit outside what can be seen from here"),
            Level::Host => (Cause::OomHost, "the end of the host's memory"),
        };
        let path = place.path.map(|path| format!(" ({path})")).unwrap_or_default();
        let summary = format!("the kernel's OOM killer ended it at {whose}{path}: {because}");
        return Conclusion { cause, confidence, level: Some(place.level), summary };
    }
    if let Reading::Value(mark) = &facts.userspace_killer {
        return (Cause::OomUserspace, Confidence::Certain, format!("a userspace killer ended it: {mark}"))
            .into();
    }
    if let Reading::Value(kills) = &facts.kills_sent
        && let Some(sent) = kills.iter().find(|sent| sent.origin != SignalOrigin::Kernel)
    {
        let name = sent.sender_comm.as_deref().unwrap_or("a process without a readable name");
        if matches!(name, "systemd-oomd" | "earlyoom" | "nohang" | "oomd") {
            let summary = format!("{name} (pid {}) ended it for lack of memory", sent.sender_pid);
            return (Cause::OomUserspace, Confidence::Certain, summary).into();
        }
        let tasks = &facts.tasks;
        let its_thread = tasks.numbers_are_global && tasks.thread_ids.contains(&sent.sender_pid);
        let summary = if its_thread || sent.sender_pid == sent.pid {
            "it sent itself SIGKILL".to_owned()
        } else {
            format!("{name} (pid {}) sent it SIGKILL", sent.sender_pid)
        };
        return (Cause::KilledByProcess, Confidence::Certain, summary).into();
    }
    match answer {
        Answer::Suspected { because } => {
            let summary = format!("SIGKILL ended it, perhaps for lack of memory: {because}");
            (Cause::OomSuspected, Confidence::Possible, summary).into()
        }
        Answer::Excluded { because } => {
            let summary = format!(
                "somebody sent it SIGKILL, and nothing says who; it was not the OOM killer: {because}"
            );
            (Cause::KilledUnknown, Confidence::Likely, summary).into()
        }
        Answer::Open { because } => {
            let summary = format!("SIGKILL ended it, and nothing says who sent that: {because}");
            (Cause::KilledUnknown, Confidence::Unknown, summary).into()
        }
        Answer::Killed { .. } => (Cause::Unknown, Confidence::Unknown, signal_name(SIGKILL)).into(),
    }
}
