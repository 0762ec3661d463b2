//! The wire between our programs: HTTP/1.1 with JSON bodies, over a Unix socket or loopback TCP.
//!
//! | module | what |
//! |---|---|
//! | [`client`] | one request, one answer, with a deadline |
//! | [`supervisor`] | routes and types of the supervisor's control socket |
//! | [`prover`] | routes and types of the bundled prover |
//! | [`target`] | URLs that a program is told to ask |
//! | [`notify`] | messages to a service manager |

pub mod client;
pub mod notify;
pub mod prover;
pub mod supervisor;
pub mod target;
