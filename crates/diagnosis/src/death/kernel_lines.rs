//! Kernel lines that speak of the run.

use sexton_model::kernel::KernelFact;
use sexton_model::kernel::fact::{Named, OomContext, OomKilled, OomScope};
use sexton_model::reading::Reading;
use sexton_model::units::Bytes;
use sexton_model::verdict::{Cause, Confidence, Level};

use super::facts::{Facts, Tasks};
use super::memory::Place;
use super::signals::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};

/// Whom an OOM kill hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// The run's main process, as sure as that.
    Run(Confidence),
    /// Somebody else: a neighbour, or another process of the run.
    Other,
}

/// One kill by the kernel's OOM killer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OomKill {
    /// Whom.
    pub victim: Victim,
    killed: OomKilled,
    /// The line before it, which is left out when there are many kills.
    context: Option<OomContext>,
    /// Path of the limit, from a kernel before 5.0, which says that in a line of its own.
    legacy_limit: Option<(String, String)>,
    /// The cgroup whose members were all to go (`memory.oom.group`): it says nothing else of those after the first.
    group: Option<String>,
}

/// All OOM kills in the kernel log since the run began, in order.
pub fn oom_kills(facts: &Facts) -> Reading<Vec<OomKill>> {
    facts.kernel_log.clone().map(|log| {
        let (mut kills, mut context, mut legacy) = (Vec::new(), None::<OomContext>, None);
        let mut group = None;
        for event in log.events {
            match event.fact {
                KernelFact::OomContext(line) => (context, group) = (Some(line), None),
                KernelFact::OomGroup(line) => group = Some(line.memcg),
                KernelFact::OomLimit(line) => legacy = Some((line.task_memcg, line.oom_memcg)),
                KernelFact::OomKilled(killed) => {
                    // Records of two kills can interleave: a context belongs to the kill of the PID that it names.
                    let context = context.take().filter(|c| c.pid.is_none_or(|pid| pid == killed.victim.pid));
                    let victim = victim(&facts.tasks, &killed, context.as_ref(), facts);
                    let (legacy_limit, group) = (legacy.take(), group.clone());
                    kills.push(OomKill { victim, killed, context, legacy_limit, group });
                }
                _ => {}
            }
        }
        kills
    })
}

fn victim(tasks: &Tasks, killed: &OomKilled, context: Option<&OomContext>, facts: &Facts) -> Victim {
    let Named { pid, comm } = &killed.victim;
    if tasks.numbers_are_global {
        return if is_ours(tasks, *pid) { Victim::Run(Confidence::Certain) } else { Victim::Other };
    }
    // Inside a PID namespace the kernel's numbers are not ours: name and cgroup must do, and can be shared.
    let same_name = tasks.names.iter().any(|name| name == comm);
    let task_memcg = context.and_then(|context| context.task_memcg.as_deref());
    match task_memcg {
        Some(path) if same_name && ends_in_ours(path, facts) => Victim::Run(Confidence::Likely),
        Some(_) => Victim::Other,
        None if same_name => Victim::Run(Confidence::Possible),
        None => Victim::Other,
    }
}

fn is_ours(tasks: &Tasks, number: i32) -> bool {
    tasks.pid == Some(number) || tasks.thread_ids.contains(&number)
}

/// The kernel shows paths from the hierarchy's root, a container from its own.
fn ends_in_ours(path: &str, facts: &Facts) -> bool {
    let own = facts.memberships.iter().filter_map(|membership| {
        let level = membership.baseline.value()?.levels.first()?;
        Some(level.path.trim_end_matches('/'))
    });
    own.into_iter().any(|own| own.is_empty() || path == own || path.ends_with(own))
}

