//! Files as they were at one moment, in one block of bytes.
//!
//! ```text
//! "sexton-files-1\n\0"                                   16 bytes
//! then, per file:
//!   kind      u8      0 contents, 1 errno, 2 beginning of the contents
//!   path      u16 le  length
//!   contents  u32 le  length; for an errno 4
//!   path, contents
//! ```
//!
//! Records follow each other without padding, so that a block cut short anywhere keeps all before the cut. Of two
//! records of one path the later one counts.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 16] = b"sexton-files-1\n\0";
const HEADER: usize = 1 + 2 + 4;

const CONTENTS: u8 = 0;
const ERRNO: u8 = 1;
const BEGINNING: u8 = 2;

/// Most bytes that a [`Recorder`] keeps of one file, so that one with thousands of lines leaves room for the others.
pub const FILE_BYTES: usize = 32 << 10;

/// Files, or why they could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    files: BTreeMap<PathBuf, Recorded>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Recorded {
    Contents(Vec<u8>),
    Errno(i32),
    Beginning(Vec<u8>),
}

/// A block that is no snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a snapshot of files: it does not begin with \"sexton-files-1\"")
    }
}

impl std::error::Error for Malformed {}

impl Snapshot {
    /// Adds what came of reading `path`. An error without errno is kept as `EIO`.
    pub fn insert(&mut self, path: impl Into<PathBuf>, read: io::Result<Vec<u8>>) {
        let recorded = match read {
            Ok(contents) => Recorded::Contents(contents),
            Err(error) => Recorded::Errno(error.raw_os_error().unwrap_or(libc::EIO)),
        };
        self.files.insert(path.into(), recorded);
    }

    /// What was recorded of `path`.
    ///
    /// # Errors
    /// The kernel's as it was then; without an errno where the file was not recorded, or not to its end: half a file is
    /// no evidence of what the other half did not say.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.files.get(path) {
            Some(Recorded::Contents(contents)) => Ok(contents.clone()),
            Some(Recorded::Errno(errno)) => Err(io::Error::from_raw_os_error(*errno)),
            Some(Recorded::Beginning(_)) => Err(io::Error::other("recorded in part only")),
            None => Err(io::Error::other("not recorded")),
        }
    }

    /// Paths of all records, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// As a block. A path of 64 KiB or a file of 4 GiB is left out.
    pub fn encode(&self) -> Vec<u8> {
        let mut block = MAGIC.to_vec();
        for (path, recorded) in &self.files {
            let errno;
            let (kind, contents) = match recorded {
                Recorded::Contents(contents) => (CONTENTS, contents.as_slice()),
                Recorded::Beginning(contents) => (BEGINNING, contents.as_slice()),
                Recorded::Errno(number) => {
                    errno = number.to_le_bytes();
                    (ERRNO, errno.as_slice())
                }
            };
            let path = path.as_os_str().as_bytes();
            if let Some(header) = header(kind, path.len(), contents.len()) {
                block.extend_from_slice(&header);
                block.extend_from_slice(path);
                block.extend_from_slice(contents);
            }
        }
        block
    }

    /// From a block. One that was cut short gives all records before the cut, and of the last one that it is not whole.
    ///
    /// # Errors
    /// It does not begin as a snapshot does.
    pub fn decode(block: &[u8]) -> Result<Self, Malformed> {
        let mut rest = block.strip_prefix(MAGIC).ok_or(Malformed)?;
        let mut files = BTreeMap::new();
        while let Some((path, recorded, after)) = first_record(rest) {
            files.insert(PathBuf::from(OsStr::from_bytes(path)), recorded);
            rest = after;
        }
        Ok(Self { files })
    }
}

fn header(kind: u8, path: usize, contents: usize) -> Option<[u8; HEADER]> {
    let path = u16::try_from(path).ok()?.to_le_bytes();
    let contents = u32::try_from(contents).ok()?.to_le_bytes();
    Some([kind, path[0], path[1], contents[0], contents[1], contents[2], contents[3]])
}

