//! What the scenarios share: finding our binaries, temporary state, waiting for conditions.
