//! A limit, and "no limit" as a value of its own.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// A limit of a cgroup. Ordered: every number of bytes is below `Unlimited`. In JSON a number of bytes, or
/// `"unlimited"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Limit {
    /// So many bytes.
    Bytes(u64),
    /// None is set here.
    #[serde(with = "unlimited")]
    Unlimited,
}

impl Limit {
    /// The number of bytes, where there is one.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Unlimited => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => Bytes(*bytes).fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

mod unlimited {
    use serde::de::{Error, Unexpected};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("unlimited")
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "unlimited" => Ok(()),
            other => {
                Err(D::Error::invalid_value(Unexpected::Str(other), &"a number of bytes or \"unlimited\""))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlimited_is_above_every_number_and_has_its_own_json() {
        assert!(Limit::Bytes(u64::MAX) < Limit::Unlimited);
        for (limit, json) in [(Limit::Bytes(64), "64"), (Limit::Unlimited, "\"unlimited\"")] {
            assert_eq!(serde_json::to_string(&limit).unwrap(), json);
            assert_eq!(serde_json::from_str::<Limit>(json).unwrap(), limit);
        }
        assert!(serde_json::from_str::<Limit>("\"max\"").is_err());
    }
}
