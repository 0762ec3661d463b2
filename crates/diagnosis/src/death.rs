//! Why a run ended.
//!
//! First cut: what the wait status and our own actions prove. Anything beyond that is *unknown* here, not guessed: a
//! bare SIGKILL is `killed_unknown`, never an out-of-memory kill.

use sexton_model::Timestamp;
use sexton_model::verdict::{Answer, Cause, Confidence, Evidence, Source, Verdict};
use sexton_model::wait::{WaitStatus, signal_name};

/// What is known about an ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// How it ended.
    pub wait: WaitStatus,
    /// Why the program never ran, where that is so.
    pub start_error: Option<String>,
    /// Signals that the supervisor itself sent to this run, oldest first.
    pub own_signals: Vec<OwnSignal>,
    /// When the wait status was taken.
    pub at: Timestamp,
}

/// A signal that the supervisor sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSignal {
    /// Its number.
    pub signal: i32,
    /// When.
    pub at: Timestamp,
}

const SIGILL: i32 = 4;
const SIGTRAP: i32 = 5;
const SIGABRT: i32 = 6;
const SIGBUS: i32 = 7;
const SIGFPE: i32 = 8;
const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;
const SIGSYS: i32 = 31;

/// The verdict, and the evidence it rests on.
pub fn judge(facts: &Facts) -> (Verdict, Vec<Evidence>) {
    let (cause, confidence, summary) = conclude(facts);
    let evidence = |source, answer, detail: String, at| Evidence { source, answer, detail, at };
    let unknown = facts.wait == WaitStatus::UNKNOWN;
    let mut seen = vec![evidence(
        Source::WaitStatus,
        if unknown { Answer::Unreadable } else { Answer::Hit },
        if unknown { "nobody who could wait for it was there".to_owned() } else { facts.wait.to_string() },
        facts.at,
    )];
    if facts.own_signals.is_empty() {
        seen.push(evidence(
            Source::OwnAction,
            Answer::Empty,
            "the supervisor sent no signal".to_owned(),
            facts.at,
        ));
    }
    for sent in &facts.own_signals {
        let detail = format!("the supervisor sent {}", signal_name(sent.signal));
        seen.push(evidence(Source::OwnAction, Answer::Hit, detail, sent.at));
    }
    (Verdict { cause, level: None, confidence, summary }, seen)
}

