//! The bundled engine, as a library for its binary `prover` and for tests.
//!
//! Stands between the mathematics (`sexton-groth16`) and everybody who wants proofs: the command line, and the HTTP
//! interface whose types are in `sexton_control::prover`.
//!
//! | module | what it is |
//! |---|---|
//! | [`command`] | the command line: `setup`, `prove`, `verify`, `serve` |
//! | [`statement`] | what is to be proved, as clients and command lines give it |
//! | [`keys`] | the folder of proving keys, and the keys in memory |
//! | [`cpu`] | the CPU backend: makes proofs and verifies them |
//! | [`memory`] | the books of the memory budget |
//! | [`engine`] | jobs, queue, workers: takes jobs, answers each exactly once |
//! | [`api`] | the HTTP routes over an engine |
//! | [`server`] | a process that serves them: sockets, signals, drain, service manager |
//! | [`log`] | what it says meanwhile |
//! | [`output`] | files written whole or not at all |
//! | [`exit`] | exit codes |

pub mod api;
pub mod command;
pub mod cpu;
pub mod engine;
pub mod exit;
pub mod keys;
pub mod log;
pub mod memory;
pub mod output;
pub mod server;
pub mod statement;
