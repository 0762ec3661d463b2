//! A TOML document as a tree that knows its lines.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use crate::fault::Problem;

/// A value and the line it begins on.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub raw: Raw,
    /// From 1; 0 where it was not read from a file.
    pub line: usize,
}

/// What TOML can write.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A date or a time, which no key takes.
    Time(String),
    /// An array, or an array of tables.
    List(Vec<Node>),
    /// A table.
    Table(BTreeMap<String, Entry>),
}

/// A key of a table with what it is set to.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Line of the key.
    pub line: usize,
    /// The value.
    pub node: Node,
}

impl Raw {
    /// What it is, for an error line.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number with a fraction",
            Self::Boolean(_) => "a boolean",
            Self::Time(_) => "a date or time",
            Self::List(_) => "an array",
            Self::Table(_) => "a table",
        }
    }
}

impl Node {
    /// A value that stands in no file.
    pub fn new(raw: Raw) -> Self {
        Self { raw, line: 0 }
    }

    /// From a value without lines.
    pub fn of(value: &toml::Value) -> Self {
        Self::new(match value {
            toml::Value::String(text) => Raw::Text(text.clone()),
            toml::Value::Integer(number) => Raw::Integer(*number),
            toml::Value::Float(number) => Raw::Float(*number),
            toml::Value::Boolean(is) => Raw::Boolean(*is),
            toml::Value::Datetime(time) => Raw::Time(time.to_string()),
            toml::Value::Array(items) => Raw::List(items.iter().map(Self::of).collect()),
            toml::Value::Table(table) => {
                let entry = |value| Entry { line: 0, node: Self::of(value) };
                Raw::Table(table.iter().map(|(key, value)| (key.clone(), entry(value))).collect())
            }
        })
    }

    /// One value as it stands behind a `=`; `None` where the text is none.
    pub fn of_expression(text: &str) -> Option<Self> {
        let value = DeValue::parse(text).ok()?;
        convert(value.get_ref(), 0, &mut |_| 0, &mut Vec::new())
    }
}

/// Reads a document as far as it can be read, with what is wrong with its form: at most one problem a line.
pub fn parse(text: &str) -> (BTreeMap<String, Entry>, Vec<Problem>) {
    let lines = Lines::of(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut problems: Vec<Problem> = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or_default();
        let line = lines.at(span.start);
        if problems.iter().all(|known| known.line != line) {
            let words = text.get(span).filter(|words| !words.is_empty() && !words.contains('\n'));
            problems.push(Problem::at(line, explain(error.message(), words)));
        }
    }
    let root = table(document.get_ref(), &mut |offset| lines.at(offset), &mut problems);
    problems.sort_by_key(|problem| problem.line);
    (root, problems)
}

fn explain(message: &str, words: Option<&str>) -> String {
    match (message, words) {
        ("duplicate key", Some(name)) => format!("{name} is there twice: keep one of them"),
        (message, Some(words)) if message.starts_with("string values must be quoted") => {
            format!("{words} is no value: write \"{words}\", in quotes")
        }
        (message, None) if message.starts_with("string values must be quoted") => {
            "there is no value behind the =: write one, or take the line out".to_owned()
        }
        (message, Some(words)) => format!("not TOML at {words}: {message}"),
        (message, None) => format!("not TOML: {message}"),
    }
}

fn table(
    table: &DeTable<'_>,
    line_of: &mut impl FnMut(usize) -> usize,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, Entry> {
    let mut entries = BTreeMap::new();
    for (key, value) in table {
        let line = line_of(key.span().start);
        let value_line = line_of(value.span().start);
        if let Some(node) = convert(value.get_ref(), value_line, line_of, problems) {
            entries.insert(key.get_ref().to_string(), Entry { line, node });
        }
    }
    entries
}

fn convert(
    value: &DeValue<'_>,
    line: usize,
    line_of: &mut impl FnMut(usize) -> usize,
    problems: &mut Vec<Problem>,
) -> Option<Node> {
    let raw = match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Boolean(is) => Raw::Boolean(*is),
        DeValue::Datetime(time) => Raw::Time(time.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Raw::Integer(number),
            Err(_) => {
                problems.push(Problem::at(line, format!("{number} does not fit into 64 bits")));
                return None;
            }
        },
        DeValue::Float(number) => Raw::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Array(items) => {
            let mut nodes = Vec::new();
            for item in items {
                let line = line_of(item.span().start);
                nodes.extend(convert(item.get_ref(), line, line_of, problems));
            }
            Raw::List(nodes)
        }
        DeValue::Table(inner) => Raw::Table(table(inner, line_of, problems)),
    };
    Some(Node { raw, line })
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(after_newlines).collect())
    }

    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|begin| *begin <= offset)
    }
}