fn conclude(facts: &Facts) -> (Cause, Confidence, String) {
    use Confidence::{Certain, Likely, Unknown};
    let wait = facts.wait;
    if let Some(error) = &facts.start_error {
        return (Cause::StartFailed, Certain, format!("the program never ran: {error}"));
    }
    if wait == WaitStatus::UNKNOWN {
        return (Cause::Unknown, Unknown, "it ended and nobody could learn how".to_owned());
    }
    let asked = facts.own_signals.iter().any(|sent| sent.signal != SIGKILL);
    let killed = facts.own_signals.iter().any(|sent| sent.signal == SIGKILL);
    // The kernel reports the first fatal signal: a drain that was asked for by SIGTERM and hastened by SIGKILL can
    // show either.
    if wait.signal == Some(SIGKILL) && killed {
        let asked_first = if asked { " after it had not ended in time" } else { "" };
        return (Cause::KilledBySupervisor, Certain, format!("the supervisor killed it{asked_first}"));
    }
    let own = wait.signal.is_some_and(|signal| facts.own_signals.iter().any(|sent| sent.signal == signal));
    if own || (asked && wait.code.is_some()) {
        return (
            Cause::StoppedBySupervisor,
            Certain,
            format!("the supervisor asked it to stop and it {wait}"),
        );
    }
    match (wait.code, wait.signal) {
        (Some(0), _) => (Cause::CleanExit, Certain, "it ended by itself with exit code 0".to_owned()),
        (Some(code), _) => (Cause::ErrorExit, Certain, format!("it ended by itself with exit code {code}")),
        (None, Some(SIGKILL)) => {
            (Cause::KilledUnknown, Unknown, "SIGKILL ended it, and nothing says who sent that".to_owned())
        }
        (None, Some(signal)) => {
            let (cause, what) = match signal {
                SIGSEGV => (Cause::Segfault, "an invalid memory access"),
                SIGBUS => (Cause::BusError, "access to memory that is not there any more"),
                SIGABRT => (Cause::Abort, "its own call of abort"),
                SIGILL | SIGFPE | SIGTRAP | SIGSYS => (Cause::Trap, "a processor trap"),
                _ => (Cause::Terminated, "a request from outside"),
            };
            // Any process may send any of these by kill(2); the wait status does not tell.
            (cause, Likely, format!("{wait}, which means {what} unless somebody sent the signal"))
        }
        (None, None) => (Cause::Unknown, Unknown, "it ended and nobody could learn how".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(wait: WaitStatus, own: &[i32]) -> (Cause, Confidence) {
        let at = Timestamp::UNIX_EPOCH;
        let own_signals = own.iter().map(|signal| OwnSignal { signal: *signal, at }).collect();
        let (verdict, evidence) = judge(&Facts { wait, start_error: None, own_signals, at });
        assert!(!evidence.is_empty() && !verdict.summary.is_empty());
        (verdict.cause, verdict.confidence)
    }

    #[test]
    fn a_bare_137_or_sigkill_is_never_called_out_of_memory() {
        assert_eq!(cause(WaitStatus::exited(137), &[]), (Cause::ErrorExit, Confidence::Certain));
        assert_eq!(cause(WaitStatus::killed(9, false), &[]), (Cause::KilledUnknown, Confidence::Unknown));
    }

    #[test]
    fn our_own_kills_are_known() {
        assert_eq!(cause(WaitStatus::killed(9, false), &[15, 9]).0, Cause::KilledBySupervisor);
        assert_eq!(cause(WaitStatus::killed(15, false), &[15, 9]).0, Cause::StoppedBySupervisor);
        assert_eq!(cause(WaitStatus::exited(0), &[15]).0, Cause::StoppedBySupervisor);
        assert_eq!(cause(WaitStatus::exited(1), &[15]).0, Cause::StoppedBySupervisor);
        // Killed by someone else while we waited for it to stop.
        assert_eq!(cause(WaitStatus::killed(9, false), &[15]).0, Cause::KilledUnknown);
        // It crashed while it was stopping.
        assert_eq!(cause(WaitStatus::killed(11, false), &[15]).0, Cause::Segfault);
    }

    #[test]
    fn an_unknown_status_is_unknown_whatever_we_sent() {
        assert_eq!(cause(WaitStatus::UNKNOWN, &[15]), (Cause::Unknown, Confidence::Unknown));
        assert_eq!(cause(WaitStatus::UNKNOWN, &[]), (Cause::Unknown, Confidence::Unknown));
    }

    #[test]
    fn signals_have_their_cause() {
        for (signal, expected) in [
            (11, Cause::Segfault),
            (6, Cause::Abort),
            (7, Cause::BusError),
            (8, Cause::Trap),
            (4, Cause::Trap),
            (15, Cause::Terminated),
            (1, Cause::Terminated),
        ] {
            assert_eq!(
                cause(WaitStatus::killed(signal, false), &[]),
                (expected, Confidence::Likely),
                "{signal}"
            );
        }
    }

    #[test]
    fn a_program_that_never_ran_is_a_failed_start_and_not_exit_127() {
        let facts = Facts {
            wait: WaitStatus::exited(127),
            start_error: Some("cannot execute: No such file or directory".to_owned()),
            own_signals: vec![],
            at: Timestamp::UNIX_EPOCH,
        };
        assert_eq!(judge(&facts).0.cause, Cause::StartFailed);
    }
}
