//! Sections and keys that do not exist: what was meant.

use crate::SECTIONS;
use crate::declare::SectionInfo;
use crate::fault::nearest;
use crate::node::{Entry, Raw};

/// What to say of a section, or of a key outside of all sections.
pub(crate) fn section(name: &str, entry: &Entry, sections: &[SectionInfo]) -> String {
    if !matches!(entry.node.raw, Raw::Table(_) | Raw::List(_)) {
        let owner = sections.iter().find(|section| section.keys.iter().any(|key| key.name == name));
        return match owner {
            Some(owner) => format!("stands outside of every section: move it below [{}]", owner.name),
            None => "no such key, and it stands outside of every section: take it out".to_owned(),
        };
    }
    match nearest(name, SECTIONS.iter().copied()) {
        Some(meant) => format!("no such section: did you mean [{meant}]?"),
        None => format!("no such section: the sections are {}", SECTIONS.join(", ")),
    }
}

/// What to say of a key of a section that exists.
pub(crate) fn key(name: &str, section: &SectionInfo, sections: &[SectionInfo]) -> String {
    let here = section.keys.iter().map(|key| key.name);
    if let Some(meant) = nearest(name, here.clone()) {
        return format!("no such key: did you mean {meant}?");
    }
    let has = |section: &&SectionInfo| section.keys.iter().any(|key| key.name == name);
    if let Some(owner) = sections.iter().find(has) {
        return format!("no such key here: it belongs into [{}]", owner.name);
    }
    let all: Vec<&str> = here.collect();
    format!("no such key: the keys of [{}] are {}", section.name, all.join(", "))
}
