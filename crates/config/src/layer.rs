//! Layers of values, and reading through them: flag before environment before file before preset before default.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use toml::Value;

use crate::declare::{Document, Key, Section, SectionInfo};
use crate::fault::{Fault, Origin, Problem};
use crate::node::{self, Entry, Node, Raw};
use crate::setting::Setting;
use crate::{SECTIONS, unknown};

/// A value before its type is known.
#[derive(Debug, Clone)]
enum Given {
    Node(Node),
    /// Of an environment variable.
    Text(String),
}

/// The values of one source.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    values: BTreeMap<(String, String), (Origin, Given)>,
    lists: BTreeMap<String, Vec<Item>>,
}

/// One table of an array of tables.
#[derive(Debug, Clone)]
struct Item {
    origin: Origin,
    values: BTreeMap<String, (Origin, Node)>,
}

impl Layer {
    /// Values that stand in no file: `(section, key, origin, value)`.
    pub fn of(values: impl IntoIterator<Item = (&'static str, &'static str, Origin, Value)>) -> Self {
        let placed = |(section, key, origin, value): (&str, &str, _, _)| {
            ((section.to_owned(), key.to_owned()), (origin, Given::Node(Node::of(&value))))
        };
        Self { values: values.into_iter().map(placed).collect(), lists: BTreeMap::new() }
    }

    /// What the environment sets. `variable` is asked for every key's variable.
    ///
    /// # Errors
    /// A variable that is not UTF-8.
    pub fn of_environment<D: Document>(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Vec<Fault>> {
        let (mut layer, mut faults) = (Self::default(), Vec::new());
        for section in D::sections().iter().filter(|section| !section.list) {
            for key in section.keys {
                let name = key.env_name(section.name);
                let Some(text) = variable(&name) else { continue };
                let origin = Origin::Env { variable: name };
                match text.into_string() {
                    Ok(text) => {
                        let place = (section.name.to_owned(), key.name.to_owned());
                        layer.values.insert(place, (origin, Given::Text(text)));
                    }
                    Err(_) => faults.push(Fault {
                        origin,
                        key: format!("{}.{}", section.name, key.name),
                        message: "not UTF-8: set it to a text, or unset it".to_owned(),
                    }),
                }
            }
        }
        if faults.is_empty() { Ok(layer) } else { Err(faults) }
    }

    /// What a file sets, with everything that is wrong with its form or unknown in it. The sections of other programs
    /// ([`SECTIONS`](crate::SECTIONS)) are passed over.
    pub fn of_file<D: Document>(path: &Path, text: &str) -> (Self, Vec<Fault>) {
        let (tree, problems) = node::parse(text);
        Self::of_tree(&D::sections(), &tree, problems, |line| Origin::File { path: path.to_owned(), line })
    }

    /// What a preset sets. Its text is a part of the program.
    pub fn of_preset<D: Document>(preset: &'static str, text: &str) -> (Self, Vec<Fault>) {
        let (tree, problems) = node::parse(text);
        Self::of_tree(&D::sections(), &tree, problems, |_| Origin::Preset { preset })
    }

    fn of_tree(
        sections: &[SectionInfo],
        tree: &BTreeMap<String, Entry>,
        problems: Vec<Problem>,
        place: impl Fn(usize) -> Origin,
    ) -> (Self, Vec<Fault>) {
        let mut layer = Self::default();
        let fault = |line, key: String, message| Fault { origin: place(line), key, message };
        let mut faults: Vec<Fault> =
            problems.into_iter().map(|problem| fault(problem.line, String::new(), problem.text)).collect();
        for (name, entry) in tree {
            let Some(section) = sections.iter().find(|section| section.name == name) else {
                if !SECTIONS.contains(&name.as_str()) {
                    faults.push(fault(entry.line, name.clone(), unknown::section(name, entry, sections)));
                }
                continue;
            };
            let tables = match tables(section, entry) {
                Ok(tables) => tables,
                Err(message) => {
                    faults.push(fault(entry.line, name.clone(), message));
                    continue;
                }
            };
            for (line, table) in tables {
                let (known, unknown): (Vec<_>, Vec<_>) =
                    table.iter().partition(|(name, _)| section.keys.iter().any(|key| key.name == **name));
                faults.extend(unknown.into_iter().map(|(key, entry)| {
                    fault(entry.line, format!("{name}.{key}"), unknown::key(key, section, sections))
                }));
                let values =
                    known.into_iter().map(|(key, entry)| (key.clone(), place(entry.line), &entry.node));
                if section.list {
                    let values = values.map(|(key, origin, node)| (key, (origin, node.clone()))).collect();
                    layer.lists.entry(name.clone()).or_default().push(Item { origin: place(line), values });
                } else {
                    let placed = values.map(|(key, origin, node)| {
                        ((name.clone(), key), (origin, Given::Node(node.clone())))
                    });
                    layer.values.extend(placed);
                }
            }
        }
        (layer, faults)
    }
}

/// A table, and the line where it begins.
type Table<'a> = (usize, &'a BTreeMap<String, Entry>);

