//! Reads Linux. Every reader takes its root; every field can be absent or unreadable.
//!
//! First stage of the flow: **reader** → `model` → `diagnosis` → record, metrics, screen, JSON. A reader answers with
//! [`sexton_model::reading::Reading`]s and concludes nothing. It never reads `cmdline`, `environ`, `maps` or `smaps*`
//! of another process: these take that process' memory lock, and behind a hung driver the reader would hang with it.
//!
//! | module | reads |
//! |---|---|
//! | [`task`] | one process with its threads; children and descendants |

pub mod task;
