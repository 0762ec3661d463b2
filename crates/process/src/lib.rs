//! Acts on processes: spawn with a held child, pidfd, addressed waits, signals by pidfd, identity.
