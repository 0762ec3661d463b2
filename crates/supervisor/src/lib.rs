//! Forks, reaps, records and restarts a prover.
//!
//! Last in the flow of what is observed (reader → model → diagnosis → **record**), and the one program that acts. Two
//! processes of this one binary share the work, so that neither a crash nor an upgrade of the clever one loses a
//! prover or its exit status:
//!
//! ```text
//! supervisor     policy, records, control socket; may die, restart, be replaced       daemon, machine, policy
//! └── keeper     forks, waits, keeps the output; decides nothing                      keeper
//!     └── prover
//! ```
//!
//! | module | part |
//! |---|---|
//! | [`machine`], [`policy`] | what to do next, as pure functions |
//! | [`ladder`], [`budget`] | which memory budget a start takes, and how the prover is told |
//! | [`daemon`] | the shell around them: one loop |
//! | [`keeper`] | the prover's parent |
//! | [`place`], [`runs`], [`journal`], [`durable`] | the files of one supervised prover |
//! | [`rotated`] | logs across the files that rotation makes of them |
//! | [`doctor`], [`bundle`], [`runbook`] | before a death, after it, and what to do |
//! | [`terminal`] | what an operator's terminal is shown |
//! | [`bounded`] | readings that give up |
//! | [`script_check`] | lost exit codes in shell scripts |
//! | [`config`] | `sexton.toml` |
//! | [`command`] | the command line |

pub mod bounded;
pub mod budget;
pub mod bundle;
pub mod command;
pub mod config;
pub mod daemon;
pub mod doctor;
pub mod durable;
pub mod journal;
pub mod keeper;
pub mod ladder;
pub mod machine;
pub mod place;
pub mod policy;
pub mod rotated;
pub mod runbook;
pub mod runs;
pub mod script_check;
pub mod terminal;

/// Version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
