//! Forks, reaps, records and restarts a prover. Binary `supervisor`.
