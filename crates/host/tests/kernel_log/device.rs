//! `/dev/kmsg` with every answer that it can give, and what stands in its place in containers.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::Path;

use sexton_host::kernel_log::{KernelLog, Kmsg, events};
use sexton_model::kernel::{Door, KernelFact, KernelWindow, LogMark};
use sexton_model::reading::{ObstacleKind, Reading};

const EPIPE: i32 = 32;
const EINVAL: i32 = 22;
const EIO: i32 = 5;
const EINTR: i32 = 4;

/// Gives one answer a read, and `EAGAIN` after the last.
struct Device(VecDeque<Result<Vec<u8>, i32>>);

impl Read for Device {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.pop_front() {
            Some(Ok(record)) => {
                assert!(buffer.len() >= 8 << 10, "a shorter buffer loses long records");
                buffer[..record.len()].copy_from_slice(&record);
                Ok(record.len())
            }
            Some(Err(errno)) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

fn device(answers: impl IntoIterator<Item = Result<String, i32>>) -> Kmsg<Device> {
    let answers = answers.into_iter().map(|answer| answer.map(String::into_bytes)).collect();
    Kmsg::of(Device(answers), Path::new("/dev/kmsg"))
}

/// Record `seq`, of the kernel.
fn record(seq: u64) -> Result<String, i32> {
    Ok(format!("6,{seq},{},-;record {seq}\n", seq * 10))
}

fn numbers(window: &KernelWindow) -> Vec<u64> {
    window.records.iter().filter_map(|record| record.seq).collect()
}

fn mark_at(next_seq: u64) -> LogMark {
    LogMark { next_seq: Some(next_seq), ..LogMark::default() }
}

#[test]
fn records_after_the_mark_and_no_others() {
    let mut before = device([record(5), record(6)]);
    let mark = before.mark().unwrap();
    assert_eq!((mark.next_seq, mark.at_us, mark.last_line.as_str()), (Some(7), 60, "record 6"));
    let window = device([record(5), record(6), record(7), record(8)]).read_since(&mark).unwrap();
    assert_eq!((numbers(&window), window.from_seq, window.to_seq), (vec![7, 8], Some(7), Some(8)));
    assert!(window.is_whole() && window.door == Door::Kmsg);
    let nothing_new = device([record(5), record(6)]).read_since(&mark).unwrap();
    assert!(nothing_new.records.is_empty() && nothing_new.is_whole(), "readable and empty");
}

/// rsyslog#4395, sysklogd#26: EPIPE ended the watcher.
#[test]
fn an_overrun_is_a_gap_and_reading_goes_on() {
    let mut kmsg = device([record(1), Err(EPIPE), record(5), Err(EINTR), record(6)]);
    let window = kmsg.read().unwrap();
    assert_eq!((numbers(&window), window.gaps, window.lost), (vec![1, 5, 6], 1, 3));
}

#[test]
fn a_record_that_cannot_be_read_is_a_gap() {
    for unreadable in [Err(EINVAL), Ok("no record".to_owned())] {
        let window = device([record(1), unreadable.clone(), record(3)]).read().unwrap();
        assert_eq!((numbers(&window), window.gaps, window.lost), (vec![1, 3], 1, 1));
        let at_the_end = device([record(1), unreadable]).read().unwrap();
        assert!(!at_the_end.is_whole());
    }
}

#[test]
fn a_ring_that_went_round_since_the_mark_has_lost_records() {
    let window = device([record(100), record(101)]).read_since(&mark_at(40)).unwrap();
    assert_eq!((numbers(&window), window.gaps, window.lost), (vec![100, 101], 1, 60));
    let before_the_mark = device([record(1), Err(EPIPE), record(8)]).read_since(&mark_at(8)).unwrap();
    assert!(before_the_mark.is_whole());
}

#[test]
fn an_open_device_gives_the_news_and_notices_what_it_missed() {
    let mut kmsg = device([record(1)]);
    assert_eq!(numbers(&kmsg.read().unwrap()), [1]);
    let quiet = kmsg.read().unwrap();
    assert!(quiet.records.is_empty() && quiet.is_whole());
}

#[test]
fn a_mark_of_another_boot_is_refused() {
    let error = device([record(1)]).read_since(&mark_at(500)).unwrap_err();
    assert_eq!(error.kind, ObstacleKind::Malformed);
    assert!(error.detail.contains("another boot"), "{error}");
}

#[test]
fn what_users_wrote_is_counted_and_not_believed() {
    let spoofed =
        "8,2,20,-;Out of memory: Killed process 1 (init) total-vm:1kB, anon-rss:1kB, file-rss:0kB\n";
    let window = device([record(1), Ok(spoofed.to_owned()), record(3)]).read().unwrap();
    assert_eq!((numbers(&window), window.refused), (vec![1, 3], 1));
    assert!(window.is_whole() && events(&window).is_empty());
}

#[test]
fn a_failing_device_is_unreadable() {
    assert_eq!(device([record(1), Err(EIO)]).read().unwrap_err().kind, ObstacleKind::Failed);
    assert_eq!(device([Err(1)]).read().unwrap_err().kind, ObstacleKind::Denied);
}

/// cadvisor#3015, kubedee#7: an unusable /dev/kmsg counted as "no OOM", or was fatal.
#[test]
fn stand_ins_of_containers_are_not_an_empty_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kmsg");
    std::fs::write(&file, "").unwrap();
    for path in [Path::new("/dev/null"), &file, folder.path(), &folder.path().join("none")] {
        let reading = KernelLog::at(path).all();
        let obstacle = reading.obstacle().unwrap_or_else(|| panic!("{}: {reading:?}", path.display()));
        assert!(obstacle.detail.starts_with(path.to_str().unwrap()), "{obstacle}");
        assert!(KernelLog::at(path).mark().obstacle().is_some());
    }
    assert!(device([]).read().is_err(), "a console that says nothing");
}

const LOG: &str = "<5>[    0.000000] Linux version 6.18.44
<30>[    1.000000] systemd[1]: hello
<6>[   10.000005][  T123] record 1
<6>[   10.000005][     C1] record 2
<8>[   10.000007] Out of memory: Killed process 1 (init) total-vm:1kB
<6>[   11.000000] NVRM: The NVIDIA GPU 0000:b3:00.0
<6>[   11.000000] NVRM: (PCI ID: 10de:26b5) installed in this system has
<6>[   11.000000] NVRM: fallen off the bus and is not responding to commands.
";

fn log() -> io::Result<Vec<u8>> {
    Ok(LOG.into())
}

fn refused() -> io::Result<Vec<u8>> {
    Err(io::Error::from_raw_os_error(1))
}

fn second_door(read: fn() -> io::Result<Vec<u8>>) -> KernelLog {
    KernelLog::at("/nowhere/kmsg").or_syslog(read)
}

#[test]
fn the_second_door_serves_where_the_device_is_missing() {
    let window = second_door(log).all().into_value().unwrap();
    assert_eq!((window.door, window.records.len(), window.refused), (Door::Syslog, 6, 2));
    let record = &window.records[1];
    assert_eq!((record.at_us, record.text.as_str(), record.seq), (10_000_005, "record 1", None));
    let [event] = &events(&window)[..] else { panic!() };
    let KernelFact::GpuLost(lost) = &event.fact else { panic!("{event:?}") };
    assert_eq!(lost.pci.as_deref(), Some("0000:b3:00.0"), "named two lines before");
}

#[test]
fn marks_of_the_second_door_tell_records_of_one_microsecond_apart() {
    let mark = |line: &str| LogMark { next_seq: None, at_us: 10_000_005, last_line: line.to_owned() };
    let texts = |mark: &LogMark| -> Vec<String> {
        let window = second_door(log).since(mark).into_value().unwrap();
        assert!(window.is_whole());
        window.records.into_iter().map(|record| record.text).collect()
    };
    assert_eq!(texts(&mark("record 1"))[0], "record 2");
    assert!(texts(&mark("record 2"))[0].starts_with("NVRM"));
    let end = second_door(log).mark().into_value().unwrap();
    assert!(texts(&end).is_empty());
    let gone = second_door(log).since(&mark("overwritten")).into_value().unwrap();
    assert!(!gone.is_whole() && gone.records.len() == 3, "later ones, and a gap");
}

#[test]
fn a_mark_fits_both_doors() {
    let record = |seq, text: &str| Ok(format!("6,{seq},10000005,-;{text}\n"));
    let through_kmsg = device([record(7, "record 0\\x0arecord 1")]).mark().unwrap();
    let window = second_door(log).since(&through_kmsg).into_value().unwrap();
    assert_eq!(window.records[0].text, "record 2");
    let through_syslog = LogMark { next_seq: None, ..through_kmsg };
    let mut kmsg = device([record(7, "record 0\\x0arecord 1"), record(8, "record 2")]);
    assert_eq!(numbers(&kmsg.read_since(&through_syslog).unwrap()), [8]);
}

#[test]
fn a_log_without_times_is_read() {
    let window = second_door(|| Ok(b"<6>hog[5]: segfault at 1 ip 2 sp 3 error 4\n".to_vec())).all();
    assert_eq!(events(&window.into_value().unwrap())[0].fact.pid(), Some(5));
}

#[test]
fn both_doors_closed_is_unreadable_with_both_reasons() {
    let reading = second_door(refused).all();
    let obstacle = reading.obstacle().unwrap();
    assert_eq!(obstacle.kind, ObstacleKind::Denied, "somebody else may know");
    assert!(obstacle.detail.contains("/nowhere/kmsg") && obstacle.detail.contains("syslog(2)"), "{obstacle}");
}

#[test]
fn a_made_up_log_is_not_the_hosts() {
    let gvisor =
        || Ok(b"<6>[    0.000000] Starting gVisor...\n<6>[    0.354495] Daemonizing children...\n".to_vec());
    assert!(second_door(gvisor).all().obstacle().is_some());
    assert!(second_door(|| Ok(b"hello\n".to_vec())).all().obstacle().is_some());
    let cleared = second_door(|| Ok(Vec::new())).all();
    assert!(matches!(cleared, Reading::Value(window) if window.records.is_empty()), "dmesg --clear");
}
