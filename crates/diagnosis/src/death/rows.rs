//! The evidence as rows: every source, what it answered, and what it said.

use sexton_model::kernel::KernelFact;
use sexton_model::reading::Reading;
use sexton_model::units::Bytes;
use sexton_model::verdict::{Answer, Evidence, Source};
use sexton_model::wait::{WaitStatus, signal_name};

use super::facts::Facts;
use super::kernel_lines::{self, Victim};
use super::{gpu, memory, program};

/// All rows, in the order of [`Source`].
pub(super) fn all(facts: &Facts) -> Vec<Evidence> {
    let mut rows = vec![
        wait_status(facts),
        oom_counter(facts),
        limits(facts),
        kernel_log(facts),
        vmstat(facts),
        sender(facts),
        members(facts),
        core_dump(facts),
        output(facts),
        xid(facts),
    ];
    rows.extend(own_actions(facts));
    rows
}

fn row(facts: &Facts, source: Source, answer: Answer, detail: impl Into<String>) -> Evidence {
    Evidence { source, answer, detail: detail.into(), at: facts.at }
}

fn missing<T>(facts: &Facts, source: Source, reading: &Reading<T>) -> Evidence {
    row(facts, source, Answer::Unreadable, kernel_lines::why_missing(reading))
}

fn wait_status(facts: &Facts) -> Evidence {
    if facts.wait == WaitStatus::UNKNOWN {
        return row(facts, Source::WaitStatus, Answer::Unreadable, "nobody who could wait for it was there");
    }
    row(facts, Source::WaitStatus, Answer::Hit, facts.wait.to_string())
}

fn oom_counter(facts: &Facts) -> Evidence {
    let source = Source::CgroupOomKill;
    match memory::counted(facts) {
        Reading::Value(counted) => {
            let shared = if counted.exclusive { "no stranger in it" } else { "shared with other processes" };
            let answer = if counted.kills > 0 { Answer::Hit } else { Answer::Empty };
            row(
                facts,
                source,
                answer,
                format!("{}: {} kills while it ran ({shared})", counted.path, counted.kills),
            )
        }
        other => missing(facts, source, &other),
    }
}

fn limits(facts: &Facts) -> Evidence {
    let source = Source::CgroupLimit;
    let Some(membership) = facts.memberships.first() else {
        return row(facts, source, Answer::Unreadable, "no memory cgroup is known for it");
    };
    let Reading::Value(cgroup) = &membership.at_death else {
        return missing(facts, source, &membership.at_death);
    };
    let tightest = cgroup
        .levels
        .iter()
        .filter_map(|level| Some((level, level.limit.value()?.bytes()?)))
        .min_by_key(|l| l.1);
    match tightest {
        None => row(facts, source, Answer::Empty, "no cgroup of its path has a limit that can be seen"),
        Some((level, limit)) => {
            let number = |reading: &Reading<u64>| {
                reading.value().map_or("unreadable".to_owned(), |b| Bytes(*b).to_string())
            };
            let peak_at_limit = level.peak_bytes.value().is_some_and(|peak| *peak >= limit);
            let answer = if peak_at_limit { Answer::Hit } else { Answer::Empty };
            let (usage, peak) = (number(&level.usage_bytes), number(&level.peak_bytes));
            row(
                facts,
                source,
                answer,
                format!("{}: limit {}, usage {usage}, peak {peak}", level.path, Bytes(limit)),
            )
        }
    }
}

fn kernel_log(facts: &Facts) -> Evidence {
    let source = Source::KernelLog;
    let Reading::Value(log) = &facts.kernel_log else { return missing(facts, source, &facts.kernel_log) };
    let gap = if log.whole { "" } else { " (records were lost before they could be read)" };
    let kills = kernel_lines::oom_kills(facts).into_value().unwrap_or_default();
    let signal = facts.wait.signal.unwrap_or_default();
    if let Some(kill) = kills.iter().find(|kill| matches!(kill.victim, Victim::Run(_))) {
        return row(facts, source, Answer::Hit, kill.words());
    }
    if let Some((_, words)) = kernel_lines::fault(facts, signal) {
        return row(facts, source, Answer::Hit, words);
    }
    let text = match kills.len() {
        0 => format!("nothing about it since its start{gap}"),
        n => format!("nothing about it; {n} OOM kills of others since its start{gap}"),
    };
    row(facts, source, Answer::Empty, text)
}

