//! `/proc/PID/mountinfo`: what is mounted where. Source: proc_pid_mountinfo(5), `fs/proc_namespace.c`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use sexton_model::reading::Reading;

use crate::files::Files;

/// The reader's own mounts: folders found through them are folders that the reader can open.
pub const MOUNTINFO: &str = "/proc/self/mountinfo";

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its number.
    pub id: u64,
    /// Number of the mount that it is mounted on.
    pub parent: u64,
    /// Which folder of the file system is seen at the mount point: `/` for all of it, else a bind mount. For cgroups,
    /// a path in the reader's cgroup namespace; `/..` is above its root. Lossy UTF-8, as cgroup paths are elsewhere.
    pub root: String,
    /// Where.
    pub mount_point: PathBuf,
    /// Options of the mount: `rw`, `ro`, `noexec`, ….
    pub options: Vec<String>,
    /// Type of the file system: `cgroup`, `cgroup2`, `tmpfs`, ….
    pub file_system: String,
    /// Device or other name; may be empty.
    pub source: String,
    /// Options of the file system; for v1 cgroups the controllers.
    pub super_options: Vec<String>,
}

impl Mount {
    /// Whether nothing can be written through it.
    pub fn is_read_only(&self) -> bool {
        self.options.iter().chain(&self.super_options).any(|option| option == "ro")
    }

    /// Whether the file system has this option.
    pub fn has_super_option(&self, name: &str) -> bool {
        self.super_options.iter().any(|option| option == name)
    }
}

/// All mounts of a mount namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mounts {
    /// In the kernel's order.
    pub all: Vec<Mount>,
    /// How many lines were not understood: what is not found may be in one of them.
    pub not_understood: usize,
}

impl Mounts {
    /// Reads [`MOUNTINFO`].
    pub fn read(files: &Files) -> Reading<Self> {
        files.parsed(Path::new(MOUNTINFO), |bytes| Ok(Self::parse(bytes)))
    }

    /// From the contents of a `mountinfo`.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut mounts = Self::default();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match mount(line) {
                Some(mount) => mounts.all.push(mount),
                None => mounts.not_understood += 1,
            }
        }
        mounts
    }

    /// Those that another mount on the very same place does not cover.
    pub fn uncovered(&self) -> impl Iterator<Item = &Mount> {
        self.all.iter().filter(|below| {
            !self.all.iter().any(|above| above.parent == below.id && above.mount_point == below.mount_point)
        })
    }
}

/// `ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [OPTIONAL…] - TYPE SOURCE SUPEROPTIONS`. An empty source leaves two
/// spaces.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let text = |word: Vec<u8>| String::from_utf8_lossy(&word).into_owned();
    let list = |word: &[u8]| -> Vec<String> {
        let words = word.split(|byte| *byte == b',').filter(|option| !option.is_empty());
        words.map(|option| text(unescaped(option))).collect()
    };
    let id = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let parent = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let _device = words.next()?;
    let root = text(unescaped(words.next()?));
    let mount_point = PathBuf::from(OsString::from_vec(unescaped(words.next()?)));
    let options = list(words.next()?);
    words.find(|word| *word == b"-")?;
    let file_system = text(unescaped(words.next()?));
    let source = text(unescaped(words.next()?));
    // Linux before 2.6.26 and some emulations leave the last field away.
    let super_options = list(words.next().unwrap_or_default());
    Some(Mount { id, parent, root, mount_point, options, file_system, source, super_options })
}

/// The kernel writes space, tab, newline, `#` and backslash as `\` and three octal digits. Other backslashes stay.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let octal = |digits: &[u8; 3]| {
        digits.iter().try_fold(0u32, |value, digit| {
            matches!(digit, b'0'..=b'7').then(|| value * 8 + u32::from(digit - b'0'))
        })
    };
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'\\')
            .then(|| after.split_first_chunk::<3>())
            .flatten()
            .and_then(|(digits, after)| Some((u8::try_from(octal(digits)?).ok()?, after)));
        let (byte, after) = escaped.unwrap_or((*first, after));
        bytes.push(byte);
        rest = after;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(line: &str) -> Mount {
        let mut mounts = Mounts::parse(line.as_bytes());
        assert_eq!((mounts.all.len(), mounts.not_understood), (1, 0), "{line}");
        mounts.all.remove(0)
    }

    #[test]
    fn optional_fields_may_be_none_or_many() {
        for optional in ["", "shared:7 ", "shared:7 master:8 propagate_from:2 unbindable "] {
            let mount = one(&format!(
                "35 31 0:32 / /sys/fs/cgroup/memory rw,nosuid {optional}- cgroup cgroup ro,memory"
            ));
            assert_eq!((mount.id, mount.parent, mount.root.as_str()), (35, 31, "/"));
            assert_eq!(mount.mount_point, Path::new("/sys/fs/cgroup/memory"));
            assert_eq!(mount.file_system, "cgroup");
            assert!(mount.has_super_option("memory") && mount.is_read_only());
        }
    }

    #[test]
    fn escapes_are_undone_and_other_backslashes_stay() {
        let mount = one(r"1 2 0:3 /a\040b /m\134x\011\012\043\9\0 rw - cgroup2 no\040ne rw");
        assert_eq!(mount.root, "/a b");
        assert_eq!(mount.mount_point, Path::new("/m\\x\t\n#\\9\\0"));
        assert_eq!(mount.source, "no ne");
        assert_eq!(unescaped(br"\777\40"), br"\777\40", "more than a byte, and too short");
    }

    #[test]
    fn an_empty_source_shifts_nothing() {
        let mount = one("1 2 0:3 / /m rw -  cgroup2 rw");
        assert_eq!(mount.file_system, "", "two spaces after the dash are an empty type");
        let mount = one("1 2 0:3 / /m rw - cgroup2  rw,nsdelegate");
        assert_eq!((mount.source.as_str(), mount.has_super_option("nsdelegate")), ("", true));
    }

    #[test]
    fn a_line_that_is_not_understood_is_counted_and_spoils_no_other() {
        let mounts = Mounts::parse(b"what is this\n1 2 0:3 / /m rw - tmpfs x rw\n1 2 0:3 / /m rw\n");
        assert_eq!((mounts.all.len(), mounts.not_understood), (1, 2));
    }

    #[test]
    fn a_mount_on_top_of_another_covers_it_and_a_root_with_a_later_number_covers_nothing() {
        let mounts = Mounts::parse(
            b"22 27 0:2 / /proc rw - proc proc rw\n27 1 0:1 / / rw - ext4 x rw\n\
              30 27 0:3 / /cg rw - cgroup cgroup rw,memory\n31 30 0:4 / /cg rw - tmpfs x rw\n",
        );
        let left: Vec<_> = mounts.uncovered().map(|mount| mount.id).collect();
        assert_eq!(left, [22, 27, 31]);
    }

    #[test]
    fn the_mounts_of_this_process_are_understood() {
        let mounts = Mounts::read(&Files::system()).into_value().unwrap();
        assert_eq!(mounts.not_understood, 0);
        assert!(mounts.all.iter().any(|mount| mount.mount_point == Path::new("/proc")));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Mounts::parse(&bytes);
        }

        #[test]
        fn no_damaged_line_panics(line in r"([0-9]{0,21} ?){0,3}(/[a-z\\0-7.]{0,9} ?){0,3}(- ?)?([a-z,\\ ]{0,20})") {
            let _ = Mounts::parse(line.as_bytes());
        }
    }
}
