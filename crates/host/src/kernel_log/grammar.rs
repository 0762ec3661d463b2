//! From the text of a record to the fact in it. Pure, and for any text: what does not fit is no fact.
//!
//! Whoever may run a program chooses part of these texts: its name, the name of its file, the path of its cgroup. A name
//! is at most 15 bytes, too short for any of the sentences here; so a sentence is believed only in its place, with a
//! name in the place of a name. Of a record that was cut off, the facts that are whole count; a number counts only
//! with what stands behind it, or at the end of a line that the kernel ends so.
//!
//! Call it for records of the kernel only ([`KernelRecord::is_from_kernel`](sexton_model::kernel::KernelRecord)).

mod fault;
pub(super) mod gpu;
mod oom;
mod scan;

use sexton_model::kernel::KernelFact;

/// What `text` states; none if it is no statement that we know, or not certainly one.
pub fn fact(text: &str) -> Option<KernelFact> {
    oom::fact(text).or_else(|| fault::fact(text)).or_else(|| gpu::fact(text))
}

#[cfg(test)]
mod tests;
