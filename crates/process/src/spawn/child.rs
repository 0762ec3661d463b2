//! The child's side: from `fork` to `execve`, by system calls alone.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use super::error::{SpawnError, Stage};
use super::search::find_program;
use super::{NODES_MAX, Spawn, exec_failure_code};
use crate::limits::ResourceLimit;

/// Everything the child needs between `fork` and `execve`, laid out beforehand.
pub(super) struct Image {
    program: CString,
    arguments: Pointers,
    environment: Pointers,
    folder: Option<CString>,
    cgroup_procs: Vec<CString>,
    limits: Vec<ResourceLimit>,
    oom_score_adj: Option<CString>,
    /// A bit for each node; `None` leaves the parent's policy.
    memory_nodes: Option<NodeMask>,
    umask: Option<libc::mode_t>,
    /// `(number in the child, number in the parent)`.
    descriptors: Vec<(RawFd, RawFd)>,
    /// One spare slot for each descriptor: its number while it is moved.
    moved: Vec<std::cell::Cell<RawFd>>,
    own_session: bool,
}

/// A NULL-terminated array of C strings.
struct Pointers {
    _strings: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Pointers {
    fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect();
        Self { _strings: strings, pointers }
    }
}

fn c_string(text: &OsStr) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| SpawnError::Nul(text.to_owned()))
}

impl Image {
    pub(super) fn new(spawn: &Spawn) -> Result<Self, SpawnError> {
        let path =
            spawn.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        let assignment = |(name, value): &(OsString, OsString)| {
            let mut text = name.clone();
            text.push("=");
            text.push(value);
            c_string(&text)
        };
        let descriptors: Vec<_> =
            spawn.descriptors.iter().map(|(to, from)| (*to, from.as_raw_fd())).collect();
        Ok(Self {
            program: c_string(find_program(&spawn.program, path).as_os_str())?,
            arguments: Pointers::new(
                spawn.arguments.iter().map(|text| c_string(text)).collect::<Result<_, _>>()?,
            ),
            environment: Pointers::new(spawn.environment.iter().map(assignment).collect::<Result<_, _>>()?),
            folder: spawn.folder.as_ref().map(|folder| c_string(folder.as_os_str())).transpose()?,
            cgroup_procs: spawn
                .cgroup_procs
                .iter()
                .map(|p| c_string(p.as_os_str()))
                .collect::<Result<_, _>>()?,
            limits: spawn.limits.clone(),
            oom_score_adj: spawn.oom_score_adj.and_then(|value| CString::new(value.to_string()).ok()),
            memory_nodes: node_mask(&spawn.memory_nodes)?,
            umask: spawn.umask,
            moved: vec![std::cell::Cell::new(-1); descriptors.len()],
            descriptors,
            own_session: spawn.own_session,
        })
    }

    /// The child's side. System calls only.
    pub(super) fn run_in_child(&self, go: RawFd, report: RawFd) -> ! {
        let say = |number: u8, errno: i32| {
            let [a, b, c, d] = errno.to_ne_bytes();
            let record = [number, a, b, c, d];
            // SAFETY: writes five live bytes; a reader that is gone cannot be helped (SIGPIPE is blocked or default).
            unsafe { libc::write(report, record.as_ptr().cast(), record.len()) };
        };
        let result = self.prepare(go, report).and_then(|()| {
            say(0, 0);
            let mut byte = 0u8;
            loop {
                // SAFETY: reads one byte into a live variable.
                match unsafe { libc::read(go, (&raw mut byte).cast(), 1) } {
                    1 => break,
                    -1 if errno() == libc::EINTR => {}
                    // The parent is gone or has changed its mind.
                    // SAFETY: ends the child without running the parent's exit handlers.
                    _ => unsafe { libc::_exit(127) },
                }
            }
            // SAFETY: three NULL-terminated arrays or strings that live in `self`.
            unsafe {
                libc::execve(
                    self.program.as_ptr(),
                    self.arguments.pointers.as_ptr(),
                    self.environment.pointers.as_ptr(),
                );
            }
            Err((Stage::Exec, errno()))
        });
        let errno = match result {
            Err((stage, errno)) => {
                say(stage as u8, errno);
                errno
            }
            Ok(()) => 0,
        };
        // SAFETY: as above.
        unsafe { libc::_exit(exec_failure_code(errno)) }
    }