/// The first record and what follows it. Nothing where not even a path is there, or where the kind is unknown: what
/// follows cannot be trusted then.
fn first_record(block: &[u8]) -> Option<(&[u8], Recorded, &[u8])> {
    let (header, rest) = block.split_first_chunk::<HEADER>()?;
    let [kind, path_low, path_high, contents_length @ ..] = *header;
    let (path, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([path_low, path_high])))?;
    let length = u32::from_le_bytes(contents_length) as usize;
    let (contents, after, whole) = match rest.split_at_checked(length) {
        Some((contents, after)) => (contents, after, true),
        None => (rest, &[][..], false),
    };
    let recorded = match kind {
        CONTENTS if whole => Recorded::Contents(contents.to_vec()),
        CONTENTS | BEGINNING => Recorded::Beginning(contents.to_vec()),
        ERRNO => Recorded::Errno(i32::from_le_bytes(contents.try_into().ok()?)),
        _ => return None,
    };
    Some((path, recorded, after))
}

/// Writes a snapshot into a buffer of the caller's.
///
/// Allocates nothing, so that a keeper can use it on a machine without memory. (Opening a path of 384 bytes or more
/// allocates inside the standard library; an allocation that fails is an error of that one file.)
#[derive(Debug)]
pub struct Recorder<'b> {
    buffer: &'b mut [u8],
    used: usize,
    left_out: usize,
}

impl<'b> Recorder<'b> {
    /// Begins a snapshot. In a buffer of less than 16 bytes there is room for none, and what comes out decodes as
    /// [`Malformed`].
    pub fn new(buffer: &'b mut [u8]) -> Self {
        let used = match buffer.get_mut(..MAGIC.len()) {
            Some(start) => {
                start.copy_from_slice(MAGIC);
                MAGIC.len()
            }
            None => 0,
        };
        Self { buffer, used, left_out: 0 }
    }

    /// Reads the file at `path` of this host and records what came of it.
    pub fn file(&mut self, path: &Path) {
        self.add(path, File::open(path));
    }

    /// Records up to [`FILE_BYTES`] of `source`, or its error, as the file at `path`.
    pub fn add(&mut self, path: &Path, source: io::Result<impl Read>) {
        if self.try_add(path.as_os_str().as_bytes(), source).is_none() {
            self.left_out += 1;
        }
    }

    /// How many files found no room, not even for their beginning.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The block so far.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.used).unwrap_or_default()
    }

    fn try_add(&mut self, path: &[u8], source: io::Result<impl Read>) -> Option<()> {
        if self.used == 0 {
            return None;
        }
        let record = self.buffer.get_mut(self.used..)?;
        let (head, room) = record.split_at_mut_checked(HEADER + path.len())?;
        // An errno has to fit in any case.
        let length = room.len().min(FILE_BYTES);
        let room = room.get_mut(..length).filter(|room| room.len() >= size_of::<i32>())?;
        let (kind, length) = match source.and_then(|source| fill(source, room)) {
            Ok((length, true)) => (CONTENTS, length),
            Ok((length, false)) => (BEGINNING, length),
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EIO).to_le_bytes();
                room.get_mut(..errno.len())?.copy_from_slice(&errno);
                (ERRNO, errno.len())
            }
        };
        head.get_mut(..HEADER)?.copy_from_slice(&header(kind, path.len(), length)?);
        head.get_mut(HEADER..)?.copy_from_slice(path);
        self.used += head.len() + length;
        Some(())
    }
}

/// Reads into `room`: the number of bytes, and whether that was the whole file.
fn fill(mut source: impl Read, room: &mut [u8]) -> io::Result<(usize, bool)> {
    let mut length = 0;
    while let Some(free) = room.get_mut(length..).filter(|free| !free.is_empty()) {
        match read_on(&mut source, free)? {
            0 => return Ok((length, true)),
            read => length += read,
        }
    }
    Ok((length, read_on(&mut source, &mut [0])? == 0))
}

