//! Reads Linux. Every reader takes its root; every field can be absent or unreadable.
