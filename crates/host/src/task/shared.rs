//! Who has which shared memory open: it outlives a process whose memory it was.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sexton_model::reading::Reading;
use sexton_model::task::SharedFile;

use super::Tasks;
use super::folder::numbered_entries;
use crate::files::unreadable;

/// Descriptors of one process that are looked at.
const DESCRIPTORS_MAX: usize = 16_384;

impl Tasks {
    /// The shared-memory files that process `pid` has open, each once. Of one that it maps and has closed nothing shows here:
    /// that stands in `maps`, which takes the process' memory lock and is not read.
    ///
    /// Only links that name shared memory are followed, so that no dead file server holds the reader.
    pub fn shared_files(&self, pid: i32) -> Reading<Vec<SharedFile>> {
        let folder = self.path_of(pid).join("fd");
        numbered_entries(&folder).map(|descriptors| {
            let mut found: Vec<SharedFile> = descriptors
                .into_iter()
                .take(DESCRIPTORS_MAX)
                .filter_map(|descriptor| shared_file(&folder.join(descriptor.to_string())))
                .collect();
            found.sort();
            found.dedup_by_key(|file| (file.device, file.inode));
            found
        })
    }

    /// PIDs of all processes that can be seen, in ascending order.
    pub fn all(&self) -> Reading<Vec<i32>> {
        numbered_entries(&self.root).map(|mut pids| {
            pids.sort_unstable();
            pids
        })
    }

    /// Name of process `pid`, of up to 15 bytes, lossy UTF-8.
    pub fn name(&self, pid: i32) -> Reading<String> {
        self.thread_name(pid, pid)
    }

    /// When process `pid` started, clock ticks since boot: tells whether it is still the process that had this PID.
    pub fn start_ticks(&self, pid: i32) -> Reading<u64> {
        let path: PathBuf = self.path_of(pid).join("stat");
        match fs::read(&path) {
            Ok(bytes) => crate::files::parsed(&path, super::parse::stat(&bytes)).map(|stat| stat.starttime),
            Err(error) => unreadable(&path, &error),
        }
    }
}

fn shared_file(link: &Path) -> Option<SharedFile> {
    let target = fs::read_link(link).ok()?;
    let name = shared_name(target.to_str()?)?;
    let meta = fs::metadata(link).ok()?;
    let bytes = meta.st_blocks().saturating_mul(512);
    Some(SharedFile { device: meta.st_dev(), inode: meta.st_ino(), name: name.to_owned(), bytes })
}

fn shared_name(target: &str) -> Option<&str> {
    let name = target.strip_suffix(" (deleted)").unwrap_or(target);
    let is_shared = name.starts_with("/memfd:")
        || name.starts_with("/dev/shm/")
        || name.starts_with("/SYSV")
        || (name == "/dev/zero" && name != target);
    is_shared.then(|| name.strip_prefix('/').filter(|name| name.starts_with("memfd:")).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_name_shared_memory() {
        for (target, name) in [
            ("/memfd:pool (deleted)", Some("memfd:pool")),
            ("/memfd: (deleted) (deleted)", Some("memfd: (deleted)")),
            ("/dev/shm/x", Some("/dev/shm/x")),
            ("/SYSV00000000 (deleted)", Some("/SYSV00000000")),
            ("/dev/zero (deleted)", Some("/dev/zero")),
            ("/dev/zero", None),
            ("/mnt/nfs/memfd:x", None),
            ("socket:[7]", None),
        ] {
            assert_eq!(shared_name(target), name, "{target}");
        }
    }
}
