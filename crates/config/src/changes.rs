//! What differs between two configurations, and from when on it counts.

use serde::Serialize;
use toml::Value;

use crate::declare::{Applies, Document};

/// A key with another value than before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// `restart.delay`; for an array of tables its name, `hook`.
    pub key: String,
    /// Before; `None`: not set.
    pub old: Option<Value>,
    /// Now; `None`: not set.
    pub new: Option<Value>,
    /// From when on.
    pub applies: Applies,
}

impl std::fmt::Display for Change {
    /// `restart.delay: "1s" -> "5s"`. Tables and lists are not shown: an environment may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_long = |value: &Value| matches!(value, Value::Table(_) | Value::Array(_));
        if self.old.iter().chain(&self.new).any(is_long) {
            return write!(f, "{} has changed", self.key);
        }
        let text = |value: &Option<Value>| value.as_ref().map_or("not set".to_owned(), Value::to_string);
        write!(f, "{}: {} -> {}", self.key, text(&self.old), text(&self.new))
    }
}

/// Every change, in the order of the declaration.
pub fn between<D: Document>(old: &D, new: &D) -> Vec<Change> {
    let (old, new) = (old.write(), new.write());
    let mut changes = Vec::new();
    for section in D::sections() {
        let of = |written: &[crate::Written]| -> Vec<Vec<Option<Value>>> {
            let own = written.iter().filter(|written| written.section == section.name);
            own.map(|written| written.values.clone()).collect()
        };
        let (old, new) = (of(&old), of(&new));
        if section.list {
            if old != new {
                let applies = section.keys.iter().map(|key| key.applies).max().unwrap_or(Applies::Now);
                changes.push(Change {
                    key: section.name.to_owned(),
                    old: tables(&section, &old),
                    new: tables(&section, &new),
                    applies,
                });
            }
            continue;
        }
        let pairs = old.into_iter().flatten().zip(new.into_iter().flatten());
        let changed = section.keys.iter().zip(pairs).filter(|(_, (old, new))| old != new);
        changes.extend(changed.map(|(key, (old, new))| Change {
            key: format!("{}.{}", section.name, key.name),
            old,
            new,
            applies: key.applies,
        }));
    }
    changes
}

fn tables(section: &crate::SectionInfo, items: &[Vec<Option<Value>>]) -> Option<Value> {
    let table = |values: &Vec<Option<Value>>| {
        let named = section.keys.iter().zip(values);
        Value::Table(named.filter_map(|(key, value)| Some((key.name.to_owned(), value.clone()?))).collect())
    };
    Some(Value::Array(items.iter().map(table).collect()))
}
