//! Printing: the values in force with their origins, and the documented example.

use std::fmt::Write;
use std::path::Path;

use serde_json::json;
use toml::Value;

use crate::declare::{Applies, Document, Key, SectionInfo};
use crate::layer::{Effective, key_of};

/// Column that origins begin in, where the values before them are short enough.
const ORIGIN_COLUMN: usize = 40;

/// Columns of the example at most, where words are that short.
const COLUMNS: usize = 100;

/// The values in force as a file that sets them, each with its origin in a comment.
pub fn toml<D: Document>(effective: &[Effective]) -> String {
    let (mut page, mut current) = (String::new(), "");
    for entry in effective {
        let Some((section, key)) = key_of::<D>(&entry.path) else { continue };
        let table = entry.path.rsplit_once('.').map_or("", |(table, _)| table);
        if table != current {
            let gap = if page.is_empty() { "" } else { "\n" };
            let header =
                if section.list { format!("[[{}]]", section.name) } else { format!("[{}]", section.name) };
            let _ = writeln!(page, "{gap}{header}");
            current = table;
        }
        let _ = match &entry.value {
            Some(value) => {
                let set = format!("{} = {value}", key.name);
                // A path may hold anything, and a comment ends with its line.
                let origin = entry.origin.to_string().replace(char::is_control, "?");
                writeln!(page, "{set:ORIGIN_COLUMN$}# {origin}")
            }
            None => writeln!(page, "# {}: {}", key.name, key.unset.unwrap_or("not set")),
        };
    }
    page
}

/// The same as one JSON document.
pub fn json(file: Option<&Path>, effective: &[Effective]) -> serde_json::Value {
    let setting = |entry: &Effective| {
        let mut object = json!({ "key": entry.path, "value": entry.value });
        if let (Some(object), Ok(serde_json::Value::Object(origin))) =
            (object.as_object_mut(), serde_json::to_value(&entry.origin))
        {
            object.extend(origin);
        }
        object
    };
    json!({
        "schema_version": sexton_model::SCHEMA_VERSION,
        "file": file,
        "settings": effective.iter().map(setting).collect::<Vec<_>>(),
    })
}

/// The documented example: every key with its default, as a comment. `head`: lines to begin with.
pub fn example<D: Document>(head: &[&str]) -> String {
    let mut page: String = head.iter().map(|line| comment(line)).collect();
    let defaults = D::default().write();
    for section in D::sections() {
        let lines = section.doc.iter().map(|line| comment(line)).collect::<String>();
        let header =
            if section.list { format!("#[[{}]]", section.name) } else { format!("[{}]", section.name) };
        let _ = write!(page, "\n{lines}{header}\n");
        let written = defaults.iter().find(|written| written.section == section.name && !section.list);
        for (index, key) in section.keys.iter().enumerate() {
            let default = written.and_then(|written| written.values.get(index)?.as_ref());
            page.push('\n');
            page.extend(key.doc.iter().map(|line| comment(line)));
            page.push_str(&comment(&how_to_set(&section, key, default)));
            let shown = key.example.map(str::to_owned).or_else(|| default.map(Value::to_string));
            let _ = writeln!(page, "#{} = {}", key.name, shown.unwrap_or_default());
        }
    }
    page
}

fn how_to_set(section: &SectionInfo, key: &Key, default: Option<&Value>) -> String {
    let mut parts = vec![(key.kind)()];
    match (default, key.unset) {
        (Some(default), _) if key.example.is_some() => parts.push(format!("default {default}")),
        (None, Some(unset)) => parts.push(format!("not set: {unset}")),
        _ => {}
    }
    if !section.list {
        parts.push(key.env_name(section.name));
    }
    match key.applies {
        Applies::Now => {}
        Applies::NextStart => parts.push("from the next start on".to_owned()),
        Applies::Restart => parts.push("needs a new supervisor".to_owned()),
    }
    format!("({})", parts.join("; "))
}

/// A text as comments, broken between words where it is too long. The space that begins a doc comment is none of it.
fn comment(text: &str) -> String {
    let text = text.strip_prefix(' ').unwrap_or(text).trim_end();
    let mut page = String::from("#");
    let mut column = 1;
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 && column + 1 + word.chars().count() > COLUMNS {
            page.push_str("\n#");
            column = 1;
        }
        if !text.is_empty() {
            page.push(' ');
        }
        page.push_str(word);
        column += 1 + word.chars().count();
    }
    page.push('\n');
    page
}
