//! `unsafe` lives where its subject lives, nowhere else.

use std::fs;
use std::path::{Path, PathBuf};

use sexton_tests::workspace_root;

/// Folders that may hold it: crates that exist for it, and fixtures that fake a dying program or a driver.
const MAY_BE_UNSAFE: [&str; 5] =
    ["crates/process", "crates/memory", "crates/cuda", "crates/gpu", "tests/fixtures"];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Whether a line has the keyword, or switches off the lint against it. Comments and strings do not count.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or(line);
    let outside_strings: String = code.split('"').step_by(2).collect::<Vec<_>>().join("\"\"");
    outside_strings
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .any(|word| matches!(word, "unsafe" | "unsafe_code"))
}

#[test]
fn unsafe_stays_in_the_crates_that_exist_for_it() {
    let root = workspace_root();
    let mut files = Vec::new();
    for folder in ["crates", "tools", "tests"].map(|folder| root.join(folder)) {
        if folder.is_dir() {
            rust_files(&folder, &mut files);
        }
    }
    assert!(files.len() > 10, "the sources were found");
    for file in files {
        let relative = file.strip_prefix(root).unwrap();
        if MAY_BE_UNSAFE.iter().any(|folder| relative.starts_with(folder)) {
            continue;
        }
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            assert!(!is_unsafe(line), "{}:{}: {}", relative.display(), number + 1, line.trim());
        }
    }
}

#[test]
fn the_scan_sees_what_matters() {
    for line in ["unsafe { f() }", "pub unsafe fn f()", "#![allow(unsafe_code)]", "unsafe impl Send for X {}"]
    {
        assert!(is_unsafe(line), "{line}");
    }
    for line in ["// unsafe", "let unsafe_looking = 1;", "f(\"unsafe\")", "/// `unsafe` lives elsewhere"] {
        assert!(!is_unsafe(line), "{line}");
    }
}

#[test]
fn the_workspace_denies_what_it_must() {
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap()).unwrap();
    let lints = &manifest["workspace"]["lints"];
    assert_eq!(lints["rust"]["unsafe_code"].as_str(), Some("deny"));
    for lint in ["unwrap_used", "expect_used", "panic", "todo", "unimplemented", "undocumented_unsafe_blocks"]
    {
        assert_eq!(lints["clippy"][lint].as_str(), Some("deny"), "{lint}");
    }
}
