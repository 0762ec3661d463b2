//! What an Xid code means for a restart.
//!
//! Source: NVIDIA's Xid catalogue for Ampere and newer, "Analyzing Xid Errors with the Xid Catalog",
//! <https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html>, column "Resolution Bucket (Immediate
//! Action)". The class is ours: it decides who is to blame, the application or the device. Codes that the catalogue
//! marks unused, and those of display and video, are left out: an unknown code is not a fault of the prover.

use serde::{Deserialize, Serialize};

use XidAction::{None as Nothing, ResetGpu, RestartApplication, RestartHost};
use XidClass::{Application, Device, Memory};

/// Whose fault an Xid is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XidClass {
    /// The program on the GPU: a bad address, an illegal instruction, or its own end.
    Application,
    /// The GPU's memory.
    Memory,
    /// The GPU, its firmware, its link, or the host around it.
    Device,
}

/// What has to happen before work can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XidAction {
    /// Nothing: it accompanies something else, or is a notice.
    None,
    /// The application is to be started again.
    RestartApplication,
    /// The GPU is to be reset first. Restarts before that fail again.
    ResetGpu,
    /// The host is to be restarted first.
    RestartHost,
}

/// An entry of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XidMeaning {
    /// The code.
    pub code: u32,
    /// Whose fault.
    pub class: XidClass,
    /// What first.
    pub action: XidAction,
    /// What it is, in a few words.
    pub what: &'static str,
}

impl XidMeaning {
    /// Whether a restart of the prover alone can help.
    pub fn restart_may_help(&self) -> bool {
        self.action <= RestartApplication
    }
}

/// What `code` means; none if it is not in the table.
pub fn meaning(code: u32) -> Option<&'static XidMeaning> {
    TABLE.binary_search_by_key(&code, |entry| entry.code).ok().and_then(|index| TABLE.get(index))
}

/// The action that the text of an Xid 154 asks for: `GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot
/// Required)`. None for any other text.
pub fn recovery_action(text: &str) -> Option<XidAction> {
    let (_, changed) = text.split_once("recovery action changed from ")?;
    let (_, action) = changed.split_once(" to ")?;
    let (_, name) = action.split_once('(')?;
    match name.split_once(')')?.0 {
        "None" => Some(Nothing),
        "Drain P2P" | "Drain and Reset" | "GPU Reset Required" => Some(ResetGpu),
        "Node Reboot Required" => Some(RestartHost),
        _ => None,
    }
}

const fn entry(code: u32, class: XidClass, action: XidAction, what: &'static str) -> XidMeaning {
    XidMeaning { code, class, action, what }
}

/// By code.
static TABLE: &[XidMeaning] = &[
    entry(8, Application, RestartApplication, "GPU stopped processing"),
    entry(11, Application, RestartApplication, "invalid or corrupted push buffer"),
    entry(
        13,
        Application,
        RestartApplication,
        "graphics engine exception: access out of bounds, illegal instruction",
    ),
    entry(25, Application, RestartApplication, "invalid or illegal push buffer"),
    entry(31, Application, RestartApplication, "GPU memory page fault: illegal address"),
    entry(32, Application, RestartApplication, "invalid or corrupted push buffer, or a PCI transfer fault"),
    entry(39, Application, RestartApplication, "copy engine exception"),
    entry(40, Application, RestartApplication, "copy engine exception"),
    entry(41, Application, RestartApplication, "copy engine exception"),
    entry(43, Application, RestartApplication, "reset channel: the application met a fault and must end"),
    // The driver clears up after an application that ended, by whatever cause: an effect, never the cause.
    entry(45, Application, Nothing, "preemptive cleanup: the application ended, or an earlier error"),
    entry(46, Device, ResetGpu, "GPU stopped processing"),
    entry(48, Memory, ResetGpu, "uncorrectable ECC error"),
    entry(62, Device, ResetGpu, "internal microcontroller halted"),
    entry(63, Memory, Nothing, "memory row remapped or page retired; takes effect at the next reset"),
    entry(64, Memory, ResetGpu, "memory row could not be remapped"),
    entry(68, Application, RestartApplication, "video decoder exception"),
    entry(69, Application, RestartApplication, "graphics engine class error"),
    entry(74, Device, ResetGpu, "NVLink error"),
    entry(79, Device, RestartHost, "GPU has fallen off the bus"),
    entry(92, Memory, Nothing, "high rate of corrected ECC errors"),
    entry(94, Memory, RestartApplication, "contained memory error: only this application is hit"),
    entry(95, Memory, ResetGpu, "uncontained memory error: every application is hit"),
    // The catalogue asks for a reset; other clients of the GPU go on, and it often is a kernel that never ends.
    entry(109, Application, ResetGpu, "context switch timeout"),
    entry(110, Device, RestartHost, "security fault"),
    entry(119, Device, ResetGpu, "GPU system processor does not answer"),
    entry(120, Device, ResetGpu, "GPU system processor failed"),
    entry(136, Device, ResetGpu, "link training failed"),
    entry(137, Application, RestartApplication, "NVLink privilege error: illegal peer access"),
    entry(140, Memory, ResetGpu, "uncorrectable ECC error that escaped"),
    entry(143, Device, ResetGpu, "GPU initialization failed"),
    // Sums up others; `recovery_action` reads from its text what is to be done.
    entry(154, Device, ResetGpu, "recovery action changed"),
    entry(156, Memory, ResetGpu, "resource retired"),
    entry(158, Device, ResetGpu, "fatal GPU timeout"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_entry_is_found() {
        assert!(TABLE.is_sorted_by(|a, b| a.code < b.code));
        for entry in TABLE {
            assert_eq!(meaning(entry.code), Some(entry));
        }
        assert_eq!(meaning(14), None);
    }

    #[test]
    fn the_recovery_action_is_read_from_the_text() {
        for (text, action) in [
            (
                "pid=1, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
                Some(RestartHost),
            ),
            ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", Some(Nothing)),
            ("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", Some(ResetGpu)),
            ("GPU recovery action changed from 0x0 (None) to 0x9 (Dance)", None),
            ("GPU recovery action changed from 0x0 (None", None),
            ("", None),
        ] {
            assert_eq!(recovery_action(text), action, "{text}");
        }
    }

    /// HAMi#2393, k8s-device-plugin#1340: faults of the application were taken for a broken GPU.
    #[test]
    fn faults_of_the_application_are_not_those_of_the_device() {
        for code in [13, 31, 43, 45, 68, 109] {
            assert_eq!(meaning(code).unwrap().class, Application, "{code}");
        }
        for code in [48, 63, 64, 94, 95] {
            assert_eq!(meaning(code).unwrap().class, Memory, "{code}");
        }
        for code in [62, 79, 119, 120, 136, 154] {
            assert_eq!(meaning(code).unwrap().class, Device, "{code}");
            assert!(!meaning(code).unwrap().restart_may_help(), "no restart loop after {code}");
        }
    }
}
