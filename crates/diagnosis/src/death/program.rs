//! What the program did to itself: panics, aborts, traps, exit codes.

use sexton_model::reading::Reading;
use sexton_model::verdict::{Cause, Confidence};
use sexton_model::wait::{WaitStatus, signal_name};

use super::facts::Facts;
use super::kernel_lines;
use super::signals::{
    SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};

/// Exit code of a Rust program whose `main` thread panicked.
const RUST_PANIC_CODE: i32 = 101;

/// The line of the output with which a Rust program announces a panic: the last one, since earlier ones were survived.
pub fn panic_line(output: &str) -> Option<&str> {
    output.lines().rev().find(|line| line.starts_with("thread '") && line.contains(" panicked at "))
}

/// The line with which an allocator gives up before it aborts.
pub fn allocation_failure(output: &str) -> Option<&str> {
    const MARKS: [&str; 3] = ["memory allocation of ", "std::bad_alloc", "out of memory"];
    output.lines().rev().take(50).find(|line| MARKS.iter().any(|mark| line.contains(mark)))
}

fn output(facts: &Facts) -> &str {
    match &facts.output {
        Reading::Value(text) => text,
        Reading::Absent | Reading::Unreadable(_) => "",
    }
}

/// What others mean by an exit code: sysexits.h, timeout(1), the shells.
fn hint(code: i32) -> String {
    match code {
        78 => ", the usual one for a mistake in its configuration (EX_CONFIG)".to_owned(),
        124 => ", which is what timeout(1) makes of a command that took too long".to_owned(),
        126 => ", which is what a shell makes of a command that it cannot execute".to_owned(),
        127 => ", which is what a shell makes of a command that it does not find".to_owned(),
        129..=159 => {
            let signal = code - 128;
            format!(
                ", which is what a shell makes of a child that {} ({signal}) ended: the status of that child is not on \
                 record here",
                signal_name(signal)
            )
        }
        _ => String::new(),
    }
}

/// The verdict on a program that exited.
pub fn exited(facts: &Facts, code: i32) -> (Cause, Confidence, String) {
    use Confidence::Certain;
    match (code, panic_line(output(facts))) {
        (0, _) => (Cause::CleanExit, Certain, "it ended by itself with exit code 0".to_owned()),
        (RUST_PANIC_CODE, Some(line)) => (Cause::Panic, Certain, format!("a Rust panic ended it: {line}")),
        (code, _) => {
            (Cause::ErrorExit, Certain, format!("it ended by itself with exit code {code}{}", hint(code)))
        }
    }
}

/// The verdict on a program that a signal other than SIGKILL ended.
pub fn signalled(facts: &Facts, signal: i32) -> (Cause, Confidence, String) {
    use Confidence::{Certain, Likely};
    let wait: WaitStatus = facts.wait;
    if let Some((cause, words)) = kernel_lines::fault(facts, signal) {
        return (cause, Certain, format!("{wait}, and the kernel saw it happen: {words}"));
    }
    if signal == SIGABRT {
        if let Some(line) = panic_line(output(facts)) {
            return (Cause::Panic, Certain, format!("a Rust panic aborted it: {line}"));
        }
        if let Some(line) = allocation_failure(output(facts)) {
            return (Cause::Abort, Likely, format!("it aborted itself when it got no memory: {line}"));
        }
    }
    let (cause, what) = match signal {
        SIGSEGV => (Cause::Segfault, "an invalid memory access"),
        SIGBUS => (Cause::BusError, "access to memory that is not there any more"),
        SIGABRT => (Cause::Abort, "its own call of abort"),
        SIGILL | SIGFPE | SIGTRAP | SIGSYS => (Cause::Trap, "a processor trap"),
        SIGPIPE => (Cause::Terminated, "a write to a pipe or socket that nobody reads any more"),
        SIGXFSZ => (Cause::Terminated, "a file that grew beyond its limit (RLIMIT_FSIZE)"),
        SIGXCPU => (Cause::Terminated, "more processor time than it may use (RLIMIT_CPU)"),
        SIGALRM | SIGVTALRM | SIGPROF => (Cause::Terminated, "a timer of its own that it does not handle"),
        _ => return (Cause::Terminated, Likely, format!("{wait}: somebody asked it to end")),
    };
    // Any process may send any of these by kill(2); the wait status does not tell.
    (cause, Likely, format!("{wait}: that is {what}, unless somebody sent the signal"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_panic_counts_and_a_mention_of_one_does_not() {
        let output = "thread 'worker' panicked at src/a.rs:1:1:\nsurvived\nlog: thread panicked at noon\n\
                      thread 'main' panicked at src/main.rs:2:5:\nindex out of bounds\n";
        assert_eq!(panic_line(output), Some("thread 'main' panicked at src/main.rs:2:5:"));
        assert_eq!(panic_line("log: the thread 'x' panicked at noon"), None);
    }
}
