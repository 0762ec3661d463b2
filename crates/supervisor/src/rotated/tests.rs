//! A log as the keeper writes it, and its readers at every point of a rotation.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sexton_model::exit::LAST_WORDS_BYTES;
use sexton_process::fifo;
use sexton_process::splice::Moved;

use super::*;
use crate::keeper::log::Rotation;
use crate::keeper::output::Output;

/// The least that a rotation goes by.
const SIZE: u64 = LAST_WORDS_BYTES as u64;

fn rotation(keep: u32) -> Rotation {
    Rotation { size: SIZE, age: Duration::ZERO, keep }
}

/// A run's folder with the prover's end of its FIFO.
struct Run {
    folder: tempfile::TempDir,
    prover: File,
}

impl Run {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.fifo");
        fifo::make(&path).unwrap();
        let prover = fifo::open_for_prover(&path).unwrap().into();
        Self { folder, prover }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn log(&self) -> PathBuf {
        self.path().join("output.log")
    }

    fn output(&self, keep: u32) -> Output {
        Output::open(self.path(), rotation(keep)).unwrap()
    }

    /// Writes all of it and has it copied.
    fn write(&self, output: &mut Output, bytes: &[u8]) {
        for piece in bytes.chunks(32 << 10) {
            (&self.prover).write_all(piece).unwrap();
            while matches!(output.copy(), Moved::Bytes(_)) {}
        }
    }

    fn everything(&self) -> Vec<u8> {
        tail(&self.log(), u64::MAX).unwrap().0
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "output.fifo");
        names.sort();
        names
    }
}

/// Different at every place.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

#[test]
fn every_byte_is_there_across_rotations_and_no_file_is_larger_than_said() {
    let run = Run::new();
    let mut output = run.output(9);
    let bytes = noise(5 * SIZE as usize + 1234, 1);
    run.write(&mut output, &bytes);
    assert!(run.everything() == bytes);
    let old: Vec<String> = (1..=5).map(|number| format!("output.log.{number}")).collect();
    assert_eq!(run.names(), [vec!["output.log".to_owned()], old].concat());
    for part in parts(&run.log()).unwrap() {
        assert!(part.file.metadata().unwrap().len() <= SIZE);
    }
    assert_eq!((output.dropped_bytes(), output.removed_bytes()), (0, 0));
}

#[test]
fn the_oldest_go_and_are_counted_so_the_disk_is_bounded() {
    let run = Run::new();
    let mut output = run.output(2);
    let bytes = noise(7 * SIZE as usize + 10, 2);
    run.write(&mut output, &bytes);
    assert_eq!(run.names(), ["output.log", "output.log.1", "output.log.2"]);
    assert_eq!(output.removed_bytes(), 5 * SIZE);
    assert!(run.everything() == bytes[5 * SIZE as usize..]);
}

