//! Signal numbers, the same on x86-64 and arm64 Linux (signal(7)).

pub(super) const SIGILL: i32 = 4;
pub(super) const SIGTRAP: i32 = 5;
pub(super) const SIGABRT: i32 = 6;
pub(super) const SIGBUS: i32 = 7;
pub(super) const SIGFPE: i32 = 8;
pub(super) const SIGKILL: i32 = 9;
pub(super) const SIGSEGV: i32 = 11;
pub(super) const SIGSYS: i32 = 31;
