//! Sizes and durations as people write and read them: the one parser and the one formatter of each.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A text that is not a size or a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a size.
    #[error(
        "\"{0}\" is not a size: write a number and a unit, like 512MiB or 1.5GiB (B, KiB, MiB, GiB, TiB, kB, MB, GB, TB)"
    )]
    Size(String),
    /// A size of 2^64 bytes or more.
    #[error("\"{0}\" is more than 16 EiB")]
    SizeTooLarge(String),
    /// Not a duration.
    #[error("\"{0}\" is not a duration: write a number and a unit, like 250ms, 30s, 5m or 1h30m")]
    Duration(String),
}

/// A number of bytes, written with a unit that is never optional: "64" could be bytes or GiB, and a prover that
/// guesses wrong dies of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

impl FromStr for Bytes {
    type Err = UnitError;

    /// A decimal number, an optional space, a unit; the unit's case counts (`Mb` is not `MB`). A fraction is rounded
    /// down to whole bytes.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bad = || UnitError::Size(text.to_owned());
        let text_trimmed = text.trim();
        let split = text_trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let (number, unit) = text_trimmed.split_at(split);
        let unit = unit.trim_start();
        let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or_else(bad)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
            return Err(bad());
        }
        let too_large = || UnitError::SizeTooLarge(text.to_owned());
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        // 18 places keep digits × scale below 2^128; further ones are below a byte for every unit.
        let digits = &fraction[..fraction.len().min(18)];
        let numerator: u128 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| bad())? };
        let denominator = 10u128.pow(digits.len() as u32);
        let bytes = u128::from(whole) * u128::from(scale) + numerator * u128::from(scale) / denominator;
        u64::try_from(bytes).map(Self).map_err(|_| too_large())
    }
}

/// Binary units with one decimal from KiB on: `512 B`, `1.5 GiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let power = if self.0 == 0 { 0 } else { (self.0.ilog2() / 10) as usize };
        if power == 0 {
            return write!(f, "{} B", self.0);
        }
        let value = self.0 as f64 / (1u64 << (10 * power)) as f64;
        write!(f, "{value:.1} {}", NAMES[power])
    }
}

/// Parses `250ms`, `30s`, `5m`, `1h30m`. A bare number, a negative one and an empty text are errors.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let bad = || UnitError::Duration(text.to_owned());
    let signed: jiff::SignedDuration = text.trim().parse().map_err(|_| bad())?;
    Duration::try_from(signed).map_err(|_| bad())
}

/// A duration as people read it, two places at most: `12 µs`, `3.4 ms`, `12.3 s`, `4m 05s`, `2h 13m`, `3d 04h`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Human(pub Duration);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match self.0 {
            d if d < Duration::from_millis(1) => write!(f, "{} µs", d.as_micros()),
            d if d < Duration::from_secs(1) => write!(f, "{:.1} ms", d.as_secs_f64() * 1e3),
            d if d < Duration::from_secs(60) => write!(f, "{:.1} s", d.as_secs_f64()),
            _ if seconds < 3_600 => write!(f, "{}m {:02}s", seconds / 60, seconds % 60),
            _ if seconds < 86_400 => write!(f, "{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
            _ => write!(f, "{}d {:02}h", seconds / 86_400, seconds / 3_600 % 24),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_a_unit_that_exists() {
        assert_eq!("64MiB".parse(), Ok(Bytes(64 << 20)));
        assert_eq!("1.5 GiB".parse(), Ok(Bytes(3 << 29)));
        assert_eq!("0.1kB".parse(), Ok(Bytes(100)));
        assert_eq!("0B".parse(), Ok(Bytes(0)));
        for bad in ["", "64", "MiB", "64Mb", "64 gib", "-1GiB", "1..5GiB", "1.GiB", ".5GiB", "1e3MB", "50G"] {
            assert!(matches!(bad.parse::<Bytes>(), Err(UnitError::Size(_))), "{bad:?}");
        }
        for large in ["99999999999999999999B", "17000000TiB"] {
            assert!(matches!(large.parse::<Bytes>(), Err(UnitError::SizeTooLarge(_))), "{large:?}");
        }
    }

    #[test]
    fn sizes_are_shown_in_binary_units() {
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Bytes(1023).to_string(), "1023 B");
        assert_eq!(Bytes(3 << 29).to_string(), "1.5 GiB");
        assert_eq!(Bytes(u64::MAX).to_string(), "16.0 EiB");
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5_400)));
        for bad in ["", "30", "-3s", "3 parsecs", "s"] {
            assert_eq!(parse_duration(bad), Err(UnitError::Duration(bad.to_owned())), "{bad:?}");
        }
    }

    #[test]
    fn durations_are_shown_short() {
        let shown = |d| Human(d).to_string();
        assert_eq!(shown(Duration::from_micros(12)), "12 µs");
        assert_eq!(shown(Duration::from_micros(3_400)), "3.4 ms");
        assert_eq!(shown(Duration::from_millis(12_340)), "12.3 s");
        assert_eq!(shown(Duration::from_secs(245)), "4m 05s");
        assert_eq!(shown(Duration::from_secs(8_000)), "2h 13m");
        assert_eq!(shown(Duration::from_secs(273_600)), "3d 04h");
    }
}
