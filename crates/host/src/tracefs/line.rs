//! Lines of `trace` and `trace_pipe` (kernel `Documentation/trace/ftrace.rst`). Pure.
//!
//! ```text
//!             bash-812     [001] d..1.  2195.357893: signal_generate: sig=9 errno=0 code=0 comm=prover pid=99 grp=1 res=0
//!           prover-99      [000] .....  2196.120011: mark_victim: pid=99 comm=prover total-vm:…
//! ```
//!
//! Both names may hold anything, newlines too (which then break the line), but are at most 15 bytes: too short for the
//! fixed texts here.

use sexton_model::kernel::trace::{OomVictim, SignalOrigin, SignalOutcome, SignalSent, Trace, TraceEvent};

/// Reads a piece of a trace. What is no event that we know is left out.
pub fn parse(text: &[u8]) -> Trace {
    let text = String::from_utf8_lossy(text);
    let mut trace = Trace::default();
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        trace.lost = trace.lost.saturating_add(lost(line).unwrap_or(0));
        let event = event(line).or_else(|| {
            // A name with a newline in it: the rest of the event stands in the next line.
            let next = lines.next_if(|next| line.contains(SIGNAL) && !next.contains(SIGNAL))?;
            event(&format!("{line}\n{next}"))
        });
        trace.events.extend(event);
    }
    trace
}

const SIGNAL: &str = ": signal_generate: sig=";
const VICTIM: &str = ": mark_victim: pid=";

/// `CPU:1 [LOST 5 EVENTS]`
fn lost(line: &str) -> Option<u64> {
    line.strip_prefix("CPU:")?.split_once(" [LOST ")?.1.strip_suffix(" EVENTS]")?.parse().ok()
}

fn event(line: &str) -> Option<TraceEvent> {
    if let Some((head, tail)) = line.split_once(SIGNAL) {
        return signal(&head_of(head)?, tail).map(TraceEvent::Signal);
    }
    let (head, tail) = line.split_once(VICTIM)?;
    victim(head_of(head)?.at_us, tail).map(TraceEvent::OomVictim)
}

/// What stands before the name of the event.
struct Head {
    comm: Option<String>,
    pid: i32,
    at_us: u64,
}

/// `            bash-812     [001] d..1.  2195.357893`, with `record-tgid` a `(    812)` before the CPU. Read from the end:
/// the name at the front may hold spaces and dashes.
fn head_of(head: &str) -> Option<Head> {
    let (head, time) = head.rsplit_once(' ')?;
    let (seconds, micros) = time.split_once('.')?;
    let micros: u64 = Some(micros).filter(|digits| digits.len() == 6)?.parse().ok()?;
    let at_us = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros)?;
    let (task, _cpu_and_flags) = head.rsplit_once(" [")?;
    let task = match task.trim_end().strip_suffix(')').and_then(|task| task.rsplit_once(" (")) {
        Some((task, _tgid)) => task,
        None => task,
    };
    let (comm, pid) = task.trim_end().rsplit_once('-')?;
    // The name is padded to 16 on the left; a name that itself begins with a space loses it.
    let comm = comm.trim_start();
    Some(Head { comm: (comm != "<...>").then(|| comm.to_owned()), pid: pid.parse().ok()?, at_us })
}

/// `9 errno=0 code=0 comm=prover pid=99 grp=1 res=0`: numbers from the end, where no name stands.
fn signal(head: &Head, tail: &str) -> Option<SignalSent> {
    let (fixed, named) = tail.split_once(" comm=")?;
    let (signal, rest) = fixed.split_once(" errno=")?;
    let (_, code) = rest.split_once(" code=")?;
    let (rest, result) = named.rsplit_once(" res=")?;
    let (rest, group) = rest.rsplit_once(" grp=")?;
    let (comm, pid) = rest.rsplit_once(" pid=")?;
    Some(SignalSent {
        at_us: head.at_us,
        sender_pid: head.pid,
        sender_comm: head.comm.clone(),
        signal: signal.parse().ok()?,
        origin: SignalOrigin::from(code.parse::<i32>().ok()?),
        pid: pid.parse().ok()?,
        comm: comm.to_owned(),
        group: group.parse::<u32>().ok()? != 0,
        outcome: SignalOutcome::from(result.parse::<u32>().ok()?),
    })
}