/// The tables of a section: one, or those of an array of tables.
fn tables<'a>(section: &SectionInfo, entry: &'a Entry) -> Result<Vec<Table<'a>>, String> {
    let table = |node: &'a Node| match &node.raw {
        Raw::Table(entries) => Some((node.line, entries)),
        _ => None,
    };
    let name = section.name;
    match (&entry.node.raw, section.list) {
        (Raw::Table(entries), false) => Ok(vec![(entry.line, entries)]),
        (Raw::List(items), true) => items
            .iter()
            .map(table)
            .collect::<Option<_>>()
            .ok_or_else(|| format!("not all of it are tables: begin each with [[{name}]]")),
        (raw, true) => Err(format!("{}, but there can be several: begin each with [[{name}]]", raw.kind())),
        (raw, false) => Err(format!("{}, but {name} is a section: begin it with [{name}]", raw.kind())),
    }
}

/// A key, its value in force, and where that was set.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// `restart.delay`, `hook[0].on`.
    pub path: String,
    /// The value; `None`: not set.
    pub value: Option<Value>,
    /// Where it was set.
    pub origin: Origin,
}

/// Reads settings through layers. [`load`] makes one.
#[derive(Debug)]
pub struct Reader<'a> {
    layers: &'a [Layer],
    /// The table that is being read, where it is one of an array of tables.
    item: Option<(String, &'a Item)>,
    /// Where each table of an array of tables begins.
    items: Vec<(String, Origin)>,
    effective: Vec<Effective>,
    faults: Vec<Fault>,
}

impl<'a> Reader<'a> {
    fn new(layers: &'a [Layer]) -> Self {
        Self { layers, item: None, items: Vec::new(), effective: Vec::new(), faults: Vec::new() }
    }

    /// The value of a key of section `S`. Every layer is read, so that a fault is found that another layer hides.
    pub fn setting<S: Section, T: Setting>(&mut self, key: &'static str, default: T) -> T {
        let path = match &self.item {
            Some((path, _)) => format!("{path}.{key}"),
            None => format!("{}.{key}", S::NAME),
        };
        let given: Vec<(&Origin, Result<T, Vec<Problem>>)> = match &self.item {
            Some((_, item)) => {
                item.values.get(key).map(|(origin, node)| (origin, T::read(node))).into_iter().collect()
            }
            None => {
                let place = (S::NAME.to_owned(), key.to_owned());
                let found = self.layers.iter().filter_map(|layer| layer.values.get(&place));
                let read = |given: &Given| match given {
                    Given::Node(node) => T::read(node),
                    Given::Text(text) => T::read_text(text),
                };
                found.map(|(origin, given)| (origin, read(given))).collect()
            }
        };
        let mut chosen: Option<(T, Origin)> = None;
        for (origin, result) in given {
            match result {
                Ok(value) if chosen.is_none() => chosen = Some((value, origin.clone())),
                Ok(_) => {}
                Err(problems) => {
                    self.faults.extend(problems.into_iter().map(|problem| Fault {
                        origin: at_line(origin, problem.line),
                        key: format!("{path}{}", problem.below),
                        message: problem.text,
                    }));
                }
            }
        }
        let (value, origin) = chosen.unwrap_or((default, Origin::Default));
        self.effective.push(Effective { path, value: value.write(), origin });
        value
    }

