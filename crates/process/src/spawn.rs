//! Makes a process that waits, fully prepared, until it may run its program.
//!
//! ```text
//! parent                                child
//! Spawn::start ── fork ───────────────► reset signals, session, cgroups, limits, descriptors, folder
//!              ◄─ "prepared" ──────────
//! (records pid, start time, cgroups
//!  durably)                             waits
//! Held::release ─ one byte ───────────► execve
//!              ◄─ end of file: it runs; or stage + errno: it does not, and exits with 127 or 126
//! ```
//!
//! Dropping a [`Held`] ends the child without its program having run, and so does the death of the parent: there is
//! no prover without a record.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::Pidfd;

/// What to run, and in which surroundings. Nothing is inherited that is not named here.
#[derive(Debug, Default)]
pub struct Spawn {
    /// The executable: a path, or a name that is looked for on `PATH` of `environment`.
    pub program: OsString,
    /// `argv`, the program's name for itself first.
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Working folder; the parent's where `None`.
    pub folder: Option<PathBuf>,
    /// `(number, descriptor)`: what the child has open. Numbers 0, 1 and 2 are `/dev/null` where not given.
    pub descriptors: Vec<(RawFd, OwnedFd)>,
    /// `cgroup.procs` files that the child writes itself into before its program runs (works for v1 and v2;
    /// `CLONE_INTO_CGROUP` is v2 only).
    pub cgroup_procs: Vec<PathBuf>,
    /// Soft and hard limits by `RLIMIT_*` number.
    pub limits: Vec<(u32, libc::rlimit)>,
    /// Value for `/proc/self/oom_score_adj`; the parent's where `None`. Lowering it takes CAP_SYS_RESOURCE; without, it
    /// stays as it is.
    pub oom_score_adj: Option<i32>,
    /// File mode creation mask; the parent's where `None`.
    pub umask: Option<u32>,
    /// Whether it leads a session of its own, out of reach of the terminal's signals.
    pub own_session: bool,
}

/// What the child was doing when something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// `setsid`
    Session = 1,
    /// Joining a cgroup.
    Cgroup,
    /// `setrlimit`
    Limit,
    /// Writing `oom_score_adj`.
    OomScore,
    /// Placing descriptors.
    Descriptors,
    /// `chdir`
    Folder,
    /// `execve`
    Exec,
}

impl Stage {
    const ALL: [Self; 7] = [
        Self::Session,
        Self::Cgroup,
        Self::Limit,
        Self::OomScore,
        Self::Descriptors,
        Self::Folder,
        Self::Exec,
    ];

    /// The stage with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| *stage as u8 == number)
    }
}

/// Why there is no running program.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A name, argument or variable with a NUL byte in it.
    #[error("a NUL byte in {0:?} cannot be passed to a program")]
    Nul(OsString),
    /// The kernel made no process, pipe or pidfd.
    #[error("no process could be made: {0}")]
    Fork(#[source] io::Error),
    /// A step in the child failed, with its errno.
    #[error("{}: {}", stage_text(*.0), io::Error::from_raw_os_error(*.1))]
    Child(Stage, i32),
    /// The child ended before it could say anything.
    #[error("the new process ended before its program could run")]
    Vanished,
}

fn stage_text(stage: Stage) -> &'static str {
    match stage {
        Stage::Session => "cannot start a session",
        Stage::Cgroup => "cannot join the cgroup",
        Stage::Limit => "cannot set a resource limit",
        Stage::OomScore => "cannot set oom_score_adj",
        Stage::Descriptors => "cannot place file descriptors",
        Stage::Folder => "cannot enter the working folder",
        Stage::Exec => "cannot execute",
    }
}

impl SpawnError {
    /// The failed step and its errno, where a child got as far as that.
    pub fn step(&self) -> Option<(Stage, i32)> {
        match self {
            Self::Child(stage, errno) => Some((*stage, *errno)),
            _ => None,
        }
    }
}

/// The limit that keeps a child from dumping core; it may raise it again up to what the parent has.
pub fn no_core() -> (u32, libc::rlimit) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: points to a live rlimit. A failure leaves both at 0.
    unsafe { libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit) };
    (libc::RLIMIT_CORE, libc::rlimit { rlim_cur: 0, ..limit })
}

/// Exit code of a child whose program could not be executed, as shells have it: 127 not found, 126 not executable.
pub const fn exec_failure_code(errno: i32) -> i32 {
    if matches!(errno, libc::ENOENT | libc::ENOTDIR) { 127 } else { 126 }
}

