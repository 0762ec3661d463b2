//! Decides: pure functions from model values to model values. Reads nothing.
//!
//! Middle of the flow: reader → `model` → **diagnosis** → record, metrics, screen, JSON. The same reading always leads to
//! the same conclusion, so a recorded one can be judged again by a later version.
//!
//! | module | decides |
//! |---|---|
//! | [`death`] | why a run ended |
//! | [`process_state`] | whether a process lives, is on its way out, is held by someone, or is gone |

pub mod death;
pub mod process_state;
