//! Who sent a SIGKILL: a private instance of tracefs (kernel `Documentation/trace/ftrace.rst`, "Instances"). Opt-in.
//!
//! Nothing here happens by itself: [`mounted`] only looks, [`mount`] mounts only when it is called, and
//! [`KillTrace::start`] makes an instance. That needs root. An instance outlives its maker, so there is one fixed name,
//! and a left-over of that name is removed at the next start; one that is *in use* cannot be removed, and the second
//! supervisor of a host is told so.

pub mod line;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags};
use sexton_model::kernel::trace::Trace;
use sexton_model::reading::{Missing, Obstacle, ObstacleKind, Reading};

use crate::files::Files;
use crate::mounts::Mounts;

/// Name of our instance.
pub const INSTANCE: &str = "sexton";

/// Buffer of each CPU: a few hundred kills. The default of 1.4 MiB a CPU would be 180 MiB on a host with 128.
const BUFFER_KIB: &str = "16";

/// Most of one [`KillTrace::read`].
const MOST_BYTES: usize = 1 << 20;

/// Where tracefs is mounted. Absent: nowhere; [`mount`] can do that.
pub fn mounted(files: &Files) -> Reading<PathBuf> {
    Mounts::read(files).and_then(|mounts| {
        let found = mounts.uncovered().find(|mount| mount.file_system == "tracefs" && !mount.is_read_only());
        found.map_or(Reading::Absent, |mount| Reading::Value(mount.mount_point.clone()))
    })
}

/// A tracefs that we mounted. Dropped, it is unmounted.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
}

impl Mounted {
    /// Where.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

/// Mounts tracefs at the folder `at`, usually `/sys/kernel/tracing`.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN, `ENODEV` where the kernel has no tracefs, `ENOENT` without the folder.
pub fn mount(at: &Path) -> io::Result<Mounted> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("sexton", at, "tracefs", flags, None)?;
    Ok(Mounted { at: at.to_owned() })
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Detached: it goes away when the last file in it is closed.
        let _ = rustix::mount::unmount(&self.at, UnmountFlags::DETACH);
    }
}

/// A trace of all SIGKILLs and OOM victims of the host, from its start on. Dropped, its instance is removed.
///
/// Poll it for news.
#[derive(Debug)]
pub struct KillTrace {
    // Dropped in this order: the kernel does not remove an instance whose pipe is open.
    pipe: File,
    instance: Instance,
    /// End of the last piece read, which may be the beginning of a line.
    rest: Vec<u8>,
}

/// The folder of our instance. Dropped, it is removed.
#[derive(Debug)]
struct Instance {
    folder: PathBuf,
}

impl KillTrace {
    /// Makes the instance in the tracefs at `tracefs`, after removing a left-over of the same name.
    ///
    /// Absent: this kernel has no instances or no such event. Unreadable: no permission, or another one is at it.
    pub fn start(tracefs: &Path) -> Reading<Self> {
        Self::try_start(&tracefs.join("instances").join(INSTANCE)).into()
    }

    fn try_start(folder: &Path) -> Result<Self, Missing> {
        let instance = Instance::make(folder)?;
        instance.set("buffer_size_kb", BUFFER_KIB)?;
        instance.set("events/signal/signal_generate/filter", "sig==9")?;
        let pipe = instance.open("trace_pipe", File::options().read(true).custom_flags(libc::O_NONBLOCK))?;
        // By default a poll waits until the buffer is half full.
        instance.set_if_there("buffer_percent", "0")?;
        instance.set("events/signal/signal_generate/enable", "1")?;
        // Without this one, the signal of the OOM killer is seen all the same.
        instance.set_if_there("events/oom/mark_victim/enable", "1")?;
        Ok(Self { pipe, instance, rest: Vec::new() })
    }

    /// What happened since the last call; does not wait. Events are taken out of the buffer, so nobody else sees them.
    pub fn read(&mut self) -> Reading<Trace> {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut piece = [0; 4096];
        while bytes.len() <= MOST_BYTES {
            match self.pipe.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => bytes.extend_from_slice(piece.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.rest = bytes;
                    return Err(missing(&self.instance.folder.join("trace_pipe"), &error)).into();
                }
            }
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        self.rest = bytes.split_off(whole);
        Reading::Value(line::parse(&bytes))
    }
}

impl AsFd for KillTrace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl Instance {
    fn make(folder: &Path) -> Result<Self, Missing> {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(missing(folder, &error)),
            Ok(()) | Err(_) => {}
        }
        fs::create_dir(folder).map_err(|error| missing(folder, &error))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Opens one of its files, which is there already: one that is not is an ability that this kernel lacks.
    fn open(&self, file: &str, options: &OpenOptions) -> Result<File, Missing> {
        let path = self.folder.join(file);
        options.open(&path).map_err(|error| missing(&path, &error))
    }

    fn set(&self, file: &str, value: &str) -> Result<(), Missing> {
        let mut opened = self.open(file, File::options().write(true))?;
        opened.write_all(value.as_bytes()).map_err(|error| missing(&self.folder.join(file), &error))
    }

    /// For what older kernels lack (`buffer_percent` came with 4.21, `mark_victim` with 4.14).
    fn set_if_there(&self, file: &str, value: &str) -> Result<(), Missing> {
        match self.set(file, value) {
            Err(Missing::Absent) => Ok(()),
            other => other,
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

fn missing(path: &Path, error: &io::Error) -> Missing {
    let (kind, advice) = match error.raw_os_error() {
        Some(libc::ENOENT) => return Missing::Absent,
        Some(libc::EPERM | libc::EACCES) => (ObstacleKind::Denied, ": tracing needs root"),
        Some(libc::EBUSY) => (ObstacleKind::Failed, ": another supervisor of this host traces already"),
        _ => (ObstacleKind::Failed, ""),
    };
    Missing::Unreadable(Obstacle::new(kind, format!("{}: {error}{advice}", path.display())))
}
