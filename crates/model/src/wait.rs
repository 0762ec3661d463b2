//! How a process ended, exactly as `wait(2)` tells it.

use serde::{Deserialize, Serialize};

/// The kind of an ending. "128 + n" exists only in shells: a process that *exited* with 137 and one that was *killed*
/// by signal 9 are different here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// `CLD_EXITED`: it called `exit` or returned from `main`.
    Exited,
    /// `CLD_KILLED`: a signal ended it and no core was dumped.
    Killed,
    /// `CLD_DUMPED`: a signal ended it and the kernel dumped core.
    Dumped,
    /// Nobody who could have known was there. Never to be read as 0.
    Unknown,
}

/// A wait status. Exactly one of `code` and `signal` is present, except for [`WaitKind::Unknown`], which has neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WaitStatus {
    /// How it ended.
    pub kind: WaitKind,
    /// Exit code 0–255, for [`WaitKind::Exited`].
    pub code: Option<i32>,
    /// Signal number, for [`WaitKind::Killed`] and [`WaitKind::Dumped`].
    pub signal: Option<i32>,
    /// Whether a core was dumped.
    pub core: bool,
}

impl WaitStatus {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { kind: WaitKind::Unknown, code: None, signal: None, core: false };

    /// It exited with `code` (0–255).
    pub const fn exited(code: i32) -> Self {
        Self { kind: WaitKind::Exited, code: Some(code), signal: None, core: false }
    }

    /// `signal` ended it.
    pub const fn killed(signal: i32, core: bool) -> Self {
        let kind = if core { WaitKind::Dumped } else { WaitKind::Killed };
        Self { kind, code: None, signal: Some(signal), core }
    }

    /// From a raw status as `wait4(2)` fills it in, and as `PIDFD_GET_INFO` and `/proc/PID/stat` field 52 show it.
    pub const fn from_raw(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::exited((status >> 8) & 0xff),
            signal => Self::killed(signal, status & 0x80 != 0),
        }
    }

    /// The code that a program which stands in for this one ends with: its own, or 128 + n for signals.
    /// `None` where nothing is known.
    pub fn shell_code(&self) -> Option<u8> {
        let code = match (self.code, self.signal) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => return None,
        };
        u8::try_from(code).ok()
    }
}

/// `exited with 7`, `killed by SIGKILL (9)`, `killed by SIGSEGV (11), core dumped`, `ended, status unknown`.
impl std::fmt::Display for WaitStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with {code}"),
            (None, Some(signal)) => {
                let core = if self.core { ", core dumped" } else { "" };
                write!(f, "killed by {} ({signal}){core}", signal_name(signal))
            }
            (None, None) => f.write_str("ended, status unknown"),
        }
    }
}

/// Name of a signal as on x86-64 and arm64 Linux, `SIGRTMIN+n` from 34 on (glibc keeps 32 and 33 for itself).
pub fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    match usize::try_from(signal - 1).ok().and_then(|index| NAMES.get(index)) {
        Some(name) => format!("SIG{name}"),
        None if signal == 34 => "SIGRTMIN".to_owned(),
        None if (35..=64).contains(&signal) => format!("SIGRTMIN+{}", signal - 34),
        None => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_137_is_not_a_kill() {
        let exit = WaitStatus::from_raw(137 << 8);
        let kill = WaitStatus::from_raw(9);
        assert_eq!((exit.kind, exit.code, exit.signal), (WaitKind::Exited, Some(137), None));
        assert_eq!((kill.kind, kill.code, kill.signal), (WaitKind::Killed, None, Some(9)));
        assert_eq!(
            exit.shell_code(),
            kill.shell_code(),
            "a shell shows both alike, which is why it proves nothing"
        );
    }

    #[test]
    fn raw_status_of_every_exit_code_and_signal() {
        for code in 0..=255 {
            assert_eq!(WaitStatus::from_raw(code << 8), WaitStatus::exited(code));
        }
        for signal in 1..=64 {
            assert_eq!(WaitStatus::from_raw(signal), WaitStatus::killed(signal, false));
            assert_eq!(WaitStatus::from_raw(signal | 0x80), WaitStatus::killed(signal, true));
        }
    }

    #[test]
    fn unknown_has_no_shell_code_and_never_reads_as_success() {
        assert_eq!(WaitStatus::UNKNOWN.shell_code(), None);
        assert_eq!(WaitStatus::UNKNOWN.to_string(), "ended, status unknown");
    }

    #[test]
    fn names_of_signals() {
        assert_eq!(WaitStatus::killed(11, true).to_string(), "killed by SIGSEGV (11), core dumped");
        assert_eq!(signal_name(31), "SIGSYS");
        assert_eq!(signal_name(64), "SIGRTMIN+30");
        assert_eq!(signal_name(32), "signal 32");
    }
}
