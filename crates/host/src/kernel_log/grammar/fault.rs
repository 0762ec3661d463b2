//! Lines about faults of a process, and about tasks that stand still (`arch/x86/mm/fault.c`, `arch/x86/kernel/traps.c`,
//! `kernel/hung_task.c`, `kernel/watchdog.c`).

use sexton_model::kernel::fact::{KernelFact, Named, Segfault, Stuck, Suppressed, Trap};

use super::scan::{comm, hex, named_in_brackets, number, whole};

pub(super) fn fact(text: &str) -> Option<KernelFact> {
    segfault(text)
        .or_else(|| trap(text))
        .or_else(|| hung_task(text))
        .or_else(|| soft_lockup(text))
        .or_else(|| suppressed(text))
}

/// `hog[24354]: segfault at 10 ip 000055c5… sp 00007ffe… error 6 in hog[118a,564a…+1000] likely on CPU 1 (core 1, …)`
fn segfault(text: &str) -> Option<KernelFact> {
    let (task, (address, ip, rest)) = named_in_brackets(text, |rest| {
        let (address, rest) = hex(rest.strip_prefix(": segfault at ")?)?;
        let (ip, rest) = hex(rest.strip_prefix(" ip ")?).filter(is_followed)?;
        Some((address, ip, rest))
    })?;
    let stack = rest.strip_prefix(" sp ").and_then(hex).filter(is_followed);
    let error = stack.and_then(|(_, rest)| hex(rest.strip_prefix(" error ")?));
    Some(KernelFact::Segfault(Segfault {
        task,
        address,
        ip,
        sp: stack.map(|(sp, _)| sp),
        error: error.map(|(error, _)| error),
        mapping: error.and_then(|(_, rest)| mapping(rest)),
    }))
}

/// Whether something stands behind a number. Where the line is cut off, digits may be missing.
fn is_followed((_, rest): &(u64, &str)) -> bool {
    !rest.is_empty()
}

/// ` in hog[118a,564a6b0c1000+1000]`. The name of a file may hold anything; the brackets are the last ones.
fn mapping(rest: &str) -> Option<String> {
    let rest = rest.strip_prefix(" in ")?;
    let rest = rest.rsplit_once(" likely on CPU ").map_or(rest, |(mapping, _)| mapping);
    rest.ends_with(']').then(|| rest.to_owned())
}

/// `traps: hog[24355] trap divide error ip:55… sp:7f… error:0 in hog[…]`; a general protection fault has no `trap`.
fn trap(text: &str) -> Option<KernelFact> {
    let (task, trap) = named_in_brackets(text.strip_prefix("traps: ")?, |rest| {
        let (name, rest) = rest.strip_prefix(' ')?.split_once(" ip:")?;
        let (ip, rest) = hex(rest)?;
        let (sp, rest) = hex(rest.strip_prefix(" sp:")?)?;
        let (error, rest) = hex(rest.strip_prefix(" error:")?)?;
        let name = name.strip_prefix("trap ").unwrap_or(name);
        let is_name =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, ' ' | '-' | '_' | '#');
        (!name.is_empty() && name.chars().all(is_name)).then_some((name, ip, sp, error, rest))
    })?;
    let (name, ip, sp, error, rest) = trap;
    Some(KernelFact::Trap(Trap { task, name: name.to_owned(), ip, sp, error, mapping: mapping(rest) }))
}

/// `INFO: task prover:1234 blocked for more than 120 seconds.`, of Linux ≥ 6.18 also `blocked in I/O wait for more than`.
fn hung_task(text: &str) -> Option<KernelFact> {
    let rest = text.strip_prefix("INFO: task ")?;
    let (task, rest) = rest
        .split_once(" blocked for more than ")
        .or_else(|| rest.split_once(" blocked in I/O wait for more than "))?;
    let (seconds, rest) = number(rest)?;
    rest.starts_with(" seconds").then_some(())?;
    Some(KernelFact::HungTask(Stuck { task: named_with_colon(task)?, seconds }))
}

/// `watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [prover:1234]`
fn soft_lockup(text: &str) -> Option<KernelFact> {
    let text = text.strip_prefix("watchdog: ").unwrap_or(text);
    let (_, rest) = number::<u32>(text.strip_prefix("BUG: soft lockup - CPU#")?)?;
    let (seconds, rest) = number(rest.strip_prefix(" stuck for ")?)?;
    let task = rest.strip_prefix("s! [")?.strip_suffix(']')?;
    Some(KernelFact::SoftLockup(Stuck { task: named_with_colon(task)?, seconds }))
}

/// `NAME:N`, to the end.
fn named_with_colon(text: &str) -> Option<Named> {
    let (name, pid) = text.rsplit_once(':')?;
    Some(Named { pid: whole(pid)?, comm: comm(name)? })
}

/// `show_signal_msg: 8 callbacks suppressed`
fn suppressed(text: &str) -> Option<KernelFact> {
    let (function, count) = text.strip_suffix(" callbacks suppressed")?.split_once(": ")?;
    let is_identifier = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let count = whole(count)?;
    (!function.is_empty() && function.chars().all(is_identifier))
        .then(|| KernelFact::Suppressed(Suppressed { function: function.to_owned(), count }))
}
