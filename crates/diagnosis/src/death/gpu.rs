//! Xid messages of the NVIDIA driver, and GPUs that fell off the bus.

use sexton_model::kernel::KernelFact;
use sexton_model::kernel::fact::Xid;
use sexton_model::kernel::xid;
use sexton_model::reading::Reading;
use sexton_model::verdict::Confidence;

use super::facts::Facts;

/// How a fault of the GPU bears on the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFault {
    /// How sure it is that the run was hit.
    pub confidence: Confidence,
    /// What the driver said.
    pub words: String,
    /// Whether the GPU works again without somebody resetting it.
    pub restart_helps: bool,
}

/// The gravest fault since the run began: one that names the run before one that names nobody.
pub fn fault(facts: &Facts) -> Option<GpuFault> {
    let Reading::Value(log) = &facts.kernel_log else { return None };
    let faults = log.events.iter().filter_map(|event| match &event.fact {
        KernelFact::Xid(xid) => of_xid(facts, xid),
        KernelFact::GpuLost(lost) => Some(GpuFault {
            confidence: Confidence::Possible,
            words: format!(
                "the GPU at {} fell off the bus",
                lost.pci.as_deref().unwrap_or("an unnamed slot")
            ),
            restart_helps: false,
        }),
        _ => None,
    });
    faults.max_by_key(|fault| fault.confidence)
}

fn of_xid(facts: &Facts, xid: &Xid) -> Option<GpuFault> {
    let tasks = &facts.tasks;
    let by_number = tasks
        .numbers_are_global
        .then_some(xid.pid)
        .flatten()
        .map(|pid| tasks.pid == Some(pid) || tasks.thread_ids.contains(&pid));
    let by_name = xid.name.as_ref().map(|name| tasks.names.contains(name));
    let confidence = match (by_number, by_name) {
        (Some(true), _) => Confidence::Likely,
        // Somebody else's.
        (Some(false), _) | (None, Some(false)) => return None,
        (None, _) => Confidence::Possible,
    };
    let restart_helps = xid::meaning(xid.code).is_none_or(|meaning| meaning.restart_may_help());
    let restart = if restart_helps { "" } else { "; a restart will not help" };
    let words = format!("Xid {} on {}: {}{restart}", xid.code, xid.pci, xid.text);
    Some(GpuFault { confidence, words, restart_helps })
}
