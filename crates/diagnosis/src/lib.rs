//! Decides: pure functions from model values to model values. Reads nothing.
