//! Lines of the OOM killer (`mm/oom_kill.c`, `mm/memcontrol.c`, `mm/memcontrol-v1.c`).
//!
//! Names of tasks and of cgroups are chosen by others and may look like any part of these lines. So numbers are taken
//! from the end at which no name stands, and a field beside a name that makes it ambiguous is left out.

use sexton_model::kernel::fact::{
    KernelFact, MemcgUsage, Named, OomChosen, OomContext, OomGroup, OomInvoked, OomKilled, OomLimit, OomScope,
};

use super::scan::{comm, kib, number, signed, whole};

pub(super) fn fact(text: &str) -> Option<KernelFact> {
    killed(text)
        .or_else(|| chosen(text))
        .or_else(|| context(text))
        .or_else(|| reaper(text))
        .or_else(|| group(text))
        .or_else(|| limit(text))
        .or_else(|| usage(text))
        .or_else(|| stats(text))
        .or_else(|| invoked(text))
}

/// `python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0`
fn invoked(text: &str) -> Option<KernelFact> {
    let (name, rest) = text.split_once(" invoked oom-killer: gfp_mask=")?;
    let oom_score_adj =
        rest.split_once("oom_score_adj=").and_then(|(_, rest)| signed(rest)).map(|(adj, _)| adj);
    Some(KernelFact::OomInvoked(OomInvoked { comm: comm(name)?, oom_score_adj }))
}

/// What stands before `Killed process` and `Kill process`. `Some(None)`: nothing does, as in old kernels.
fn scope(head: &str) -> Option<Option<OomScope>> {
    match head {
        "" => Some(None),
        "Memory cgroup out of memory: " => Some(Some(OomScope::Memcg)),
        "Out of memory: " | "Out of memory (oom_kill_allocating_task): " => Some(Some(OomScope::Host)),
        _ => None,
    }
}

/// `Memory cgroup out of memory: Killed process 86 (dd) total-vm:207060kB, anon-rss:65352kB, file-rss:4kB,
/// shmem-rss:1580kB, UID:0 pgtables:168kB oom_score_adj:0`, and its older forms, one of which has `, UID 27,` after the
/// name (Red Hat's 3.10).
fn killed(text: &str) -> Option<KernelFact> {
    let (head, rest) = text.split_once("Killed process ")?;
    let scope = scope(head)?;
    let (pid, rest) = number::<i32>(rest)?;
    let (head, sizes) = rest.strip_prefix(" (")?.rsplit_once(" total-vm:")?;
    let (name, old_uid) = match head.strip_suffix(')') {
        Some(name) => (name, None),
        None => {
            let (name, uid) = head.strip_suffix(',')?.rsplit_once("), UID ")?;
            (name, Some(whole(uid)?))
        }
    };
    let new_uid = || {
        let (uid, rest) = number(sizes.split_once(" UID:")?.1)?;
        // Cut off behind a digit, it could be another one.
        rest.starts_with(' ').then_some(uid)
    };
    let adj = || signed(sizes.split_once(" oom_score_adj:")?.1).map(|(adj, _)| adj);
    Some(KernelFact::OomKilled(OomKilled {
        victim: Named { pid, comm: comm(name)? },
        scope,
        uid: old_uid.or_else(new_uid),
        oom_score_adj: adj(),
        total_vm_bytes: kib(sizes, ""),
        anon_bytes: kib(sizes, " anon-rss:"),
        file_bytes: kib(sizes, " file-rss:"),
        shmem_bytes: kib(sizes, " shmem-rss:"),
        pgtables_bytes: kib(sizes, " pgtables:"),
    }))
}

/// `Memory cgroup out of memory: Kill process 4015 (python) score 1923 or sacrifice child`
fn chosen(text: &str) -> Option<KernelFact> {
    let (head, rest) = text.split_once("Kill process ")?;
    let scope = scope(head)?;
    let (pid, rest) = number::<i32>(rest)?;
    let (name, score) = rest.strip_prefix(" (")?.rsplit_once(") score ")?;
    let score = number(score).filter(|(_, rest)| rest.starts_with(' ')).map(|(score, _)| score);
    Some(KernelFact::OomChosen(OomChosen { chosen: Named { pid, comm: comm(name)? }, scope, score }))
}

/// Keys of the context line in the order in which they are printed.
const CPUSET: &str = ",cpuset=";
const MEMS: &str = ",mems_allowed=";
const OOM_MEMCG: &str = ",oom_memcg=";
const GLOBAL: &str = ",global_oom";
const TASK_MEMCG: &str = ",task_memcg=";
const TASK: &str = ",task=";
const PID: &str = ",pid=";
const UID: &str = ",uid=";

/// `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/p,task_memcg=/p/c,task=hog,
/// pid=22550,uid=0`. It is printed in pieces (`pr_cont()`), which become records of their own when another CPU prints
/// in between or the line grows too long.
fn context(text: &str) -> Option<KernelFact> {
    let head = "oom-kill:constraint=";
    let is_piece = || [CPUSET, OOM_MEMCG, GLOBAL, TASK_MEMCG, TASK].iter().any(|key| text.starts_with(key));
    if !text.starts_with(head) && !is_piece() {
        return None;
    }
    let mut context = OomContext { constraint: constraint(text, head), ..OomContext::default() };
    let names = match victim(text) {
        Some((names, pid, uid)) => {
            (context.pid, context.uid) = (Some(pid), Some(uid));
            context.comm = after(names, TASK).and_then(comm);
            names
        }
        None => text,
    };
    context.cpuset = between(names, CPUSET, MEMS);
    context.mems_allowed = mems(names);
    let is_memcg = is_memcg(context.constraint.as_deref(), names);
    if is_memcg == Some(true) {
        context.oom_memcg = between(names, OOM_MEMCG, TASK_MEMCG).filter(|path| path.starts_with('/'));
    }
    context.global_oom = is_memcg == Some(false);
    context.task_memcg = between(names, TASK_MEMCG, TASK).filter(|path| path.starts_with('/'));
    let says_nothing = context == OomContext::default();
    (!says_nothing).then_some(KernelFact::OomContext(context))
}

