//! A part of a bundle: files, and what is to be said about them.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use sexton_model::reading::Reading;

/// What came of looking for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is in the bundle.
    Found,
    /// It is in the bundle in part.
    Truncated,
    /// It was looked for and is not there.
    Absent,
    /// Whether it is there is not known, or it could not be read.
    Unreadable,
}

impl std::fmt::Display for Answer {
    /// The JSON name.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// A line of `findings.txt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked for.
    pub what: String,
    /// What came of it.
    pub answer: Answer,
    /// How much it is, or why it is missing.
    pub detail: String,
}

/// A file of the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path below the top folder.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// Files with their findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// The files.
    pub entries: Vec<Entry>,
    /// What is to be said.
    pub findings: Vec<Finding>,
}

impl Part {
    /// A part that has nothing but this to say.
    pub fn finding(what: &str, answer: Answer, detail: impl Into<String>) -> Self {
        let mut part = Self::default();
        part.add(what, answer, detail);
        part
    }

    /// Adds a line.
    pub fn add(&mut self, what: impl Into<String>, answer: Answer, detail: impl Into<String>) {
        self.findings.push(Finding { what: what.into(), answer, detail: detail.into() });
    }

    /// Adds a file of which nothing is to be said.
    pub fn file(&mut self, name: impl Into<String>, bytes: Vec<u8>) {
        self.entries.push(Entry { name: name.into(), bytes });
    }

    /// Adds a JSON document.
    pub fn json(&mut self, name: &str, value: &impl Serialize) {
        match serde_json::to_vec_pretty(value) {
            Ok(mut bytes) => {
                bytes.push(b'\n');
                self.file(name, bytes);
            }
            Err(error) => self.add(name, Answer::Unreadable, format!("cannot be written as JSON: {error}")),
        }
    }

    /// Adds what was read as a file, with its finding.
    pub fn read(&mut self, what: impl Into<String>, name: impl Into<String>, read: Reading<Vec<u8>>) {
        match read {
            Reading::Value(bytes) => {
                self.add(what, Answer::Found, format!("{} bytes", bytes.len()));
                self.file(name, bytes);
            }
            Reading::Absent => self.add(what, Answer::Absent, "not there"),
            Reading::Unreadable(obstacle) => self.add(what, Answer::Unreadable, obstacle.detail),
        }
    }
}

/// `findings.txt`.
pub fn page(findings: &[Finding]) -> String {
    let mut page = String::from("What was looked for, and what came of it.\n\n");
    for Finding { what, answer, detail } in findings {
        // Writing to a string does not fail.
        let _ = writeln!(page, "{:<11} {what:<44} {detail}", answer.to_string());
    }
    page
}