fn vmstat(facts: &Facts) -> Evidence {
    match &facts.vmstat_oom_kills {
        Reading::Value(0) => {
            row(facts, Source::VmstatOomKill, Answer::Empty, "no OOM kill on this host while it ran")
        }
        Reading::Value(n) => {
            row(facts, Source::VmstatOomKill, Answer::Hit, format!("{n} OOM kills on this host while it ran"))
        }
        other => missing(facts, Source::VmstatOomKill, other),
    }
}

fn sender(facts: &Facts) -> Evidence {
    let source = Source::SignalSender;
    match &facts.kills_sent {
        Reading::Value(kills) => match kills.first() {
            Some(sent) => {
                let name = sent.sender_comm.as_deref().unwrap_or("?");
                let detail = format!("{} by {name} (pid {})", signal_name(sent.signal), sent.sender_pid);
                row(facts, source, Answer::Hit, detail)
            }
            None => row(facts, source, Answer::Empty, "the signal trace saw no SIGKILL sent to it"),
        },
        Reading::Absent => {
            row(facts, source, Answer::Unreadable, "the signal trace is off (run --signal-trace)")
        }
        other => missing(facts, source, other),
    }
}

fn members(facts: &Facts) -> Evidence {
    let source = Source::MemberProcesses;
    let Some(membership) = facts.memberships.first() else {
        return row(facts, source, Answer::Unreadable, "no memory cgroup is known for it");
    };
    let members = membership.at_death.clone().and_then(|cgroup| match cgroup.levels.into_iter().next() {
        Some(own) => own.members,
        None => Reading::Absent,
    });
    match members {
        Reading::Value(members) => {
            let others = members.pids.iter().filter(|pid| Some(**pid) != facts.tasks.pid).count() as u64
                + members.foreign;
            let answer = if others > 0 { Answer::Hit } else { Answer::Empty };
            row(facts, source, answer, format!("{others} other processes in its cgroup when it died"))
        }
        other => missing(facts, source, &other),
    }
}

fn core_dump(facts: &Facts) -> Evidence {
    let answer = if facts.wait.core { Answer::Hit } else { Answer::Empty };
    let detail = if facts.wait.core { "the kernel dumped core" } else { "none" };
    row(facts, Source::CoreDump, answer, detail)
}

fn output(facts: &Facts) -> Evidence {
    match &facts.output {
        Reading::Value(text) => match program::panic_line(text).or_else(|| program::allocation_failure(text))
        {
            Some(line) => row(facts, Source::Output, Answer::Hit, line),
            None => {
                row(facts, Source::Output, Answer::Empty, "no panic and no allocation failure at its end")
            }
        },
        other => missing(facts, Source::Output, other),
    }
}

fn xid(facts: &Facts) -> Evidence {
    let source = Source::GpuXid;
    let Reading::Value(log) = &facts.kernel_log else { return missing(facts, source, &facts.kernel_log) };
    match gpu::fault(facts) {
        Some(fault) => row(facts, source, Answer::Hit, fault.words),
        None => {
            let others = log.events.iter().filter(|event| matches!(event.fact, KernelFact::Xid(_))).count();
            let detail =
                if others == 0 { "none".to_owned() } else { format!("{others}, of other processes") };
            row(facts, source, Answer::Empty, detail)
        }
    }
}

fn own_actions(facts: &Facts) -> Vec<Evidence> {
    if facts.own_signals.is_empty() {
        return vec![row(facts, Source::OwnAction, Answer::Empty, "the supervisor sent no signal")];
    }
    let sent = |own: &super::OwnSignal| Evidence {
        source: Source::OwnAction,
        answer: Answer::Hit,
        detail: format!("the supervisor sent {}", signal_name(own.signal)),
        at: own.at,
    };
    facts.own_signals.iter().map(sent).collect()
}
