//! Types that a key can have: how each is read, written and described.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use sexton_model::units::{Bytes, parse_duration};
use toml::Value;

use crate::fault::Problem;
use crate::node::{Node, Raw};

/// A type that a key can have. What [`write`](Setting::write) gives, [`read`](Setting::read) reads back as the same value.
pub trait Setting: Sized {
    /// What to write, for the reference and for error lines: `a duration like "30s"`.
    fn kind() -> String;

    /// Reads a value.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn read(node: &Node) -> Result<Self, Vec<Problem>>;

    /// `None`: the key is not set.
    fn write(&self) -> Option<Value>;

    /// Reads what an environment variable holds: a TOML value, or the text of one that is a string.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn read_text(text: &str) -> Result<Self, Vec<Problem>> {
        let expression = Node::of_expression(text);
        let structured =
            expression.as_ref().is_some_and(|node| matches!(node.raw, Raw::List(_) | Raw::Table(_)));
        match expression.map(|node| Self::read(&node)) {
            Some(Ok(value)) => Ok(value),
            Some(Err(problems)) if structured => Err(problems),
            _ => Self::read(&Node::new(Raw::Text(text.to_owned()))),
        }
    }
}

/// Says that a value has the wrong type.
pub fn wrong_type<T: Setting>(node: &Node) -> Vec<Problem> {
    let found = match &node.raw {
        Raw::Text(text) => format!("\"{text}\""),
        Raw::Integer(number) => number.to_string(),
        Raw::Float(number) => number.to_string(),
        Raw::Boolean(is) => is.to_string(),
        other => other.kind().to_owned(),
    };
    vec![Problem::at(node.line, format!("{found} will not do: write {}", T::kind()))]
}

/// Reads a type that is written as a string.
///
/// # Errors
/// Another type; a text that the type does not take, in its own words.
pub fn read_string<T: Setting, E: Display>(
    node: &Node,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, Vec<Problem>> {
    let Raw::Text(text) = &node.raw else { return Err(wrong_type::<T>(node)) };
    parse(text).map_err(|error| vec![Problem::at(node.line, error.to_string())])
}

impl<T: Setting> Setting for Option<T> {
    fn kind() -> String {
        T::kind()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        T::read(node).map(Some)
    }

    fn write(&self) -> Option<Value> {
        self.as_ref().and_then(T::write)
    }
}

impl Setting for bool {
    fn kind() -> String {
        "true or false".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        if let Raw::Boolean(is) = node.raw { Ok(is) } else { Err(wrong_type::<Self>(node)) }
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Boolean(*self))
    }
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn kind() -> String {
                format!("a whole number from {} to {}", <$type>::MIN, <$type>::MAX)
            }

            fn read(node: &Node) -> Result<Self, Vec<Problem>> {
                let Raw::Integer(number) = node.raw else { return Err(wrong_type::<Self>(node)) };
                Self::try_from(number).map_err(|_| wrong_type::<Self>(node))
            }

            fn write(&self) -> Option<Value> {
                Some(Value::Integer((*self).into()))
            }
        }
    )*};
}

whole_numbers!(u8, u16, u32, i32);

impl Setting for String {
    fn kind() -> String {
        "a text in quotes".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        read_string(node, |text| {
            if text.contains('\0') { Err("a text must not hold a NUL byte") } else { Ok(text.to_owned()) }
        })
    }

    fn write(&self) -> Option<Value> {
        Some(Value::String(self.clone()))
    }
}

/// A word of a command line. One that is not UTF-8 cannot be written.
impl Setting for OsString {
    fn kind() -> String {
        <String as Setting>::kind()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        String::read(node).map(Into::into)
    }

    fn write(&self) -> Option<Value> {
        Some(Value::String(self.to_string_lossy().into_owned()))
    }
}

/// An absolute path: nobody can tell what a relative one in a file is relative to.
impl Setting for PathBuf {
    fn kind() -> String {
        "an absolute path like \"/data/zk\"".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        String::read(node)?;
        read_string(node, |text| {
            if Path::new(text).is_absolute() {
                Ok(Self::from(text))
            } else {
                Err(format!("\"{text}\" is not an absolute path: write it from / on"))
            }
        })
    }

    fn write(&self) -> Option<Value> {
        Some(Value::String(self.to_string_lossy().into_owned()))
    }
}

impl Setting for Duration {
    fn kind() -> String {
        "a duration like \"30s\", \"10m\" or \"1h30m\"".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        read_string(node, parse_duration)
    }

    fn write(&self) -> Option<Value> {
        Some(Value::String(duration_text(*self)))
    }
}