/// A child that is prepared and waits.
#[derive(Debug)]
pub struct Held {
    pid: i32,
    pidfd: Pidfd,
    go: PipeWriter,
    report: PipeReader,
}

impl Spawn {
    /// Makes the child and waits until it is prepared: it is in its cgroups and has its own identity, but its
    /// program does not run yet.
    ///
    /// # Errors
    /// [`SpawnError`]; a child that was made is reaped then.
    pub fn start(self) -> Result<Held, SpawnError> {
        let image = Image::new(&self)?;
        let (go_read, go) = io::pipe().map_err(SpawnError::Fork)?;
        let (report, report_write) = io::pipe().map_err(SpawnError::Fork)?;
        // Above every number that the child's own descriptors get, so that placing those overwrites neither.
        let floor = self.descriptors.iter().map(|(number, _)| *number).max().unwrap_or(0).max(2) + 1;
        let go_read = moved_above(go_read.into(), floor).map_err(SpawnError::Fork)?;
        let report_write = moved_above(report_write.into(), floor).map_err(SpawnError::Fork)?;

        // SAFETY: `Image::run_in_child` makes system calls on memory prepared above and nothing else: it takes no
        // lock and allocates nothing, so other threads of the parent may have held any lock at the fork.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(SpawnError::Fork(io::Error::last_os_error())),
            0 => {
                // The child would otherwise hold its own gate open, and never see the parent's death.
                // SAFETY: the child's copy, which nothing in the child uses; it never returns to drop `go`.
                unsafe { libc::close(go.as_raw_fd()) };
                image.run_in_child(go_read.as_raw_fd(), report_write.as_raw_fd())
            }
            pid => pid,
        };
        drop((go_read, report_write));
        // The child is ours and unreaped, so its PID cannot mean another process.
        let pidfd = Pidfd::open(pid).map_err(SpawnError::Fork)?;
        let mut held = Held { pid, pidfd, go, report };
        match held.read_report()? {
            Some(Report::Prepared) => Ok(held),
            Some(Report::Failed(stage, errno)) => {
                held.pidfd.wait().map_err(SpawnError::Fork)?;
                Err(SpawnError::Child(stage, errno))
            }
            None => {
                held.pidfd.wait().map_err(SpawnError::Fork)?;
                Err(SpawnError::Vanished)
            }
        }
    }
}

enum Report {
    Prepared,
    Failed(Stage, i32),
}

impl Held {
    /// PID of the child.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Handle on the child.
    pub fn pidfd(&self) -> &Pidfd {
        &self.pidfd
    }

    /// Lets the child run its program. Returns once it runs or has failed to.
    ///
    /// The child is not reaped when that fails: it ends with [`exec_failure_code`], and whoever records endings
    /// records this one like any other.
    pub fn release(mut self) -> (Pidfd, Result<(), SpawnError>) {
        let result = match self.go.write_all(b"g") {
            // EPIPE: killed while it waited. Its wait status says by what.
            Err(_) => Err(SpawnError::Vanished),
            Ok(()) => match self.read_report() {
                Ok(None) => Ok(()),
                Ok(Some(Report::Failed(stage, errno))) => Err(SpawnError::Child(stage, errno)),
                Ok(Some(Report::Prepared)) => Err(SpawnError::Vanished),
                Err(error) => Err(error),
            },
        };
        (self.pidfd, result)
    }

    /// One record of five bytes (stage, errno), or `None` at the end of file that close-on-exec brings.
    fn read_report(&mut self) -> Result<Option<Report>, SpawnError> {
        let mut record = [0; 5];
        match self.report.read_exact(&mut record) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other.map_err(SpawnError::Fork)?,
        }
        let [number, errno @ ..] = record;
        Ok(Some(match Stage::from_number(number) {
            Some(stage) => Report::Failed(stage, i32::from_ne_bytes(errno)),
            None => Report::Prepared,
        }))
    }
}

/// The same pipe end at a number of at least `floor`. The old one is closed: a write end that stays open here would hide
/// the child's death from whoever reads.
fn moved_above(end: OwnedFd, floor: RawFd) -> io::Result<OwnedFd> {
    use nix::fcntl::{FcntlArg, fcntl};
    let number = fcntl(&end, FcntlArg::F_DUPFD_CLOEXEC(floor))?;
    // SAFETY: the number that F_DUPFD_CLOEXEC returns is new and ours.
    Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(number) })
}

