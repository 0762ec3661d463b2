//! The library from outside: what a caller may rely on.

mod circuits;
