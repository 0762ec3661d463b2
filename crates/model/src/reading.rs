//! One thing read from the system: there, not there, or not to be known, and these three never mixed up.
//!
//! "Could not read" taken for "nothing there" is how an out-of-memory kill becomes a healthy exit; so every field that
//! a kernel may lack, or a permission may hide, is a [`Reading`].

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What came of reading one thing.
///
/// In JSON always an object: `{"value":7}`, `{"value":null,"reason":"absent"}`, or
/// `{"value":null,"reason":"denied","detail":"/proc/7/stack: permission denied"}`. A `T` that itself serialises to
/// `null` cannot be told from a missing value and is not used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reading<T> {
    /// It was read.
    Value(T),
    /// It was looked for and is not there: this kernel does not offer it, or the subject has none.
    Absent,
    /// Whether it is there is not known.
    Unreadable(Obstacle),
}

/// The two answers without a value, as an error: for readings that make no sense without this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// As [`Reading::Absent`].
    Absent,
    /// As [`Reading::Unreadable`].
    Unreadable(Obstacle),
}

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Obstacle {
    /// The kind, for decisions.
    pub kind: ObstacleKind,
    /// The whole story with its path, for people. Never empty.
    pub detail: String,
}

/// Kinds of obstacle that lead to different conclusions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObstacleKind {
    /// `EACCES`, `EPERM`, or a value that the kernel blanks for readers without ptrace access: another user may know.
    Denied,
    /// `ESRCH`, or its folder went away: the task ended while it was being read.
    Vanished,
    /// It was read and does not have the expected form.
    Malformed,
    /// Any other error.
    Failed,
}

impl Obstacle {
    /// An obstacle of `kind`, told as `detail` (lower case, with the path or value).
    pub fn new(kind: ObstacleKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl<T> Reading<T> {
    /// Unreadable for a reason of `kind`, told as `detail`.
    pub fn unreadable(kind: ObstacleKind, detail: impl Into<String>) -> Self {
        Self::Unreadable(Obstacle::new(kind, detail))
    }

    /// The value, if there is one. Use it only where absent and unreadable lead to the same conclusion.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// As [`Self::value`], by move.
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// The obstacle, if it was unreadable.
    pub fn obstacle(&self) -> Option<&Obstacle> {
        match self {
            Self::Unreadable(obstacle) => Some(obstacle),
            Self::Value(_) | Self::Absent => None,
        }
    }

    /// The value, or what to answer in its place: `let stat = folder.stat().required()?;`.
    pub fn required(self) -> Result<T, Missing> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Absent => Err(Missing::Absent),
            Self::Unreadable(obstacle) => Err(Missing::Unreadable(obstacle)),
        }
    }

    /// Applies `f` to the value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        self.and_then(|value| Reading::Value(f(value)))
    }

    /// Goes on with `f` from the value.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Self::Value(value) => f(value),
            Self::Absent => Reading::Absent,
            Self::Unreadable(obstacle) => Reading::Unreadable(obstacle),
        }
    }
}

impl<T> From<Result<T, Missing>> for Reading<T> {
    fn from(result: Result<T, Missing>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(Missing::Absent) => Self::Absent,
            Err(Missing::Unreadable(obstacle)) => Self::Unreadable(obstacle),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Reading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Absent => f.write_str("none"),
            Self::Unreadable(obstacle) => write!(f, "unreadable ({obstacle})"),
        }
    }
}

/// The JSON form. `reason` is an [`ObstacleKind`] or `absent`.
#[derive(Serialize, Deserialize)]
struct Wire<T> {
    value: Option<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    Absent,
    #[serde(untagged)]
    Obstacle(ObstacleKind),
}

impl<T: Serialize> Serialize for Reading<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (reason, detail) = match self {
            Self::Value(_) => (None, None),
            Self::Absent => (Some(Reason::Absent), None),
            Self::Unreadable(Obstacle { kind, detail }) => {
                (Some(Reason::Obstacle(*kind)), Some(detail.clone()))
            }
        };
        Wire { value: self.value(), reason, detail }.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Reading<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { value, reason, detail } = Wire::deserialize(deserializer)?;
        match (value, reason) {
            (Some(value), _) => Ok(Self::Value(value)),
            (None, Some(Reason::Absent)) => Ok(Self::Absent),
            (None, Some(Reason::Obstacle(kind))) => Ok(Self::unreadable(kind, detail.unwrap_or_default())),
            (None, None) => Err(D::Error::custom("a reading without value needs a reason")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_answers_have_three_json_forms_and_come_back() {
        let denied = Reading::unreadable(ObstacleKind::Denied, "/proc/7/stack: permission denied");
        for (reading, json) in [
            (Reading::Value(7), r#"{"value":7}"#),
            (Reading::Absent, r#"{"value":null,"reason":"absent"}"#),
            (denied, r#"{"value":null,"reason":"denied","detail":"/proc/7/stack: permission denied"}"#),
        ] {
            assert_eq!(serde_json::to_string(&reading).unwrap(), json);
            assert_eq!(serde_json::from_str::<Reading<i32>>(json).unwrap(), reading);
        }
    }

    #[test]
    fn null_without_a_reason_is_refused() {
        assert!(serde_json::from_str::<Reading<i32>>(r#"{"value":null}"#).is_err());
    }

    #[test]
    fn absent_and_unreadable_survive_every_transformation() {
        let vanished = Obstacle::new(ObstacleKind::Vanished, "/proc/7/stat: no such process");
        assert_eq!(Reading::<i32>::Absent.map(|n| n + 1), Reading::Absent);
        assert_eq!(
            Reading::<i32>::Unreadable(vanished.clone()).map(|n| n + 1),
            Reading::Unreadable(vanished)
        );
        assert_eq!(Reading::Value(1).and_then(|_| Reading::<i32>::Absent), Reading::Absent);
    }
}