fn constraint(text: &str, head: &str) -> Option<String> {
    let (name, _) = text.strip_prefix(head)?.split_once(',')?;
    Some(name.to_owned())
}

/// Whether the limit of a cgroup was met, or the host's. The constraint stands before all names; without it, both keys
/// in one piece contradict each other.
fn is_memcg(constraint: Option<&str>, names: &str) -> Option<bool> {
    let (memcg, global) = (names.contains(OOM_MEMCG), names.contains(GLOBAL));
    match constraint {
        Some("CONSTRAINT_MEMCG") => memcg.then_some(true),
        Some(_) => global.then_some(false),
        None => (memcg != global).then_some(memcg),
    }
}

/// The end of the line, which no name can imitate: `…,pid=N,uid=N`.
fn victim(text: &str) -> Option<(&str, i32, u32)> {
    let (rest, uid) = text.rsplit_once(UID)?;
    let (names, pid) = rest.rsplit_once(PID)?;
    names.contains(TASK).then_some((names, whole(pid)?, whole(uid)?))
}

fn once(text: &str, key: &str) -> bool {
    text.matches(key).count() == 1
}

/// What follows `key`, unless it is there twice: one of the two is part of a name then, and nobody can say which.
fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    once(text, key).then(|| text.split_once(key)).flatten().map(|(_, rest)| rest)
}

/// What stands between `key` and `end`.
fn between(text: &str, key: &str, end: &str) -> Option<String> {
    let rest = after(text, key)?;
    once(text, end).then(|| rest.split_once(end)).flatten().map(|(value, _)| value.to_owned())
}

/// `0-1,3` of `,mems_allowed=0-1,3,oom_memcg=…`: it holds commas itself.
fn mems(names: &str) -> Option<String> {
    let rest = after(names, MEMS)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, ',' | '-'))?;
    rest.get(..end)?.strip_suffix(',').filter(|mems| !mems.is_empty()).map(str::to_owned)
}

/// `oom_reaper: reaped process 86 (dd), now anon-rss:0kB, …` and `oom_reaper: unable to reap pid:86 (dd)`
fn reaper(text: &str) -> Option<KernelFact> {
    let text = text.strip_prefix("oom_reaper: ")?;
    if let Some(rest) = text.strip_prefix("reaped process ") {
        let (pid, rest) = number(rest)?;
        let (name, _) = rest.strip_prefix(" (")?.rsplit_once("), now anon-rss:")?;
        return Some(KernelFact::OomReaped(Named { pid, comm: comm(name)? }));
    }
    let (pid, rest) = number(text.strip_prefix("unable to reap pid:")?)?;
    let name = rest.strip_prefix(" (")?.strip_suffix(')')?;
    Some(KernelFact::OomUnreapable(Named { pid, comm: comm(name)? }))
}

/// `Tasks in /x are going to be killed due to memory.oom.group set`
fn group(text: &str) -> Option<KernelFact> {
    let memcg = text
        .strip_prefix("Tasks in ")?
        .strip_suffix(" are going to be killed due to memory.oom.group set")?;
    Some(KernelFact::OomGroup(OomGroup { memcg: memcg.to_owned() }))
}

/// `Task in /x killed as a result of limit of /y`
fn limit(text: &str) -> Option<KernelFact> {
    let rest = text.strip_prefix("Task in ")?;
    let middle = " killed as a result of limit of ";
    let (task, oom) = once(rest, middle).then(|| rest.split_once(middle)).flatten()?;
    let are_paths = task.starts_with('/') && oom.starts_with('/');
    are_paths
        .then(|| KernelFact::OomLimit(OomLimit { task_memcg: task.to_owned(), oom_memcg: oom.to_owned() }))
}

/// `memory: usage 65536kB, limit 65536kB, failcnt 0`
fn usage(text: &str) -> Option<KernelFact> {
    let (counter, rest) = text.split_once(": usage ")?;
    if !["memory", "memory+swap", "swap", "kmem"].contains(&counter) {
        return None;
    }
    let (usage, rest) = number::<u64>(rest)?;
    let (limit, rest) = number::<u64>(rest.strip_prefix("kB, limit ")?)?;
    let failcnt = whole(rest.strip_prefix("kB, failcnt ")?)?;
    Some(KernelFact::MemcgUsage(MemcgUsage {
        counter: counter.to_owned(),
        usage_bytes: usage.saturating_mul(1024),
        limit_bytes: limit.saturating_mul(1024),
        failcnt,
    }))
}

/// `Memory cgroup stats for /x:`; until Linux 5.1 the statistics follow in the same line: `: cache:0KB rss:…`
fn stats(text: &str) -> Option<KernelFact> {
    let rest = text.strip_prefix("Memory cgroup stats for ")?;
    let memcg = rest.strip_suffix(':').or_else(|| rest.split_once(": cache:").map(|(memcg, _)| memcg))?;
    memcg.starts_with('/').then(|| KernelFact::MemcgStats(OomGroup { memcg: memcg.to_owned() }))
}
