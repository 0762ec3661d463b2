//! Who may depend on whom, and on which outside crates.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use sexton_tests::workspace_root;

/// Normal dependencies between our packages. What is not built yet has its line already.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("groth16", &[]),
    ("memory", &[]),
    ("config", &["model"]),
    ("host", &["model"]),
    ("process", &["model"]),
    ("control", &["model"]),
    ("diagnosis", &["model"]),
    ("gpu", &["model"]),
    ("dispatch", &["model"]),
    ("cuda", &["memory"]),
    ("prover", &["groth16", "cuda", "dispatch", "memory", "host", "diagnosis", "control", "config", "model"]),
    ("supervisor", &["process", "host", "diagnosis", "control", "config", "model"]),
    ("dashboard", &["control", "host", "gpu", "diagnosis", "config", "model"]),
    ("memprobe", &["memory", "process", "host", "diagnosis", "cuda", "config", "model"]),
    ("deploy", &["control", "process", "host", "diagnosis", "config", "model"]),
];

/// Outside crates that have one home: reading the system, acting on it, driving a GPU are each one crate's subject.
const HOME_OF: &[(&str, &[&str])] = &[
    // The prover: effective user and umask of its own process only.
    ("nix", &["process", "prover"]),
    ("procfs", &["host"]),
    ("sysinfo", &["dashboard"]),
    ("signal-hook", &["supervisor", "dashboard"]),
    ("cust", &["cuda"]),
];

/// Tests may know everybody.
const TESTS: &str = "sexton-tests";

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(workspace_root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .unwrap()
}

fn crates(metadata: &Metadata) -> impl Iterator<Item = &Package> {
    metadata.workspace_packages().into_iter().filter(|package| package.name.as_str() != TESTS)
}

fn normal_dependencies(package: &Package) -> impl Iterator<Item = &str> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == DependencyKind::Normal)
        .map(|dependency| dependency.name.as_str())
}

fn short(name: &str) -> &str {
    name.strip_prefix("sexton-").unwrap_or(name)
}

#[test]
fn crates_depend_in_one_direction_as_the_design_says() {
    let allowed: BTreeMap<_, _> = MAY_DEPEND_ON.iter().copied().collect();
    let metadata = metadata();
    let ours: BTreeSet<&str> = crates(&metadata).map(|package| package.name.as_str()).collect();
    assert!(ours.contains("sexton-model"), "the members were found: {ours:?}");
    for package in crates(&metadata) {
        let name = short(&package.name);
        let Some(allowed) = allowed.get(name) else {
            panic!("{name} has no line in the table: decide what it may depend on");
        };
        for dependency in normal_dependencies(package).filter(|dependency| ours.contains(dependency)) {
            assert!(
                allowed.contains(&short(dependency)),
                "{name} may not depend on {dependency}, only on {allowed:?}"
            );
        }
    }
}

#[test]
fn outside_crates_stay_in_their_homes() {
    let homes: BTreeMap<_, _> = HOME_OF.iter().copied().collect();
    for package in crates(&metadata()) {
        for dependency in normal_dependencies(package) {
            let Some(homes) = homes.get(dependency) else { continue };
            let name = short(&package.name);
            assert!(homes.contains(&name), "{name} depends on {dependency}, whose home is {homes:?}");
        }
    }
}

#[test]
fn packages_are_named_after_their_folders() {
    for package in crates(&metadata()) {
        let folder = package.manifest_path.parent().unwrap().file_name().unwrap();
        assert_eq!(package.name.as_str(), format!("sexton-{folder}"));
    }
}

/// One version of each dependency, written once.
#[test]
fn every_dependency_and_lint_is_inherited_from_the_workspace() {
    for package in metadata().workspace_packages() {
        let manifest: toml::Table =
            toml::from_str(&std::fs::read_to_string(&package.manifest_path).unwrap()).unwrap();
        let inherits = |value: Option<&toml::Value>| {
            value.and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool) == Some(true)
        };
        assert!(inherits(manifest.get("lints")), "{}: lints.workspace = true is missing", package.name);
        for key in ["version", "edition", "rust-version", "license", "publish"] {
            assert!(inherits(manifest["package"].get(key)), "{}: {key} is not inherited", package.name);
        }
        for (table, name, dependency) in dependency_entries(&manifest) {
            assert!(inherits(Some(dependency)), "{}: {name} in {table} is not inherited", package.name);
        }
    }
}

/// Entries of all dependency tables, `[target.….dependencies]` included.
fn dependency_entries(manifest: &toml::Table) -> Vec<(&'static str, &str, &toml::Value)> {
    let targets =
        manifest.get("target").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::values);
    std::iter::once(manifest)
        .chain(targets.filter_map(toml::Value::as_table))
        .flat_map(|owner| {
            ["dependencies", "dev-dependencies", "build-dependencies"].into_iter().flat_map(move |table| {
                let entries = owner.get(table).and_then(toml::Value::as_table).into_iter().flatten();
                entries.map(move |(name, dependency)| (table, name.as_str(), dependency))
            })
        })
        .collect()
}