/// A duration exactly, in the largest unit that divides it: `90s`, `10m`, `1500ms`.
pub fn duration_text(duration: Duration) -> String {
    const UNITS: [(&str, u128); 6] = [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    let exact = UNITS.iter().find(|(_, scale)| nanos.is_multiple_of(*scale));
    exact.map(|(unit, scale)| format!("{}{unit}", nanos / scale)).unwrap_or_default()
}

impl Setting for Bytes {
    fn kind() -> String {
        "a size like \"512MiB\" or \"380GiB\"".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        read_string(node, Self::from_str)
    }

    fn write(&self) -> Option<Value> {
        Some(Value::String(size_text(*self)))
    }
}

/// A size exactly, in the largest binary unit that divides it: `380GiB`, `1536MiB`.
pub fn size_text(Bytes(bytes): Bytes) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let exact = UNITS.iter().find(|(_, power)| bytes != 0 && bytes.trailing_zeros() >= *power);
    exact.map_or_else(|| format!("{bytes}B"), |(unit, power)| format!("{}{unit}", bytes >> power))
}

impl Setting for SocketAddr {
    fn kind() -> String {
        "an address with a port like \"127.0.0.1:9900\"".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        read_string(node, |text| {
            text.parse().map_err(|_| format!("\"{text}\" is no address: write {}", Self::kind()))
        })
    }

    fn write(&self) -> Option<Value> {
        Some(Value::String(self.to_string()))
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn kind() -> String {
        format!("an array [...], each of it {}", T::kind())
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        let Raw::List(items) = &node.raw else { return Err(wrong_type::<Self>(node)) };
        let (mut values, mut problems) = (Self::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            match T::read(item) {
                Ok(value) => values.push(value),
                Err(inner) => {
                    problems.extend(inner.into_iter().map(|problem| problem.under(&format!("[{index}]"))));
                }
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Array(self.iter().filter_map(T::write).collect()))
    }
}

/// What the key of an inline table can be.
pub trait Name: Sized + Ord {
    /// What to write.
    fn kind() -> String;

    /// # Errors
    /// What is wrong with it and what to do.
    fn from_name(name: &str) -> Result<Self, String>;

    /// As it is written.
    fn to_name(&self) -> String;
}

impl Name for String {
    fn kind() -> String {
        "a name".to_owned()
    }

    fn from_name(name: &str) -> Result<Self, String> {
        Ok(name.to_owned())
    }

    fn to_name(&self) -> String {
        self.clone()
    }
}

impl Name for u8 {
    fn kind() -> String {
        "a number from 0 to 255".to_owned()
    }

    fn from_name(name: &str) -> Result<Self, String> {
        name.parse().map_err(|_| format!("\"{name}\" will not do: write {}", <Self as Name>::kind()))
    }

    fn to_name(&self) -> String {
        self.to_string()
    }
}

impl<K: Name, V: Setting> Setting for BTreeMap<K, V> {
    fn kind() -> String {
        format!("a table {{ name = value, ... }}, each name {}, each value {}", K::kind(), V::kind())
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        let Raw::Table(entries) = &node.raw else { return Err(wrong_type::<Self>(node)) };
        let (mut values, mut problems) = (Self::new(), Vec::new());
        for (name, entry) in entries {
            let step = format!(".{name}");
            match (K::from_name(name), V::read(&entry.node)) {
                (Ok(key), Ok(value)) => drop(values.insert(key, value)),
                (key, value) => {
                    problems.extend(key.err().map(|text| Problem::at(entry.line, text).under(&step)));
                    let inner = value.err().into_iter().flatten();
                    problems.extend(inner.map(|problem| problem.under(&step)));
                }
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    fn write(&self) -> Option<Value> {
        let entry = |(key, value): (&K, &V)| Some((key.to_name(), value.write()?));
        Some(Value::Table(self.iter().filter_map(entry).collect()))
    }
}

/// A type with a few values that have names.
pub trait Choice: Copy + Eq + 'static {
    /// Every value with its name.
    const ALL: &'static [(&'static str, Self)];

    /// The name of this one.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }

    /// `"always", "on-failure" or "never"`.
    fn kind() -> String {
        let quoted: Vec<String> = Self::ALL.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        match quoted.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => quoted.concat(),
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// Another type, another name.
    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        let Raw::Text(text) = &node.raw else {
            let found = node.raw.kind();
            return Err(vec![Problem::at(node.line, format!("{found} will not do: write {}", Self::kind()))]);
        };
        Self::ALL.iter().find(|(name, _)| name == text).map(|(_, value)| *value).ok_or_else(|| {
            vec![Problem::at(node.line, format!("\"{text}\" will not do: write {}", Self::kind()))]
        })
    }
}

/// Makes types with a [`Choice`] into a [`Setting`].
#[macro_export]
macro_rules! choices {
    ($($type:ty { $($name:literal = $value:ident),* $(,)? })*) => {$(
        impl $crate::Choice for $type {
            const ALL: &'static [(&'static str, Self)] = &[$(($name, Self::$value)),*];
        }

        impl $crate::Setting for $type {
            fn kind() -> String {
                <Self as $crate::Choice>::kind()
            }

            fn read(node: &$crate::Node) -> Result<Self, Vec<$crate::Problem>> {
                <Self as $crate::Choice>::read(node)
            }

            fn write(&self) -> Option<$crate::toml::Value> {
                Some($crate::toml::Value::String($crate::Choice::name(*self).to_owned()))
            }
        }
    )*};
}