#[test]
fn last_words_are_read_across_a_rotation() {
    let run = Run::new();
    let mut output = run.output(0);
    let bytes = noise(SIZE as usize + 3, 3);
    run.write(&mut output, &bytes);
    assert_eq!(run.names(), ["output.log", "output.log.1"], "one older file is always kept");
    let (end, total) = tail(&run.log(), SIZE).unwrap();
    assert!(end == bytes[3..] && total == bytes.len() as u64);
    assert_eq!(tail(Path::new("/nonexistent/log"), 1).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn age_rotates_at_the_next_output() {
    let run = Run::new();
    let aged = Rotation { size: 0, age: Duration::from_millis(1), keep: 3 };
    let mut output = Output::open(run.path(), aged).unwrap();
    run.write(&mut output, b"first ");
    std::thread::sleep(Duration::from_millis(2));
    run.write(&mut output, b"second");
    assert_eq!(run.names(), ["output.log", "output.log.1"]);
    assert_eq!(run.everything(), b"first second");
}

/// Every state that a keeper leaves that is killed between two steps of a rotation; whoever goes on keeps every byte, in
/// order.
#[test]
fn a_keeper_killed_in_the_middle_of_a_rotation_costs_no_byte() {
    let steps: [&[(&str, &str)]; 4] = [
        &[("output.log.2", "output.log.3")],
        &[("output.log.2", "output.log.3"), ("output.log.1", "output.log.2")],
        &[("output.log.2", "output.log.3"), ("output.log.1", "output.log.2"), ("output.log", "output.log.1")],
        &[],
    ];
    for renames in steps {
        let run = Run::new();
        let mut output = run.output(4);
        let before = noise(2 * SIZE as usize + 100, 4);
        run.write(&mut output, &before);
        drop(output);
        // Made first, whatever comes then.
        File::create(run.path().join("output.log.next")).unwrap();
        for (from, to) in renames {
            fs::rename(run.path().join(from), run.path().join(to)).unwrap();
        }
        assert!(run.everything() == before, "{renames:?}");
        let mut follower = Follower::open(&run.log(), Place::Beginning).unwrap();

        let after = noise(2 * SIZE as usize, 5);
        run.write(&mut run.output(9), &after);
        let whole = [before, after].concat();
        assert!(run.everything() == whole, "{renames:?}");
        let mut followed = Vec::new();
        read_all(&mut follower, &mut followed);
        assert!(followed == whole && !follower.has_missed(), "{renames:?}");
    }
}

#[test]
fn a_log_that_cannot_be_rotated_grows_on_and_loses_nothing() {
    let run = Run::new();
    // A folder of that name, with something in it, is in the way of the first step.
    fs::create_dir(run.path().join("output.log.next")).unwrap();
    let mut output = run.output(2);
    let bytes = noise(3 * SIZE as usize, 6);
    run.write(&mut output, &bytes);
    assert!(run.everything() == bytes);
    assert_eq!(output.dropped_bytes(), 0);
    fs::remove_dir(run.path().join("output.log.next")).unwrap();
    run.write(&mut output, b"more");
    assert_eq!(run.names(), ["output.log", "output.log.1"], "tried again");
    assert_eq!(tail(&run.log(), 4).unwrap().0, b"more");
}

fn read_all(follower: &mut Follower, into: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    loop {
        match follower.read(&mut buffer).unwrap() {
            0 => return,
            length => into.extend(&buffer[..length]),
        }
    }
}

/// The reader runs beside the writer, which rotates all the time.
#[test]
fn a_follower_sees_every_byte_once_while_files_are_renamed_under_it() {
    let run = Run::new();
    let bytes = noise(60 * SIZE as usize, 7);
    let mut output = run.output(1000);
    let done = AtomicBool::new(false);
    let followed = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut follower = Follower::open(&run.log(), Place::Beginning).unwrap();
            let mut followed = Vec::new();
            loop {
                // Asked before the reading.
                let last = done.load(Ordering::Acquire);
                read_all(&mut follower, &mut followed);
                if last {
                    assert!(!follower.has_missed());
                    return followed;
                }
                std::thread::yield_now();
            }
        });
        run.write(&mut output, &bytes);
        done.store(true, Ordering::Release);
        reader.join().unwrap()
    });
    assert!(followed == bytes, "{} of {} bytes", followed.len(), bytes.len());
}

#[test]
fn a_follower_that_is_too_slow_goes_on_with_what_is_left_and_says_so() {
    let run = Run::new();
    let mut output = run.output(1);
    run.write(&mut output, &noise(10, 8));
    let mut follower = Follower::open(&run.log(), Place::Beginning).unwrap();
    let bytes = noise(5 * SIZE as usize, 9);
    run.write(&mut output, &bytes);
    let mut followed = Vec::new();
    read_all(&mut follower, &mut followed);
    assert!(follower.has_missed() && !follower.has_missed());
    // Its own file to the end, which is open still, and then the oldest that is there.
    let left = &bytes[4 * SIZE as usize - 10..];
    assert_eq!(followed.len(), SIZE as usize + left.len());
    assert!(followed.ends_with(left));
}

#[test]
fn a_place_is_found_again_after_rotations() {
    let run = Run::new();
    let mut output = run.output(5);
    run.write(&mut output, b"before ");
    let place = Place::end(&run.log());
    let bytes = noise(2 * SIZE as usize, 10);
    run.write(&mut output, &bytes);
    let mut followed = Vec::new();
    let mut follower = Follower::open(&run.log(), place).unwrap();
    read_all(&mut follower, &mut followed);
    assert!(followed == bytes && !follower.has_missed());
    let gone = Place::In { inode: u64::MAX, offset: 3 };
    assert!(Follower::open(&run.log(), gone).unwrap().has_missed());
}

#[test]
fn other_files_of_the_folder_are_no_part_of_the_log() {
    let run = Run::new();
    for name in
        ["output.log.next", "output.log.0", "output.log.x", "output.log.2.gz", "output.logs", "run.json"]
    {
        OpenOptions::new().create(true).append(true).open(run.path().join(name)).unwrap();
    }
    assert!(parts(&run.log()).unwrap().is_empty());
}
