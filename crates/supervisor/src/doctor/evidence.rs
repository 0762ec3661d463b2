//! The sources that a verdict rests on.

use sexton_model::cgroup::CgroupLevel;
use sexton_model::reading::Reading;

use super::{Check, Sight, missing};

pub(super) fn checks(sight: &Sight) -> Vec<Check> {
    vec![
        oom_counter(sight),
        cgroup_exclusive(sight),
        kernel_log(sight),
        host_oom_counter(sight),
        signal_trace(sight),
        pid_namespace(sight),
        hidden_processes(sight),
        ptrace_scope(sight),
        gpu_sampler(sight),
    ]
}

fn own(sight: &Sight) -> Option<&CgroupLevel> {
    sight.cgroup.value()?.own()
}

fn oom_counter(sight: &Sight) -> Check {
    const ID: &str = "oom-counter";
    const FIX: &str = "mount the cgroup file system of the memory controller into this container, readable";
    let level = match (&sight.cgroup, own(sight)) {
        (Reading::Value(_), Some(level)) => level,
        (cgroup, _) => return Check::fail(ID, missing(cgroup), FIX),
    };
    let counter = &level.counters.local.oom_kill;
    match counter {
        Reading::Value(kills) => {
            Check::ok(ID, format!("readable: {kills} OOM kills in {} so far", level.path))
        }
        // Linux 4.13 brought it to v1; without it only the log tells.
        Reading::Absent if sight.kernel_log.value().is_some() => Check::warn(
            ID,
            format!("{}: this kernel does not count OOM kills in it; the kernel log has to tell", level.path),
            "use a kernel of 4.13 or later, or cgroup v2",
        ),
        other => Check::fail(ID, missing(other), FIX),
    }
}

fn cgroup_exclusive(sight: &Sight) -> Check {
    const ID: &str = "cgroup-exclusive";
    let Some(level) = own(sight) else {
        return Check::warn(ID, missing(&sight.cgroup), "see oom-counter");
    };
    match level.exclusive_to(&sight.family) {
        Reading::Value(true) => Check::ok(ID, format!("nobody else is in {}", level.path)),
        Reading::Value(false) => {
            let strangers = level.members.value().map_or(0, |members| {
                let others = members.pids.iter().filter(|pid| !sight.family.contains(pid)).count();
                others as u64 + members.foreign
            });
            Check::warn(
                ID,
                format!(
                    "{} is shared with {strangers} other processes: their OOM kills and a kill -9 look alike",
                    level.path
                ),
                "run the supervisor in a cgroup of its own: a systemd service, systemd-run --scope, or a container",
            )
        }
        other => Check::warn(ID, missing(&other), "make cgroup.procs readable"),
    }
}

fn kernel_log(sight: &Sight) -> Check {
    const ID: &str = "kernel-log";
    match &sight.kernel_log {
        Reading::Value(mark) if mark.next_seq.is_some() => Check::ok(ID, "readable through /dev/kmsg"),
        Reading::Value(_) => {
            Check::ok(ID, "readable through syslog(2); lines that were overwritten cannot be noticed")
        }
        other => Check::warn(
            ID,
            missing(other),
            "run as root or with CAP_SYSLOG, set kernel.dmesg_restrict=0, or give the container /dev/kmsg",
        ),
    }
}

fn host_oom_counter(sight: &Sight) -> Check {
    const ID: &str = "host-oom-counter";
    match sight.vmstat.clone().and_then(|vmstat| vmstat.oom_kill) {
        Reading::Value(kills) => {
            Check::ok(ID, format!("/proc/vmstat: {kills} OOM kills on this host since boot"))
        }
        other => {
            Check::warn(ID, missing(&other), "make /proc/vmstat readable; its oom_kill needs Linux 4.13")
        }
    }
}

fn signal_trace(sight: &Sight) -> Check {
    const ID: &str = "tracefs-signal-trace";
    match &sight.tracefs {
        Reading::Value(at) if sight.capabilities.sys_admin => Check::ok(
            ID,
            format!("{}: `supervisor run --signal-trace` can name who sends SIGKILL", at.display()),
        ),
        Reading::Absent if !sight.tracefs_exists => Check::warn(
            ID,
            "this kernel has no tracefs: who sent a SIGKILL stays unknown",
            "use a kernel with CONFIG_FTRACE, or run the supervisor outside of the container",
        ),
        Reading::Absent if sight.capabilities.sys_admin => Check::ok(
            ID,
            "not mounted yet: `supervisor run --signal-trace` does that, to name who sends SIGKILL",
        ),
        Reading::Value(_) | Reading::Absent => Check::warn(
            ID,
            "no right to trace (CAP_SYS_ADMIN): who sent a SIGKILL stays unknown",
            "run the supervisor as root of the host",
        ),
        other => Check::warn(ID, missing(other), "make /proc/self/mountinfo readable"),
    }
}

fn pid_namespace(sight: &Sight) -> Check {
    const ID: &str = "pid-namespace";
    match &sight.is_initial_pid_namespace {
        Reading::Value(true) => Check::ok(ID, "the host's: kernel lines name the same PIDs"),
        Reading::Value(false) => Check::warn(
            ID,
            "a container's: PIDs in kernel lines are the host's, and are matched by name, cgroup and time instead",
            "nothing is wrong; for certain matches run on the host, or in its PID namespace (--pid=host)",
        ),
        other => Check::warn(ID, missing(other), "make /proc/self/ns/pid readable"),
    }
}

fn hidden_processes(sight: &Sight) -> Check {
    const ID: &str = "proc-hidepid";
    match &sight.sees_pid_1 {
        Reading::Value(()) => Check::ok(ID, "processes of others are visible"),
        other => Check::warn(
            ID,
            format!("PID 1 is not visible ({}): neither are others that may hold memory", missing(other)),
            "mount proc without hidepid, add the user to its gid= group, or run as root",
        ),
    }
}

fn ptrace_scope(sight: &Sight) -> Check {
    const ID: &str = "ptrace-scope";
    match &sight.ptrace_scope {
        Reading::Value(0) | Reading::Absent => Check::ok(ID, "not restricted"),
        Reading::Value(scope) if *scope < 3 && sight.capabilities.sys_ptrace => {
            Check::ok(ID, format!("kernel.yama.ptrace_scope is {scope}, which does not bind this user"))
        }
        Reading::Value(scope) => Check::warn(
            ID,
            format!("kernel.yama.ptrace_scope is {scope}: exit status and stacks of strangers stay hidden"),
            "run as root or with CAP_SYS_PTRACE",
        ),
        other => Check::warn(ID, missing(other), "make /proc/sys/kernel/yama readable"),
    }
}

fn gpu_sampler(sight: &Sight) -> Check {
    const ID: &str = "gpu-sampler";
    match &sight.gpu_sampler {
        Reading::Value(path) => Check::ok(ID, path.display().to_string()),
        Reading::Absent => Check::warn(
            ID,
            "not installed: the state of the GPU at a death is not recorded",
            "put gpu-sampler beside the supervisor or on PATH; without a GPU there is nothing to do",
        ),
        other => Check::warn(ID, missing(other), "reinstall gpu-sampler"),
    }
}
