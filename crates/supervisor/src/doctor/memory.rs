//! What want of memory leads to on this host.

use sexton_model::cgroup::CgroupVersion;
use sexton_model::memory::{OvercommitMode, PanicOnOom};
use sexton_model::reading::Reading;

use super::{Check, Sight, missing};

pub(super) fn checks(sight: &Sight) -> Vec<Check> {
    vec![
        cgroup_version(sight),
        cgroup_delegated(sight),
        oom_group(sight),
        oom_kill_disable(sight),
        panic_on_oom(sight),
        oom_kill_allocating_task(sight),
        overcommit(sight),
        psi(sight),
    ]
}

fn cgroup_version(sight: &Sight) -> Check {
    const ID: &str = "cgroup-version";
    let Reading::Value(cgroup) = &sight.cgroup else {
        return Check::warn(ID, missing(&sight.cgroup), "see oom-counter");
    };
    let version = match cgroup.version {
        CgroupVersion::V1 => "v1",
        CgroupVersion::V2 => "v2",
    };
    let hidden = match &cgroup.hidden_ancestors {
        Reading::Value(false) => "all cgroups above are visible",
        Reading::Value(true) => {
            "cgroups above are hidden: a kill at a limit of theirs shows, the limit itself does not"
        }
        _ => "whether cgroups above are hidden is not known",
    };
    Check::ok(ID, format!("memory is {version}'s; {hidden}"))
}

fn cgroup_delegated(sight: &Sight) -> Check {
    const ID: &str = "cgroup-delegated";
    match &sight.cgroup_is_writable {
        Reading::Value(true) => Check::ok(ID, "cgroups can be made below this one"),
        Reading::Value(false) => Check::warn(
            ID,
            "read-only, or another user's: the prover stays in the supervisor's own cgroup",
            "systemd: Delegate=yes in the unit; containers: a writable cgroup mount",
        ),
        other => Check::warn(ID, missing(other), "see oom-counter"),
    }
}

/// On this level or any above: one kill takes everybody along, us too.
fn oom_group(sight: &Sight) -> Check {
    const ID: &str = "oom-group";
    let Reading::Value(cgroup) = &sight.cgroup else {
        return Check::warn(ID, missing(&sight.cgroup), "see oom-counter");
    };
    match cgroup.levels.iter().find(|level| level.oom_group == Reading::Value(true)) {
        Some(level) => Check::warn(
            ID,
            format!(
                "memory.oom.group is set in {}: an OOM kill takes the supervisor with the prover",
                level.path
            ),
            format!("echo 0 > {}/memory.oom.group (systemd: OOMPolicy=continue)", level.folder),
        ),
        None => Check::ok(ID, "not set: an OOM kill takes one process"),
    }
}

fn oom_kill_disable(sight: &Sight) -> Check {
    const ID: &str = "oom-kill-disable";
    let Reading::Value(cgroup) = &sight.cgroup else {
        return Check::warn(ID, missing(&sight.cgroup), "see oom-counter");
    };
    match cgroup.levels.iter().find(|level| level.oom_kill_disable == Reading::Value(true)) {
        Some(level) => Check::warn(
            ID,
            format!("{} has its OOM killer disabled: at the limit a prover sleeps for ever", level.path),
            format!("echo 0 > {}/memory.oom_control", level.folder),
        ),
        None => Check::ok(ID, "not set: what exceeds a limit is killed, and that shows"),
    }
}

fn panic_on_oom(sight: &Sight) -> Check {
    const ID: &str = "panic-on-oom";
    const FIX: &str = "sysctl vm.panic_on_oom=0";
    match &sight.policy.panic_on_oom {
        Reading::Value(PanicOnOom::Never) => Check::ok(ID, "vm.panic_on_oom is 0: the host survives"),
        Reading::Value(PanicOnOom::HostOnly) => {
            Check::warn(ID, "vm.panic_on_oom is 1: the host panics when its memory ends", FIX)
        }
        Reading::Value(PanicOnOom::Always) => {
            Check::fail(ID, "vm.panic_on_oom is 2: the host panics at any cgroup's limit", FIX)
        }
        other => Check::warn(ID, missing(other), "make /proc/sys/vm readable"),
    }
}

fn oom_kill_allocating_task(sight: &Sight) -> Check {
    const ID: &str = "oom-kill-allocating-task";
    match &sight.policy.oom_kill_allocating_task {
        Reading::Value(false) => {
            Check::ok(ID, "vm.oom_kill_allocating_task is 0: the largest process is killed")
        }
        Reading::Value(true) => Check::warn(
            ID,
            "vm.oom_kill_allocating_task is on: whoever asks last is killed, the supervisor perhaps",
            "sysctl vm.oom_kill_allocating_task=0",
        ),
        other => Check::warn(ID, missing(other), "make /proc/sys/vm readable"),
    }
}

fn overcommit(sight: &Sight) -> Check {
    const ID: &str = "overcommit";
    match &sight.policy.overcommit {
        Reading::Value(OvercommitMode::Never) => Check::warn(
            ID,
            "vm.overcommit_memory is 2: allocations fail at CommitLimit, and no OOM kill will show",
            "sysctl vm.overcommit_memory=0, or count CommitLimit into the prover's budget",
        ),
        Reading::Value(_) => Check::ok(ID, "want of memory shows as an OOM kill"),
        other => Check::warn(ID, missing(other), "make /proc/sys/vm readable"),
    }
}

fn psi(sight: &Sight) -> Check {
    const ID: &str = "psi";
    match &sight.pressure {
        Reading::Value(pressure) => {
            let some = pressure.some.value().map(|some| some.avg10_ratio * 100.0);
            let lost = some.map(|lost| format!(": {lost:.1} % of the last 10 s lost to memory"));
            Check::ok(ID, format!("/proc/pressure/memory is readable{}", lost.unwrap_or_default()))
        }
        other => Check::warn(
            ID,
            format!("no pressure information: {}", missing(other)),
            "boot with psi=1 (CONFIG_PSI, Linux 4.20 or later)",
        ),
    }
}