impl OomKill {
    /// Where the memory ran out, if the lines say so.
    pub fn place(&self, facts: &Facts) -> Option<Place> {
        let host = Place { level: Level::Host, path: None };
        if let Some(context) = &self.context {
            if context.global_oom || context.constraint.as_deref().is_some_and(|c| c != "CONSTRAINT_MEMCG") {
                return Some(host);
            }
            if let (Some(limit), Some(task)) = (&context.oom_memcg, &context.task_memcg) {
                return Some(by_paths(limit, task, facts));
            }
        }
        if let Some((task, limit)) = &self.legacy_limit {
            return Some(by_paths(limit, task, facts));
        }
        (self.killed.scope == Some(OomScope::Host)).then_some(host)
    }

    /// Whether the lines say that the victim was in the cgroup at `path`.
    pub fn is_in(&self, path: &str) -> bool {
        let named = self.context.as_ref().and_then(|context| context.task_memcg.as_deref());
        let named =
            named.or(self.legacy_limit.as_ref().map(|(task, _)| task.as_str())).or(self.group.as_deref());
        named.is_some_and(|memcg| memcg.ends_with(path.trim_end_matches('/')))
    }

    /// PID as the kernel numbers it, and name.
    pub fn named(&self) -> &Named {
        &self.killed.victim
    }

    /// In a few words.
    pub fn words(&self) -> String {
        let Named { pid, comm } = &self.killed.victim;
        let anon =
            self.killed.anon_bytes.map(|bytes| format!(", {} anonymous", Bytes(bytes))).unwrap_or_default();
        let limit = self.context.as_ref().and_then(|context| context.oom_memcg.as_deref());
        let limit = limit.map(|path| format!(" at the limit of {path}")).unwrap_or_default();
        format!("killed process {pid} ({comm}){anon}{limit}")
    }
}

fn by_paths(limit: &str, task: &str, facts: &Facts) -> Place {
    let path = Some(limit.to_owned());
    if limit == task {
        return Place { level: Level::Own, path };
    }
    let levels =
        facts.memberships.iter().filter_map(|membership| membership.baseline.value()).flat_map(|b| &b.levels);
    let visible = levels.into_iter().any(|level| {
        let shown = level.path.trim_end_matches('/');
        limit == shown || (!shown.is_empty() && limit.ends_with(shown))
    });
    Place { level: if visible { Level::Ancestor } else { Level::Hidden }, path }
}

/// A fault of one of the run's threads that the kernel logged, for a death by `signal`.
pub fn fault(facts: &Facts, signal: i32) -> Option<(Cause, String)> {
    let Reading::Value(log) = &facts.kernel_log else { return None };
    let ours = |task: &Named| facts.tasks.numbers_are_global && is_ours(&facts.tasks, task.pid);
    log.events.iter().rev().find_map(|event| match &event.fact {
        KernelFact::Segfault(fault) if signal == SIGSEGV && ours(&fault.task) => {
            let place = fault.mapping.as_ref().map(|mapping| format!(" in {mapping}")).unwrap_or_default();
            let Named { pid, comm } = &fault.task;
            Some((
                Cause::Segfault,
                format!("{comm}[{pid}] segfault at {:#x} ip {:#x}{place}", fault.address, fault.ip),
            ))
        }
        // A general protection fault arrives as SIGSEGV.
        KernelFact::Trap(trap) if ours(&trap.task) => {
            let cause = match signal {
                SIGSEGV => Cause::Segfault,
                SIGBUS => Cause::BusError,
                SIGILL | SIGFPE | SIGTRAP => Cause::Trap,
                _ => return None,
            };
            let Named { pid, comm } = &trap.task;
            Some((cause, format!("{comm}[{pid}] {} ip {:#x}", trap.name, trap.ip)))
        }
        _ => None,
    })
}

/// Why a reading has no value, in words.
pub fn why_missing<T>(reading: &Reading<T>) -> String {
    match reading {
        Reading::Value(_) => "it is readable".to_owned(),
        Reading::Absent => "this host does not have it".to_owned(),
        Reading::Unreadable(obstacle) => obstacle.detail.clone(),
    }
}
