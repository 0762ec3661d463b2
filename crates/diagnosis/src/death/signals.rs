//! Signal numbers, the same on x86-64 and arm64 Linux (signal(7)).

pub(super) const SIGILL: i32 = 4;
pub(super) const SIGTRAP: i32 = 5;
pub(super) const SIGABRT: i32 = 6;
pub(super) const SIGBUS: i32 = 7;
pub(super) const SIGFPE: i32 = 8;
pub(super) const SIGKILL: i32 = 9;
pub(super) const SIGSEGV: i32 = 11;
pub(super) const SIGPIPE: i32 = 13;
pub(super) const SIGALRM: i32 = 14;
pub(super) const SIGXCPU: i32 = 24;
pub(super) const SIGXFSZ: i32 = 25;
pub(super) const SIGVTALRM: i32 = 26;
pub(super) const SIGPROF: i32 = 27;
pub(super) const SIGSYS: i32 = 31;