/// `99`, since Linux 6.10 `99 comm=prover total-vm=1kB … uid=0 pgtables=1kB oom_score_adj=0`.
fn victim(at_us: u64, tail: &str) -> Option<OomVictim> {
    let Some((pid, rest)) = tail.split_once(" comm=") else {
        return Some(OomVictim { at_us, pid: tail.trim_end().parse().ok()?, comm: None, uid: None });
    };
    let named = rest.rsplit_once(" total-vm=");
    let uid = || named?.1.split_once(" uid=")?.1.split_once(' ')?.0.parse().ok();
    let comm = named.map(|(comm, _)| comm.to_owned());
    Some(OomVictim { at_us, pid: pid.parse().ok()?, comm, uid: uid() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signals(text: &str) -> Vec<SignalSent> {
        let only_signals = |event| match event {
            TraceEvent::Signal(signal) => Some(signal),
            TraceEvent::OomVictim(_) => None,
        };
        parse(text.as_bytes()).events.into_iter().filter_map(only_signals).collect()
    }

    const KILL: &str = "            bash-812     [001] d..1.  2195.357893: signal_generate: sig=9 errno=0 code=0 comm=prover pid=99 grp=1 res=0\n";

    #[test]
    fn a_kill_names_its_sender_and_its_target() {
        let [kill] = &signals(KILL)[..] else { panic!() };
        assert_eq!((kill.sender_pid, kill.sender_comm.as_deref()), (812, Some("bash")));
        assert_eq!((kill.pid, kill.comm.as_str(), kill.signal), (99, "prover", 9));
        assert_eq!((kill.at_us, kill.origin, kill.group), (2_195_357_893, SignalOrigin::Kill, true));
        assert_eq!(kill.outcome, SignalOutcome::Delivered);
    }

    #[test]
    fn the_origin_tells_the_kernel_from_a_process() {
        for (code, origin) in [
            (128, SignalOrigin::Kernel),
            (0, SignalOrigin::Kill),
            (-6, SignalOrigin::Tkill),
            (-1, SignalOrigin::Queue),
            (5, SignalOrigin::Code(5)),
        ] {
            assert_eq!(signals(&KILL.replace("code=0", &format!("code={code}")))[0].origin, origin);
        }
    }

    #[test]
    fn names_of_any_kind() {
        let tgid = KILL.replace("[001]", "(    812) [001]");
        assert_eq!(signals(&tgid)[0].sender_pid, 812);
        let forgotten = KILL.replace("            bash-", "           <...>-");
        assert_eq!(signals(&forgotten)[0].sender_comm, None);
        for name in ["a b-7 [1] c", "a-1", " pid=1 grp=1 re", "x: y", "comm=z"] {
            let sent = &signals(&KILL.replace("comm=prover", &format!("comm={name}")))[0];
            assert_eq!((sent.pid, sent.comm.as_str(), sent.sender_pid), (99, name, 812));
            let sent = &signals(&KILL.replace("            bash-", &format!("{name:>16}-")))[0];
            assert_eq!((sent.pid, sent.sender_comm.as_deref()), (99, Some(name.trim_start())));
            assert_eq!(sent.sender_pid, 812);
        }
        let broken = format!("{}{KILL}", KILL.replace("comm=prover", "comm=a\nb"));
        let sent = signals(&broken);
        assert_eq!((sent.len(), sent[0].comm.as_str(), sent[0].pid), (2, "a\nb", 99));
    }

    #[test]
    fn cut_lines_and_foreign_events_give_nothing() {
        for end in 0..KILL.len() - " res=0\n".len() {
            assert!(parse(&KILL.as_bytes()[..end]).events.is_empty(), "{}", &KILL[..end]);
        }
        assert!(
            parse(b"# tracer: nop\n#\n x-1 [000] ..... 1.000000: sched_switch: prev_comm=a\n")
                .events
                .is_empty()
        );
    }

    #[test]
    fn victims_of_old_and_new_kernels() {
        let head = "          prover-99      [000] .....  2196.120011: mark_victim: ";
        let new = format!(
            "{head}pid=99 comm=a total-vm=1 b total-vm=8kB anon-rss=4kB file-rss:0kB shmem-rss:0kB uid=5 pgtables=1kB oom_score_adj=0\nCPU:1 [LOST 5 EVENTS]\n"
        );
        let trace = parse(new.as_bytes());
        let victim = OomVictim {
            at_us: 2_196_120_011,
            pid: 99,
            comm: Some("a total-vm=1 b".to_owned()),
            uid: Some(5),
        };
        assert_eq!((trace.events, trace.lost), (vec![TraceEvent::OomVictim(victim.clone())], 5));
        let old = OomVictim { comm: None, uid: None, ..victim };
        assert_eq!(parse(format!("{head}pid=99\n").as_bytes()).events, [TraceEvent::OomVictim(old)]);
    }
}