/// Everything the child needs between `fork` and `execve`, laid out beforehand.
struct Image {
    program: CString,
    arguments: Pointers,
    environment: Pointers,
    folder: Option<CString>,
    cgroup_procs: Vec<CString>,
    limits: Vec<(u32, libc::rlimit)>,
    oom_score_adj: Option<CString>,
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
    fn new(spawn: &Spawn) -> Result<Self, SpawnError> {
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
            umask: spawn.umask,
            moved: vec![std::cell::Cell::new(-1); descriptors.len()],
            descriptors,
            own_session: spawn.own_session,
        })
    }

    /// The child's side. System calls only.
    fn run_in_child(&self, go: RawFd, report: RawFd) -> ! {
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
        for (resource, limit) in &self.limits {
            // SAFETY: points to a live rlimit.
            check(Stage::Limit, unsafe { libc::setrlimit(*resource, limit) }.into())?;
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

/// Where `execvp(3)` would find `program`: itself when it holds a slash, else the first executable file of that name
/// on `path`; where there is none, a file of that name that is not executable; else a path that does not exist, so that
/// executing it fails with the errno that says so.
pub fn find_program(program: &OsStr, path: Option<&OsStr>) -> PathBuf {
    if program.as_bytes().contains(&b'/') || program.is_empty() {
        return PathBuf::from(program);
    }
    let path = path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let is_executable = |file: &Path| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    // A plain name would be looked for in the working folder by execve.
    let missing = || PathBuf::from(OsString::from_vec([b"/nonexistent/", program.as_bytes()].concat()));
    let found = |fits: &dyn Fn(&Path) -> bool| {
        std::env::split_paths(path).map(|folder| folder.join(program)).find(|file| fits(file))
    };
    found(&is_executable).or_else(|| found(&|file| file.is_file())).unwrap_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_model::wait::WaitStatus;

    fn shell(script: &str) -> Spawn {
        Spawn {
            program: "/bin/sh".into(),
            arguments: ["sh", "-c", script].map(OsString::from).to_vec(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            ..Default::default()
        }
    }

    fn output_of(mut spawn: Spawn) -> String {
        let (mut reader, writer) = io::pipe().unwrap();
        spawn.descriptors.push((1, writer.into()));
        let (pidfd, result) = spawn.start().unwrap().release();
        result.unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        pidfd.wait().unwrap();
        text
    }

    #[test]
    fn a_held_child_exists_but_has_not_run_its_program() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("ran");
        let held = shell(&format!("touch {}; exit 7", mark.display())).start().unwrap();
        let identity = crate::identity(held.pid()).unwrap();
        assert_eq!(identity.pid, held.pid());
        assert!(!mark.exists());
        let (pidfd, result) = held.release();
        result.unwrap();
        assert_eq!(pidfd.wait().unwrap().status, WaitStatus::exited(7));
        assert!(mark.exists());
    }

    #[test]
    fn dropping_a_held_child_ends_it_without_its_program() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("ran");
        let held = shell(&format!("touch {}", mark.display())).start().unwrap();
        let pidfd = Pidfd::open(held.pid()).unwrap();
        drop(held);
        assert_eq!(pidfd.wait().unwrap().status, WaitStatus::exited(127));
        assert!(!mark.exists());
    }

    #[test]
    fn exec_failure_is_reported_with_its_errno_and_leaves_the_ending_to_be_recorded() {
        for (program, errno, code) in [
            ("/no/such/prover", libc::ENOENT, 127),
            ("/etc/passwd", libc::EACCES, 126),
            ("no-such-name", libc::ENOENT, 127),
        ] {
            let spawn =
                Spawn { program: program.into(), arguments: vec![program.into()], ..Default::default() };
            let (pidfd, result) = spawn.start().unwrap().release();
            assert_eq!(result.unwrap_err().step(), Some((Stage::Exec, errno)), "{program}");
            assert_eq!(pidfd.wait().unwrap().status, WaitStatus::exited(code), "{program}");
        }
    }

    #[test]
    fn a_file_on_the_path_that_is_not_executable_is_found_after_all_that_are() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tool");
        std::fs::write(&file, "").unwrap();
        let path = format!("/nonexistent:{}", folder.path().display());
        assert_eq!(find_program(OsStr::new("tool"), Some(OsStr::new(&path))), file);
        assert!(!find_program(OsStr::new("other"), Some(OsStr::new(&path))).exists());
    }

    #[test]
    fn failures_before_exec_name_their_stage() {
        let folder = Spawn { folder: Some("/no/such/folder".into()), ..shell("true") };
        assert_eq!(folder.start().unwrap_err().step(), Some((Stage::Folder, libc::ENOENT)));
        let cgroup = Spawn { cgroup_procs: vec!["/no/such/cgroup.procs".into()], ..shell("true") };
        assert_eq!(cgroup.start().unwrap_err().step(), Some((Stage::Cgroup, libc::ENOENT)));
        let nul = Spawn { arguments: vec!["a\0b".into()], ..shell("true") };
        assert!(matches!(nul.start(), Err(SpawnError::Nul(_))));
    }

    #[test]
    fn signals_are_reset_whatever_the_parent_ignores() {
        // The test runner ignores SIGPIPE, as every Rust program does.
        let status = output_of(shell("grep -E '^Sig(Blk|Ign)' /proc/self/status"));
        let masks: Vec<_> = status.split_ascii_whitespace().filter(|word| !word.starts_with("Sig")).collect();
        assert_eq!(masks, ["0000000000000000", "0000000000000000"], "{status}");
    }

    #[test]
    fn only_named_descriptors_are_open() {
        let extra = std::fs::File::open("/etc/passwd").unwrap();
        let spawn = Spawn { descriptors: vec![(7, extra.into())], ..shell("cd /proc/self/fd && echo *") };
        // `echo *` of the shell itself: the folder's own descriptor is 3.
        let open = output_of(spawn);
        let numbers: Vec<&str> = open.split_ascii_whitespace().filter(|number| *number != "3").collect();
        assert_eq!(numbers, ["0", "1", "2", "7"]);
    }

    #[test]
    fn descriptors_may_swap_numbers() {
        let (a, b) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        std::fs::write(a.path(), "a").unwrap();
        std::fs::write(b.path(), "b").unwrap();
        let open = |file: &tempfile::NamedTempFile| OwnedFd::from(std::fs::File::open(file.path()).unwrap());
        let (fd_a, fd_b) = (open(&a), open(&b));
        let (number_a, number_b) = (fd_a.as_raw_fd(), fd_b.as_raw_fd());
        let spawn = Spawn {
            descriptors: vec![(number_b, fd_a), (number_a, fd_b)],
            ..shell(&format!("cat /proc/self/fd/{number_b} /proc/self/fd/{number_a}"))
        };
        assert_eq!(output_of(spawn), "ab");
    }

    #[test]
    fn limits_session_environment_and_folder_are_as_asked() {
        let spawn = Spawn {
            limits: vec![(libc::RLIMIT_CORE, libc::rlimit { rlim_cur: 0, rlim_max: 0 })],
            own_session: true,
            folder: Some("/usr".into()),
            oom_score_adj: Some(500),
            ..shell(
                "ulimit -c; ulimit -Hc; pwd; cat /proc/self/oom_score_adj; env | grep -cv -e ^PATH= -e ^PWD= -e ^_=; [ $(cut -d' ' -f6 /proc/self/stat) = $$ ] && echo leads",
            )
        };
        assert_eq!(output_of(spawn), "0\n0\n/usr\n500\n0\nleads\n");
    }

    #[test]
    fn peek_leaves_the_zombie_and_has_its_usage() {
        let (pidfd, result) = shell("exit 3").start().unwrap().release();
        result.unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !pidfd.has_ended().unwrap() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        let peeked = pidfd.peek().unwrap().unwrap();
        assert_eq!(peeked.status, WaitStatus::exited(3));
        assert!(peeked.usage.max_rss_bytes > 0);
        assert_eq!(pidfd.reap().unwrap().unwrap().status, WaitStatus::exited(3));
        assert_eq!(pidfd.reap().unwrap_err().raw_os_error(), Some(libc::ECHILD));
    }

    #[test]
    fn a_stranger_that_is_not_reaped_has_no_status() {
        let (pidfd, result) = shell("exit 42").start().unwrap().release();
        result.unwrap();
        while !pidfd.has_ended().unwrap() {
            std::thread::yield_now();
        }
        // An unreaped zombie answers 0 without the mask's bit: that is not "exited with 0".
        assert_eq!(pidfd.exit_status_of_stranger(), None);
        pidfd.wait().unwrap();
        // Linux ≥ 6.15 keeps the raw status for whoever holds the pidfd; older ones do not say.
        assert!(matches!(pidfd.exit_status_of_stranger(), None | Some(WaitStatus { code: Some(42), .. })));
    }
}
