//! Archives that are none of ours, or mean harm: one clear line, the right exit code, and nothing written.

use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::stage::{Said, Stage, listing};

const MANIFEST: &str = r#"{"schema_version":1,"format":"sexton-bundle","version":"0.1.0","name":"p","at":"2026-01-01T00:00:00Z"}"#;
const ID: &str = "20260101T000000.000Z-0001";

/// A tar of regular files whose names are written as they are, unchecked.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_cksum();
        builder.append(&header, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[track_caller]
fn refused(bytes: &[u8], because: &str) {
    let stage = Stage::new();
    let path: PathBuf = stage.path("hostile.tar.gz");
    std::fs::write(&path, bytes).unwrap();
    let said = stage.run(&["why", "--bundle", path.to_str().unwrap()]);
    assert_eq!(said.code(), 65, "{}{}", said.stdout(), said.stderr());
    assert!(said.stderr().contains(because), "{}", said.stderr());
    assert_eq!(said.stderr().lines().count(), 1, "{}", said.stderr());
    assert_eq!(said.stdout(), "");
    assert_eq!(listing(&stage.path("")), [path], "nothing is written");
}

#[test]
fn what_is_not_there_is_not_readable() {
    let stage = Stage::new();
    for path in [stage.path("none"), stage.path("")] {
        let said = stage.run(&["why", "--bundle", path.to_str().unwrap()]);
        assert_eq!(said.code(), 77, "{}", said.stderr());
    }
}

#[test]
fn other_files_are_no_bundles() {
    refused(b"", "no bundle");
    refused(b"hello, this is no archive at all", "no bundle");
    refused(&gzip(b"nor is this one a tar, though it is compressed"), "no bundle");
    refused(&gzip(&archive(&[("readme", b"hi")])), "there is no bundle.json in it");
    let other = MANIFEST.replace("sexton-bundle", "other-bundle");
    refused(&gzip(&archive(&[("sexton-bundle/bundle.json", other.as_bytes())])), "its format is");
    let newer = MANIFEST.replace("\"schema_version\":1", "\"schema_version\":99");
    refused(&gzip(&archive(&[("sexton-bundle/bundle.json", newer.as_bytes())])), "newer than this one");
}

#[test]
fn a_bundle_that_is_cut_off_is_no_bundle() {
    let noise: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let whole =
        gzip(&archive(&[("sexton-bundle/bundle.json", MANIFEST.as_bytes()), ("x", &noise), ("y", &noise)]));
    refused(&whole[..whole.len() / 2], "it is cut off");
}

#[test]
fn paths_that_lead_out_of_the_archive_are_refused() {
    for name in ["../../etc/cron.d/x", "/etc/passwd", "sexton-bundle/runs/../../../x"] {
        refused(&gzip(&archive(&[(name, b"x")])), "is no path inside of it");
    }
}

#[test]
fn links_and_devices_are_refused() {
    for kind in [tar::EntryType::Symlink, tar::EntryType::Link, tar::EntryType::Char, tar::EntryType::Fifo] {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_path("sexton-bundle/bundle.json").unwrap();
        header.set_link_name("/etc/passwd").unwrap();
        header.set_cksum();
        builder.append(&header, &b""[..]).unwrap();
        refused(&gzip(&builder.into_inner().unwrap()), "in it is no file");
    }
}

#[test]
fn bombs_are_given_up() {
    let record = vec![b' '; 5 << 20];
    let name = format!("sexton-bundle/runs/{ID}/facts.json");
    refused(&gzip(&archive(&[(&name, &record)])), "is larger than any record of ours");

    // 300 MiB of zeros in a third of a MiB, as a file that nobody would look at.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut header = tar::Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_size(300 << 20);
    header.set_cksum();
    encoder.write_all(header.as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    (0..300).for_each(|_| encoder.write_all(&zeros).unwrap());
    refused(&encoder.finish().unwrap(), "unpacks to more than 256 MiB");
}

#[test]
fn damaged_records_are_named() {
    let name = format!("sexton-bundle/runs/{ID}/facts.json");
    let files: [(&str, &[u8]); 2] =
        [("sexton-bundle/bundle.json", MANIFEST.as_bytes()), (&name, b"{\"wait\":")];
    refused(&gzip(&archive(&files)), "facts.json is damaged");
}

#[test]
fn a_name_that_steers_the_terminal_is_shown_calm() {
    refused(&gzip(&archive(&[("../\u{1b}]0;x\u{7}\n", b"x")])), "\\u{1b}]0;x\\u{7}\\n");
}