fn read_on(source: &mut impl Read, free: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(free) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn errno(snapshot: &Snapshot, path: &str) -> Option<i32> {
        snapshot.read(Path::new(path)).unwrap_err().raw_os_error()
    }

    fn denied() -> io::Result<&'static [u8]> {
        Err(io::Error::from_raw_os_error(libc::EACCES))
    }

    #[test]
    fn contents_errors_and_empty_files_come_back() {
        let mut buffer = [0; 256];
        let mut recorder = Recorder::new(&mut buffer);
        recorder.add(Path::new("/a"), Ok(&b"max\n"[..]));
        recorder.add(Path::new("/b"), denied());
        recorder.add(Path::new("/c"), Ok(&b""[..]));
        recorder.file(Path::new("/proc/self/no such file"));
        let snapshot = Snapshot::decode(recorder.bytes()).unwrap();
        assert_eq!(snapshot.read(Path::new("/a")).unwrap(), b"max\n");
        assert_eq!(errno(&snapshot, "/b"), Some(libc::EACCES));
        assert_eq!(snapshot.read(Path::new("/c")).unwrap(), b"");
        assert_eq!(errno(&snapshot, "/proc/self/no such file"), Some(libc::ENOENT));
        assert_eq!(errno(&snapshot, "/never"), None);
        assert_eq!(Snapshot::decode(&snapshot.encode()).unwrap(), snapshot);
    }

    #[test]
    fn the_recorder_reads_files_of_this_host() {
        let mut buffer = vec![0; 2 * FILE_BYTES];
        let mut recorder = Recorder::new(&mut buffer);
        recorder.file(Path::new("/proc/meminfo"));
        let snapshot = Snapshot::decode(recorder.bytes()).unwrap();
        assert!(snapshot.read(Path::new("/proc/meminfo")).unwrap().starts_with(b"MemTotal:"));
    }

    #[test]
    fn half_a_file_is_not_taken_for_a_whole_one() {
        let mut buffer = vec![0; 2 * FILE_BYTES];
        let mut recorder = Recorder::new(&mut buffer);
        recorder.add(Path::new("/just"), Ok(&vec![b'x'; FILE_BYTES][..]));
        recorder.add(Path::new("/long"), Ok(&vec![b'x'; FILE_BYTES][..]));
        assert_eq!(recorder.left_out(), 0);
        let snapshot = Snapshot::decode(recorder.bytes()).unwrap();
        assert_eq!(snapshot.read(Path::new("/just")).unwrap().len(), FILE_BYTES);
        let error = snapshot.read(Path::new("/long")).unwrap_err();
        assert_eq!((error.raw_os_error(), error.to_string().as_str()), (None, "recorded in part only"));
    }

    #[test]
    fn files_that_find_no_room_are_counted() {
        let mut buffer = [0; 64];
        let mut recorder = Recorder::new(&mut buffer);
        for _ in 0..5 {
            recorder.add(Path::new("/0123456789"), denied());
        }
        assert_eq!(recorder.left_out(), 3);
        for size in 0..16 {
            let mut tiny = vec![0; size];
            let mut recorder = Recorder::new(&mut tiny);
            recorder.add(Path::new("/"), denied());
            assert_eq!((recorder.left_out(), Snapshot::decode(recorder.bytes())), (1, Err(Malformed)));
        }
    }

    #[test]
    fn a_block_cut_anywhere_keeps_what_is_before_the_cut() {
        let mut whole = Snapshot::default();
        whole.insert("/a", Ok(b"1234".to_vec()));
        whole.insert("/b", Err(io::Error::from_raw_os_error(libc::ENODEV)));
        whole.insert("/c", Ok(b"5678".to_vec()));
        let block = whole.encode();
        for cut in MAGIC.len()..block.len() {
            let part = Snapshot::decode(&block[..cut]).unwrap();
            for path in part.paths() {
                let recorded = &part.files[path];
                assert!(
                    *recorded == whole.files[path] || matches!(recorded, Recorded::Beginning(_)),
                    "{cut}: {recorded:?}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn no_block_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Snapshot::decode(&bytes);
            let _ = Snapshot::decode(&[&MAGIC[..], &bytes].concat());
        }

        #[test]
        fn no_buffer_panics_and_what_is_written_is_read(
            size in 0usize..200,
            files in prop::collection::vec(("/[a-z]{0,9}", prop::collection::vec(any::<u8>(), 0..40)), 0..6),
        ) {
            let mut buffer = vec![0; size];
            let mut recorder = Recorder::new(&mut buffer);
            for (path, contents) in &files {
                recorder.add(Path::new(path), Ok(&contents[..]));
            }
            if let Ok(snapshot) = Snapshot::decode(recorder.bytes()) {
                for path in snapshot.paths() {
                    let wanted = files.iter().any(|(name, contents)| {
                        Path::new(name) == path
                            && match &snapshot.files[path] {
                                Recorded::Contents(read) => read == contents,
                                Recorded::Beginning(read) => contents.starts_with(read),
                                Recorded::Errno(_) => false,
                            }
                    });
                    prop_assert!(wanted);
                }
            }
        }
    }
}
