//! The bundled engine: jobs, keys, status API. Binary `prover`.
