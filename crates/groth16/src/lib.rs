//! The mathematics: circuits, keys, formats, witnesses and the CPU prover for Groth16 over BLS12-381.