    /// The tables of an array of tables, of the first layer that has any.
    pub fn list<S: Section>(&mut self) -> Vec<S> {
        let layers = self.layers;
        let Some(items) = layers.iter().find_map(|layer| layer.lists.get(S::NAME)) else { return Vec::new() };
        let read = |(index, item): (usize, &'a Item)| {
            let path = format!("{}[{index}]", S::NAME);
            self.items.push((path.clone(), item.origin.clone()));
            self.item = Some((path, item));
            let section = S::read(self);
            self.item = None;
            section
        };
        items.iter().enumerate().map(read).collect()
    }
}

/// A value that goes over several lines has its faults where they are.
fn at_line(origin: &Origin, line: usize) -> Origin {
    match origin {
        Origin::File { path, .. } if line > 0 => Origin::File { path: path.clone(), line },
        other => other.clone(),
    }
}

/// Two or more values that cannot be meant together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// Paths of the keys, the one to blame first: `restart.delay`.
    pub keys: Vec<String>,
    /// What is wrong and what to do.
    pub message: String,
}

/// A configuration with the origin of each of its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded<D> {
    /// The values.
    pub config: D,
    /// Where each was set, in the order of the declaration.
    pub effective: Vec<Effective>,
}

/// Reads a document through `layers`, the first before the others, and asks `check` for contradictions. `known`: faults
/// that the layers had already.
///
/// # Errors
/// All faults, by line; at most one a line that is not even TOML.
pub fn load<D: Document>(
    layers: &[Layer],
    known: Vec<Fault>,
    check: impl FnOnce(&D, &[Effective]) -> Vec<Contradiction>,
) -> Result<Loaded<D>, Vec<Fault>> {
    let mut reader = Reader::new(layers);
    let config = D::read(&mut reader);
    let Reader { effective, mut faults, items, .. } = reader;
    faults.extend(known);
    // What was guessed of a line that is not TOML is no ground for a second complaint.
    let of_form = faults.iter().filter(|fault| fault.key.is_empty());
    let broken: BTreeSet<usize> = of_form.filter_map(|fault| line(&fault.origin)).collect();
    let is_guess = |fault: &Fault| line(&fault.origin).is_some_and(|line| broken.contains(&line));
    faults.retain(|fault| fault.key.is_empty() || !is_guess(fault));

    for Contradiction { keys, message } in check(&config, &effective) {
        let is_faulty = |key: &String| faults.iter().any(|fault| fault.key.starts_with(key.as_str()));
        if keys.iter().any(is_faulty) {
            continue;
        }
        let key = keys.into_iter().next().unwrap_or_default();
        let origin = origin_of(&key, &effective, &items);
        faults.push(Fault { origin, key, message });
    }
    if faults.is_empty() {
        return Ok(Loaded { config, effective });
    }
    faults.sort_by_key(|fault| line(&fault.origin).unwrap_or_default());
    Err(faults)
}

fn line(origin: &Origin) -> Option<usize> {
    if let Origin::File { line, .. } = origin { Some(*line) } else { None }
}

fn origin_of(path: &str, effective: &[Effective], items: &[(String, Origin)]) -> Origin {
    let of_key = effective.iter().find(|entry| entry.path == path).map(|entry| entry.origin.clone());
    match of_key {
        // The table has no such line; it has a first one.
        None | Some(Origin::Default) => items
            .iter()
            .find(|(item, _)| path.starts_with(item.as_str()))
            .map_or(Origin::Default, |(_, origin)| origin.clone()),
        Some(origin) => origin,
    }
}

/// Reads one key ahead of all others, where the layers depend on it. Its faults are left to [`load`].
pub fn peek<S: Section, T: Setting>(layers: &[Layer], key: &'static str) -> Option<T> {
    Reader::new(layers).setting::<S, Option<T>>(key, None)
}

/// The declaration of a key by its path, without the number of a table.
pub fn key_of<D: Document>(path: &str) -> Option<(SectionInfo, &'static Key)> {
    let (section, key) = path.split_once('.')?;
    let section = section.split('[').next()?;
    let info = D::sections().into_iter().find(|info| info.name == section)?;
    info.keys.iter().find(|known| known.name == key).map(|key| (info, key))
}
