//! The ways to die.

use std::fmt;

/// A way to die. What it must come to is in the table ([`super::table`]), how it comes about in [`super::act`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it, and the table explains the others")]
pub enum Death {
    OwnLimit,
    AncestorLimit,
    ThreadAtOwnLimit,
    SiblingThenKill,
    StallThenKill,
    MemberOom,
    MemberOomThenKill,
    MemberOomThenTerm,
    KillNine,
    OwnEscalation,
    OwnStop,
    ExitOneHundredThirtySeven,
    TimeoutKill,
    Term,
    Segfault,
    Abort,
    AbortWithCore,
    IllegalInstruction,
    Division,
    BusError,
    Panic,
    PanicAbort,
    CleanExit,
    ErrorExit,
    StartFailure,
    LeaderGoneThenKill,
    TracedThenKill,
}

impl Death {
    /// All of them.
    pub const ALL: [Self; 27] = [
        Self::OwnLimit,
        Self::AncestorLimit,
        Self::ThreadAtOwnLimit,
        Self::SiblingThenKill,
        Self::StallThenKill,
        Self::MemberOom,
        Self::MemberOomThenKill,
        Self::MemberOomThenTerm,
        Self::KillNine,
        Self::OwnEscalation,
        Self::OwnStop,
        Self::ExitOneHundredThirtySeven,
        Self::TimeoutKill,
        Self::Term,
        Self::Segfault,
        Self::Abort,
        Self::AbortWithCore,
        Self::IllegalInstruction,
        Self::Division,
        Self::BusError,
        Self::Panic,
        Self::PanicAbort,
        Self::CleanExit,
        Self::ErrorExit,
        Self::StartFailure,
        Self::LeaderGoneThenKill,
        Self::TracedThenKill,
    ];

    /// As in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OwnLimit => "own-limit",
            Self::AncestorLimit => "ancestor-limit",
            Self::ThreadAtOwnLimit => "thread-at-own-limit",
            Self::SiblingThenKill => "sibling-oom-then-kill",
            Self::StallThenKill => "stall-then-kill",
            Self::MemberOom => "member-oom",
            Self::MemberOomThenKill => "member-oom-then-kill",
            Self::MemberOomThenTerm => "member-oom-then-term",
            Self::KillNine => "kill-9",
            Self::OwnEscalation => "own-escalation",
            Self::OwnStop => "own-stop",
            Self::ExitOneHundredThirtySeven => "exit-137",
            Self::TimeoutKill => "timeout-s-kill",
            Self::Term => "term",
            Self::Segfault => "segfault",
            Self::Abort => "abort",
            Self::AbortWithCore => "abort-with-core",
            Self::IllegalInstruction => "illegal-instruction",
            Self::Division => "division-by-zero",
            Self::BusError => "bus-error",
            Self::Panic => "panic",
            Self::PanicAbort => "panic-abort",
            Self::CleanExit => "clean-exit",
            Self::ErrorExit => "error-exit",
            Self::StartFailure => "start-failure",
            Self::LeaderGoneThenKill => "leader-gone-then-kill",
            Self::TracedThenKill => "traced-then-kill",
        }
    }

    /// Whether the kernel's OOM killer ends the prover itself: the truth that verdicts are measured by.
    pub const fn is_oom(self) -> bool {
        matches!(self, Self::OwnLimit | Self::AncestorLimit | Self::ThreadAtOwnLimit)
    }

    /// Whether the kernel writes a line about the fault, unless it has written too many already.
    pub const fn is_logged_fault(self) -> bool {
        matches!(self, Self::Segfault | Self::IllegalInstruction | Self::Division)
    }

    /// Whether another process of the prover's cgroup is OOM-killed while the prover lives on.
    pub const fn has_dead_member(self) -> bool {
        matches!(self, Self::MemberOom | Self::MemberOomThenKill | Self::MemberOomThenTerm)
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
