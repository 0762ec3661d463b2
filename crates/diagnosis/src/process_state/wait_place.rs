//! From kernel functions to what a thread waits for.

use sexton_model::process_state::WaitPlace;
use sexton_model::task::{TaskState, ThreadReading};

/// Modules that drive GPUs.
const GPU_MODULES: [&str; 9] = [
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_drm",
    "nvidia_peermem",
    "nouveau",
    "amdgpu",
    "i915",
    "xe",
];

/// What `thread` waits for, as its wait channel and its kernel stack tell.
///
/// The innermost functions decide, except for a GPU driver: whatever primitive a driver sleeps in, it is the driver that
/// keeps the thread. A driver may also keep it busy, so the stack of a running thread counts too.
pub fn wait_place(thread: &ThreadReading) -> WaitPlace {
    let frames = thread.kernel_stack.value().map_or(&[][..], Vec::as_slice);
    let innermost =
        thread.wchan.value().map(String::as_str).or(frames.first().map(|frame| function_of(frame)));
    if let Some(place) = innermost.and_then(known_place) {
        return place;
    }
    if thread.state == TaskState::Uninterruptible && innermost.is_some_and(sleeps_interruptibly) {
        return WaitPlace::Freezer;
    }
    if let Some(module) = frames.iter().find_map(|frame| gpu_module_of(frame)) {
        return WaitPlace::GpuDriver { module: module.to_owned() };
    }
    if let Some(place) = frames.iter().find_map(|frame| known_place(function_of(frame))) {
        return place;
    }
    match (thread.state, innermost) {
        (TaskState::TracingStop, _) => WaitPlace::Tracer,
        (TaskState::Running, _) => WaitPlace::Nowhere,
        (_, Some(function)) => {
            driver_by_name(function).unwrap_or_else(|| WaitPlace::Other { function: function.to_owned() })
        }
        (_, None) => WaitPlace::Hidden,
    }
}

/// Functions that leave no doubt.
fn known_place(function: &str) -> Option<WaitPlace> {
    let starts_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| function.starts_with(prefix));
    match function {
        // v1 freezer and suspend; v2 freezer.
        "__refrigerator" | "do_freezer_trap" => Some(WaitPlace::Freezer),
        "ptrace_stop" => Some(WaitPlace::Tracer),
        "mem_cgroup_oom_synchronize" => Some(WaitPlace::CgroupOutOfMemory),
        "io_schedule" | "io_schedule_timeout" | "submit_bio_wait" => Some(WaitPlace::Disk),
        _ if starts_with(&["coredump_", "do_coredump", "vfs_coredump"]) => Some(WaitPlace::CoreDump),
        _ if starts_with(&["folio_wait_bit", "wait_on_page_", "blk_", "jbd2_", "xfs_log_"]) => {
            Some(WaitPlace::Disk)
        }
        _ if starts_with(&[
            "nfs",
            "rpc_",
            "ceph_",
            "cifs_",
            "smb2_",
            "p9_",
            "request_wait_answer",
            "fuse_",
        ]) =>
        {
            Some(WaitPlace::NetworkFileSystem)
        }
        _ => None,
    }
}

/// Since Linux 6.1 a thread that sleeps in one of these is frozen where it sleeps (`TASK_FREEZABLE`): it never enters the
/// refrigerator, and shows state D in a function that by itself sleeps in state S.
fn sleeps_interruptibly(function: &str) -> bool {
    const PREFIXES: [&str; 11] = [
        "futex_",
        "__futex_",
        "do_nanosleep",
        "hrtimer_nanosleep",
        "ep_poll",
        "do_epoll_",
        "poll_schedule_timeout",
        "do_select",
        "do_poll",
        "do_sigtimedwait",
        "unix_stream_",
    ];
    PREFIXES.iter().any(|prefix| function.starts_with(prefix))
}

/// Without root there is no stack, and the wait channel has no module: NVIDIA's own functions are known by their names.
fn driver_by_name(function: &str) -> Option<WaitPlace> {
    let module = match function {
        _ if function.starts_with("uvm_") => "nvidia_uvm",
        _ if function.starts_with("nvidia_") || function.starts_with("os_acquire_") => "nvidia",
        _ if function.starts_with("amdgpu_") || function.starts_with("kfd_") => "amdgpu",
        _ => return None,
    };
    Some(WaitPlace::GpuDriver { module: module.to_owned() })
}

/// `function+0x1a/0x30 [module]`
fn function_of(frame: &str) -> &str {
    frame.split(['+', ' ']).next().unwrap_or(frame)
}

fn gpu_module_of(frame: &str) -> Option<&str> {
    let module = frame.rsplit_once(" [")?.1.strip_suffix(']')?;
    GPU_MODULES.contains(&module).then_some(module)
}
