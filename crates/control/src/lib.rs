//! The wire between our programs: routes, request and answer types, client over Unix socket or TCP, decoders of a prover's status.

pub mod prover;
