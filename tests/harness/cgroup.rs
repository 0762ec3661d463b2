//! Cgroups of our own under the v1 controllers, for deaths that need one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{DEADLINE, Skip, wait_until};

/// A child of our own cgroup in one v1 hierarchy. Dropped, it is thawed, emptied by SIGKILL, and removed.
#[derive(Debug)]
pub struct V1Cgroup {
    path: PathBuf,
}

impl V1Cgroup {
    /// Makes one under `controller`: `memory`, `freezer`, ….
    ///
    /// # Errors
    /// [`Skip`] where that controller is not mounted as v1, or its tree cannot be written.
    pub fn new(controller: &str) -> Result<Self, Skip> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let own = own_folder(controller).ok_or_else(|| Skip(format!("no v1 {controller} controller")))?;
        let name = format!("sexton-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = own.join(name);
        fs::create_dir(&path).map_err(|error| Skip::because(path.display(), error))?;
        Ok(Self { path })
    }

    /// Makes one below it, which must be dropped first.
    ///
    /// # Errors
    /// [`Skip`] where the tree cannot be written.
    pub fn child(&self, name: &str) -> Result<Self, Skip> {
        let path = self.path.join(name);
        fs::create_dir(&path).map_err(|error| Skip::because(path.display(), error))?;
        Ok(Self { path })
    }

    /// The words before a command line that is to run in it. A supervisor started so makes no other one for its prover.
    pub fn entrance(&self) -> Vec<String> {
        let script = "echo $$ > \"$0\" && SEXTON_CGROUP_CREATE=never exec \"$@\"";
        let procs = self.path.join("cgroup.procs").display().to_string();
        ["sh", "-c", script].map(str::to_owned).into_iter().chain([procs]).collect()
    }

    /// As [`Self::entrance`], but a supervisor may make cgroups for its provers below it.
    pub fn entrance_for_parents(&self) -> Vec<String> {
        let procs = self.path.join("cgroup.procs").display().to_string();
        ["sh", "-c", "echo $$ > \"$0\" && exec \"$@\""]
            .map(str::to_owned)
            .into_iter()
            .chain([procs])
            .collect()
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Contents of one of its files, without the newline at the end.
    #[track_caller]
    pub fn read(&self, file: &str) -> String {
        let path = self.path.join(file);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.trim_end().to_owned()
    }

    /// Writes to one of its files.
    #[track_caller]
    pub fn write(&self, file: &str, value: impl ToString) {
        let path = self.path.join(file);
        let value = value.to_string();
        fs::write(&path, &value).unwrap_or_else(|error| panic!("{value} to {}: {error}", path.display()));
    }

    /// Moves a process with all its threads into it.
    #[track_caller]
    pub fn add_process(&self, pid: i32) {
        self.write("cgroup.procs", pid);
    }

    /// Moves one thread into it: v1 only.
    #[track_caller]
    pub fn add_thread(&self, tid: i32) {
        self.write("tasks", tid);
    }

    /// Limits memory, swap included, to `bytes`. In this order: the second limit may not be below the first.
    #[track_caller]
    pub fn limit_memory(&self, bytes: u64) {
        self.write("memory.limit_in_bytes", bytes);
        if self.path.join("memory.memsw.limit_in_bytes").exists() {
            self.write("memory.memsw.limit_in_bytes", bytes);
        }
    }

    /// Freezes its threads, and waits until they are.
    #[track_caller]
    pub fn freeze(&self) {
        self.write("freezer.state", "FROZEN");
        wait_until(DEADLINE, "freezer.state FROZEN", || self.read("freezer.state") == "FROZEN");
    }

    /// Lets its threads go on.
    #[track_caller]
    pub fn thaw(&self) {
        self.write("freezer.state", "THAWED");
    }
}

impl Drop for V1Cgroup {
    fn drop(&mut self) {
        let freezer = self.path.join("freezer.state");
        if freezer.exists() {
            let _ = fs::write(freezer, "THAWED");
        }
        // Only what a test moved into this cgroup, which no one else knows, is in it or below it.
        remove(&self.path);
    }
}

/// Removes the cgroups that a supervisor called `name` made for its runs: one that was killed leaves them behind.
pub(crate) fn remove_cgroups_of_runs(name: &str) {
    let prefix = format!("sexton-{name}-");
    let beside_us = ["memory", UNIFIED].into_iter().filter_map(own_folder);
    let folders = beside_us.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    for folder in folders.filter(|folder| folder.file_name().to_string_lossy().starts_with(&prefix)) {
        remove(&folder.path());
    }
}

fn remove(cgroup: &Path) {
    let begin = Instant::now();
    while !removed(cgroup) {
        if begin.elapsed() > DEADLINE {
            eprintln!("{} cannot be removed", cgroup.display());
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills what is in a cgroup and below it; whether it is gone.
fn removed(path: &Path) -> bool {
    for below in fs::read_dir(path).into_iter().flatten().flatten() {
        if below.file_type().is_ok_and(|kind| kind.is_dir()) {
            removed(&below.path());
        }
    }
    // Gone already: a supervisor that still lived was quicker.
    if fs::remove_dir(path).is_ok() || !path.exists() {
        return true;
    }
    for pid in fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default().lines() {
        if let Ok(pid) = pid.parse::<i32>() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    false
}

/// The hierarchy of v2, which `/proc/self/cgroup` lists without a controller.
const UNIFIED: &str = "";

/// The folder of our own cgroup: mount point + (our path below the root of that mount).
fn own_folder(controller: &str) -> Option<PathBuf> {
    let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let ours = cgroups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let listed = fields.next()?.split(',').any(|name| name == controller);
        listed.then(|| fields.next()).flatten()
    })?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut file_system = file_system.split(' ');
        let is_ours = match file_system.next()? {
            "cgroup" => file_system.nth(1)?.split(',').any(|option| option == controller),
            kind => kind == "cgroup2" && controller == UNIFIED,
        };
        let mut mount = mount.split(' ').skip(3);
        let (root, mount_point) = (mount.next()?, mount.next()?);
        let below = ours.strip_prefix(root.trim_end_matches('/'))?;
        is_ours.then(|| Path::new(mount_point).join(below.trim_start_matches('/')))
    })
}
