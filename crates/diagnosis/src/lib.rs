//! Decides: pure functions from model values to model values. Reads nothing.
//!
//! Middle of the flow: reader → `model` → **diagnosis** → record, metrics, screen, JSON. The same reading always leads to
//! the same conclusion, so a recorded one can be judged again by a later version.
//!
//! | module | decides |
//! |---|---|
//! | [`death`] | why a run ended |
//! | [`drain`] | how far a run's memory is on its way back, and how long that will take |
//! | [`headroom`], [`gate`], [`need`] | what a new process may take, and whether the next run fits |
//! | [`progress`] | whether a prover that has work gets on with it |
//! | [`idle`] | whether one that is to be stopped has finished its work |
//! | [`process_state`] | whether a process lives, is on its way out, is held by someone, or is gone |

pub mod death;
pub mod drain;
pub mod gate;
pub mod headroom;
pub mod idle;
pub mod need;
pub mod process_state;
pub mod progress;
