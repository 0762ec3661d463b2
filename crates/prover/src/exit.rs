//! Exit codes: the table that all programs of Sexton share. From 64 on they are those of `sysexits.h`.

use std::fmt;

/// The thing asked for failed.
pub const FAILED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// The program that was to be asked does not run.
pub const NOT_RUNNING: u8 = 3;
/// `EX_DATAERR`: a file that was given is malformed.
pub const DATA: u8 = 65;
/// `EX_NOINPUT`: a file that was given cannot be read.
pub const NO_INPUT: u8 = 66;
/// `EX_SOFTWARE`: a defect of this program, or of the host's hardware.
pub const SOFTWARE: u8 = 70;
/// `EX_OSERR`: the system refuses what every process needs.
pub const SYSTEM: u8 = 71;
/// `EX_CANTCREAT`: an output file cannot be made.
pub const CANNOT_CREATE: u8 = 73;
/// `EX_IOERR`: reading or writing failed half way.
pub const IO: u8 = 74;
/// `EX_TEMPFAIL`: not now; the same command may succeed later.
pub const TEMPORARY: u8 = 75;
/// `EX_PROTOCOL`: the other side answered with something that cannot be right.
pub const PROTOCOL: u8 = 76;
/// `EX_CONFIG`: the configuration or the environment is wrong.
pub const CONFIG: u8 = 78;

/// Why a command ends with an exit code other than 0.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// One line: what was wrong, with the path or value, and what to do. Empty when all has been said already.
    pub message: String,
}

impl Failure {
    /// A failure with its message.
    pub fn new(code: u8, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string() }
    }
}
