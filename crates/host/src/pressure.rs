//! Pressure stall information: `/proc/pressure/*`, and `memory.pressure` of a v2 cgroup. Source: kernel
//! `Documentation/accounting/psi.rst`.

use std::path::Path;

use sexton_model::memory::{Pressure, Stall};
use sexton_model::reading::Reading;

use crate::files::{Files, unreadable};
use crate::flat_keyed::number;

/// Pressure on memory, whole host.
pub const MEMORY: &str = "/proc/pressure/memory";
/// Pressure on processors.
pub const CPU: &str = "/proc/pressure/cpu";
/// Pressure on disks.
pub const IO: &str = "/proc/pressure/io";

/// Reads one of these files. Absent: this kernel has no PSI, or it is switched off.
pub fn read(files: &Files, path: &Path) -> Reading<Pressure> {
    bytes(files, path).and_then(|bytes| crate::files::parsed(path, parse(&bytes)))
}

/// Its contents. Where PSI is compiled in but switched off (`psi=0`, `cgroup.pressure`), reading fails with `EOPNOTSUPP`.
pub(crate) fn bytes(files: &Files, path: &Path) -> Reading<Vec<u8>> {
    match files.read(path) {
        Ok(bytes) => Reading::Value(bytes),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Reading::Absent,
        Err(error) => unreadable(path, &error),
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same with `full`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Pressure, String> {
    let text = String::from_utf8_lossy(bytes);
    let line = |kind: &str| {
        let mut words = text.lines().map(str::split_whitespace);
        words.find_map(|mut words| (words.next() == Some(kind)).then_some(words))
    };
    let stall = |kind: &str| match line(kind) {
        Some(words) => {
            stall(words).map(Reading::Value).ok_or_else(|| format!("the line {kind:?} is incomplete"))
        }
        None => Ok(Reading::Absent),
    };
    let pressure = Pressure { some: stall("some")?, full: stall("full")? };
    match (&pressure.some, &pressure.full) {
        (Reading::Absent, Reading::Absent) => Err("has neither a line some nor full".to_owned()),
        _ => Ok(pressure),
    }
}

fn stall<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Option<Stall> {
    let value = |key: &str| {
        let mut pairs = words.clone().filter_map(|word| word.split_once('='));
        pairs.find_map(|(name, value)| (name == key).then_some(value))
    };
    let ratio = |key: &str| {
        let percent: f64 = value(key)?.parse().ok()?;
        percent.is_finite().then(|| (percent / 100.0).clamp(0.0, 1.0))
    };
    Some(Stall {
        avg10_ratio: ratio("avg10")?,
        avg60_ratio: ratio("avg60")?,
        avg300_ratio: ratio("avg300")?,
        total_us: number(value("total")?)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::files::Snapshot;

    #[test]
    fn percent_become_shares() {
        let text = b"some avg10=50.00 avg60=0.25 avg300=100.00 total=681245\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        let pressure = parse(text).unwrap();
        let some = Stall { avg10_ratio: 0.5, avg60_ratio: 0.0025, avg300_ratio: 1.0, total_us: 681_245 };
        assert_eq!(pressure.some, Reading::Value(some));
        assert_eq!(pressure.full.value().map(|full| full.total_us), Some(7));
    }

    #[test]
    fn before_linux_5_13_the_cpu_has_no_line_full() {
        let pressure = parse(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=3\n").unwrap();
        assert_eq!(pressure.full, Reading::Absent);
    }

    #[test]
    fn psi_that_is_off_is_absent_and_what_is_denied_is_not() {
        let mut snapshot = Snapshot::default();
        for (path, errno) in [("/off", libc::EOPNOTSUPP), ("/none", libc::ENOENT), ("/denied", libc::EACCES)]
        {
            snapshot.insert(path, Err(std::io::Error::from_raw_os_error(errno)));
        }
        let files = Files::Snapshot(snapshot);
        assert_eq!(read(&files, Path::new("/off")), Reading::Absent);
        assert_eq!(read(&files, Path::new("/none")), Reading::Absent);
        assert!(read(&files, Path::new("/denied")).obstacle().is_some());
    }

    #[test]
    fn incomplete_lines_are_refused() {
        for text in ["", "some", "some avg10=1", "full\u{a0}", "some avg10=nan avg60=0 avg300=0 total=0"] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn shares_stay_between_0_and_1(percent in "-?[0-9]{1,30}(\\.[0-9]{1,9})?") {
            let text = format!("some avg10={percent} avg60={percent} avg300={percent} total=99999999999999999999");
            let some = parse(text.as_bytes()).unwrap().some.into_value().unwrap();
            prop_assert!((0.0..=1.0).contains(&some.avg10_ratio));
            prop_assert_eq!(some.total_us, u64::MAX);
        }
    }
}
