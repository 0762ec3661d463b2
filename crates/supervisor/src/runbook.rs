//! The runbook: a page for every cause, carried in the program, since whoever needs one at night may have nothing else.

use sexton_model::verdict::Cause;

macro_rules! pages {
    ($($cause:ident: $name:literal),* $(,)?) => {
        /// Every cause, in the order of the model.
        pub const CAUSES: &[Cause] = &[$(Cause::$cause),*];

        /// The page of `cause`, as Markdown.
        pub fn page(cause: Cause) -> &'static str {
            // A new cause does not compile until it has a page.
            match cause {
                $(Cause::$cause => include_str!(concat!("../../../runbooks/", $name, ".md")),)*
            }
        }

        /// Where the page lies in the sources.
        pub fn path(cause: Cause) -> &'static str {
            match cause {
                $(Cause::$cause => concat!("runbooks/", $name, ".md"),)*
            }
        }
    };
}

pages! {
    CleanExit: "clean_exit",
    ErrorExit: "error_exit",
    Panic: "panic",
    Abort: "abort",
    Segfault: "segfault",
    Trap: "trap",
    BusError: "bus_error",
    OomOwnLimit: "oom_own_limit",
    OomAncestorLimit: "oom_ancestor_limit",
    OomHost: "oom_host",
    OomUserspace: "oom_userspace",
    OomSuspected: "oom_suspected",
    Terminated: "terminated",
    KilledByProcess: "killed_by_process",
    KilledUnknown: "killed_unknown",
    StoppedBySupervisor: "stopped_by_supervisor",
    KilledBySupervisor: "killed_by_supervisor",
    Watchdog: "watchdog",
    StartFailed: "start_failed",
    GpuFault: "gpu_fault",
    Unknown: "unknown",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_cause_has_the_page_of_its_name_and_every_page_its_cause() {
        for cause in CAUSES {
            assert_eq!(path(*cause), format!("runbooks/{cause}.md"));
            let page = page(*cause);
            assert!(page.starts_with("# "), "{cause}: no title");
            assert!(page.contains(&format!("`{cause}`")), "{cause}: the page does not name it");
            for section in ["**Symptom.**", "**Command.**", "**Reading.**", "**Action.**"] {
                assert!(page.contains(section), "{cause}: no {section}");
            }
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runbooks");
        let files =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let pages: BTreeSet<String> = files
            .filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()))
            .filter(|name| name != "README" && name != "lost-exit-code")
            .collect();
        assert_eq!(pages, CAUSES.iter().map(Cause::to_string).collect());
    }
}
