//! Names of the model's enumerations, as its JSON has them.

use std::fmt;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{self, Visitor};
use sexton_model::event::EventKind;
use sexton_model::verdict::Cause;
use toml::Value;

use crate::fault::{Problem, nearest};
use crate::node::Node;
use crate::setting::{Name, Setting, read_string};

impl Name for Cause {
    fn kind() -> String {
        "a cause of death like gpu_fault".to_owned()
    }

    fn from_name(name: &str) -> Result<Self, String> {
        parse(name, "cause of death")
    }

    fn to_name(&self) -> String {
        text(self)
    }
}

impl Setting for EventKind {
    fn kind() -> String {
        "a kind of event like \"run_ended\"".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        read_string(node, |name| parse(name, "kind of event"))
    }

    fn write(&self) -> Option<Value> {
        Some(Value::String(text(self)))
    }
}

fn parse<T: for<'a> Deserialize<'a>>(name: &str, what: &str) -> Result<T, String> {
    // The name that stands for all the unknown ones is none.
    let known = || variants::<T>().iter().copied().filter(|known| *known != "other");
    if known().any(|known| known == name) {
        return T::deserialize(StrDeserializer::<de::value::Error>::new(name))
            .map_err(|error| error.to_string());
    }
    Err(match nearest(name, known()) {
        Some(meant) => format!("\"{name}\" is no {what}: did you mean {meant}?"),
        None => format!("\"{name}\" is no {what}: they are {}", known().collect::<Vec<_>>().join(", ")),
    })
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The names of an enumeration without data.
fn variants<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    T::deserialize(Ask).err().map_or(&[], |Names(names)| names)
}

/// Hands back the names that an enumeration tells before it is given a value.
struct Ask;

#[derive(Debug)]
struct Names(&'static [&'static str]);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("only names were asked for")
    }
}

impl std::error::Error for Names {}

impl de::Error for Names {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> de::Deserializer<'de> for Ask {
    type Error = Names;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Names> {
        Err(Names(&[]))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Names> {
        Err(Names(variants))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_model_and_the_nearest_is_named() {
        assert_eq!(Cause::from_name("gpu_fault"), Ok(Cause::GpuFault));
        assert_eq!(Cause::GpuFault.to_name(), "gpu_fault");
        assert_eq!(
            Cause::from_name("gpu-faults"),
            Err("\"gpu-faults\" is no cause of death: did you mean gpu_fault?".to_owned())
        );
        assert_eq!(parse::<EventKind>("run_ended", ""), Ok(EventKind::RunEnded));
        let all = parse::<EventKind>("other", "kind of event").unwrap_err();
        assert!(all.contains("they are supervisor_started, ") && !all.ends_with("other"), "{all}");
    }
}