    fn prepare(&self, go: RawFd, report: RawFd) -> Result<(), (Stage, i32)> {
        // Each call below is async-signal-safe and gets pointers into `self` or to locals that live through it.
        let check = |stage, rc: i64| if rc < 0 { Err((stage, errno())) } else { Ok(rc) };
        reset_signals();
        if self.own_session {
            // SAFETY: no arguments.
            check(Stage::Session, unsafe { libc::setsid() }.into())?;
        }
        for file in &self.cgroup_procs {
            write_file(file, b"0").map_err(|errno| (Stage::Cgroup, errno))?;
        }
        if let Some(score) = &self.oom_score_adj {
            match write_file(c"/proc/self/oom_score_adj", score.to_bytes()) {
                // A prover that is protected less than was wished is better than none.
                Ok(()) | Err(libc::EACCES | libc::EPERM) => {}
                Err(errno) => return Err((Stage::OomScore, errno)),
            }
        }
        for limit in &self.limits {
            set_limit(limit).map_err(|errno| (Stage::Limit, errno))?;
        }
        if let Some(mask) = &self.memory_nodes {
            // One more than there are bits: the kernel leaves out the last one (`get_nodes` in `mm/mempolicy.c`).
            let bits = NODES_MAX as usize + 1;
            // SAFETY: the mask is live and has as many bits as are read.
            let rc = unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, mask.as_ptr(), bits) };
            check(Stage::MemoryPolicy, rc)?;
        }
        if let Some(mask) = self.umask {
            // SAFETY: cannot fail.
            unsafe { libc::umask(mask) };
        }
        self.place_descriptors(go, report)?;
        if let Some(folder) = &self.folder {
            // SAFETY: a live C string.
            check(Stage::Folder, unsafe { libc::chdir(folder.as_ptr()) }.into())?;
        }
        Ok(())
    }

    /// Everything is marked close-on-exec, then the named descriptors get their numbers: first above all of them,
    /// so that none overwrites another's source, then in place (which clears the mark).
    fn place_descriptors(&self, go: RawFd, report: RawFd) -> Result<(), (Stage, i32)> {
        let check = |rc: RawFd| if rc < 0 { Err((Stage::Descriptors, errno())) } else { Ok(rc) };
        // SAFETY: marks descriptors, closes none. ENOSYS before Linux 5.11: then what the parent opened without the
        // mark stays open, which Rust's standard library never does.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        // SAFETY: a C string literal.
        let null = check(unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) })?;
        let floor = go.max(report).max(null) + 1;
        for ((_, source), moved) in self.descriptors.iter().zip(&self.moved) {
            // SAFETY: duplicates a descriptor that the parent held over the fork.
            moved.set(check(unsafe { libc::fcntl(*source, libc::F_DUPFD_CLOEXEC, floor) })?);
        }
        for standard in 0..=2 {
            // SAFETY: both numbers are valid; 0 to 2 are never `go` or `report`.
            check(unsafe { libc::dup2(null, standard) })?;
        }
        for ((number, _), moved) in self.descriptors.iter().zip(&self.moved) {
            // SAFETY: `go` and `report` lie above every `number` (see `Spawn::start`).
            check(unsafe { libc::dup2(moved.get(), *number) })?;
        }
        Ok(())
    }
}

/// As asked, or as near to that as an unprivileged process may come.
fn set_limit(wish: &ResourceLimit) -> Result<(), i32> {
    let set = |soft: u64, hard: u64| {
        let limit = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
        // SAFETY: points to a live structure, and nothing is read back.
        match unsafe { libc::prlimit64(0, wish.resource as _, &raw const limit, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(errno()),
        }
    };
    match set(wish.soft, wish.hard) {
        Err(libc::EPERM) => {}
        other => return other,
    }
    let mut now = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads into a live structure and sets nothing.
    if unsafe { libc::prlimit64(0, wish.resource as _, std::ptr::null(), &raw mut now) } < 0 {
        return Err(errno());
    }
    set(wish.soft.min(now.rlim_max), wish.hard.min(now.rlim_max))
}

type NodeMask = [u64; NODES_MAX as usize / 64];

fn node_mask(nodes: &[u32]) -> Result<Option<NodeMask>, SpawnError> {
    let mut mask = [0; NODES_MAX as usize / 64];
    for node in nodes {
        let word = mask.get_mut(*node as usize / 64).ok_or(SpawnError::Node(*node))?;
        *word |= 1u64 << (node % 64);
    }
    Ok((!nodes.is_empty()).then_some(mask))
}

/// Every signal to its default and none blocked: a prover that inherits an ignored SIGPIPE or a blocked SIGTERM
/// cannot be stopped the way its authors think.
fn reset_signals() {
    // The kernel's own structure: handler, flags, restorer, mask; all zero is SIG_DFL.
    let default = [0u64; 4];
    for signal in 1..=64 {
        // By system call, since glibc refuses to touch 32 and 33, which a parent may have left ignored.
        // SAFETY: the structure is at least as large as the kernel reads; the mask has 8 bytes. SIGKILL and SIGSTOP
        // answer EINVAL.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), std::ptr::null::<u64>(), 8usize)
        };
    }
    // SAFETY: an all-zero sigset_t is filled in by sigemptyset before it is used.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

fn write_file(path: &std::ffi::CStr, bytes: &[u8]) -> Result<(), i32> {
    // SAFETY: a live C string and a live buffer of the given length; the descriptor is closed before returning.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return Err(errno());
        }
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len());
        let result = if written < 0 { Err(errno()) } else { Ok(()) };
        libc::close(fd);
        result
    }
}

fn errno() -> i32 {
    // SAFETY: glibc and musl return a valid pointer to the thread's errno.
    unsafe { *libc::__errno_location() }
}
