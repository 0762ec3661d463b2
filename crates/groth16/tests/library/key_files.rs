//! A key file is read whole and unharmed, or refused in one line that says what to do.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sexton_groth16::key::{HEADER_BYTES, HeaderError};
use sexton_groth16::{KeyError, KeyHeader, KeyKind, ProvingKey, prove};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::{SAMPLE, shape};

fn saved() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("sample.key");
    SAMPLE.key.save(&path).expect("saves");
    (folder, path)
}

/// Overwrites bytes of the file and makes its hashes right again: damage that only the other checks can find.
fn forge(path: &Path, offset: usize, bytes: &[u8]) {
    let mut file = fs::read(path).expect("reads");
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    let payload = Sha256::digest(&file[HEADER_BYTES..]);
    file[120..152].copy_from_slice(&payload);
    let header = Sha256::digest(&file[..152]);
    file[152..HEADER_BYTES].copy_from_slice(&header);
    fs::write(path, file).expect("writes");
}

fn header_error(path: &Path) -> HeaderError {
    match ProvingKey::load(path).expect_err("refused") {
        KeyError::Header { source, .. } => source,
        other => panic!("another error: {other}"),
    }
}

#[test]
fn a_saved_key_loads_and_proves() {
    let (folder, path) = saved();
    let key = ProvingKey::load_for(&path, SAMPLE.key.shape()).expect("loads");
    assert_eq!(key.verifying_key().points(), SAMPLE.key.verifying_key().points());
    assert_eq!(key.size(), SAMPLE.key.size());

    let again = folder.path().join("again.key");
    key.save(&again).expect("saves");
    assert_eq!(fs::read(&path).expect("reads"), fs::read(&again).expect("reads"));

    let instance = sexton_groth16::circuit::mimc::Preimage::new(5, 7.into()).expect("in range").into();
    let proven = prove(&key, &instance).expect("proves");
    SAMPLE.key.verifying_key().verify(&proven.proof, &proven.public_inputs).expect("verifies");
}

#[test]
fn a_key_without_a_ceremony_says_so() {
    let (_folder, path) = saved();
    let header = KeyHeader::read(&path).expect("reads");
    assert_eq!(header.kind, KeyKind::Development);
    assert!(
        header.to_string().starts_with("mimc-2^5: 28 constraints, domain 32, 1 public inputs, "),
        "{header}"
    );
    assert!(header.to_string().contains("development key (setup without a ceremony"), "{header}");
}

#[test]
fn saving_replaces_the_file_and_leaves_nothing_else() {
    let (folder, path) = saved();
    fs::write(&path, "old").expect("writes");
    SAMPLE.key.save(&path).expect("saves");
    ProvingKey::load(&path).expect("loads");
    let names: Vec<_> =
        fs::read_dir(folder.path()).expect("lists").map(|entry| entry.expect("entry").file_name()).collect();
    assert_eq!(names, ["sample.key"]);
}

#[test]
fn saving_where_it_cannot_be_done_says_where() {
    let error = SAMPLE.key.save(Path::new("/no/such/folder/sample.key")).expect_err("no folder");
    assert!(error.to_string().starts_with("cannot create key /no/such/folder/sample.key: "), "{error}");
}

#[test]
fn a_truncated_key_is_refused_wherever_it_ends() {
    let (_folder, path) = saved();
    let whole = fs::metadata(&path).expect("there").len();
    let file = OpenOptions::new().write(true).open(&path).expect("opens");
    for length in (0..whole).rev().filter(|length| *length < 300 || length % 97 == 0 || *length + 5 > whole) {
        file.set_len(length).expect("truncates");
        let error = ProvingKey::load(&path).expect_err("truncated").to_string();
        let expected = match length {
            0..184 => "inside the header of 184",
            _ => "its header says",
        };
        assert!(error.contains(expected), "{length}: {error}");
        assert!(!error.contains('\n'));
    }
}

#[test]
fn a_longer_key_is_refused() {
    let (_folder, path) = saved();
    let file = OpenOptions::new().append(true).open(&path).expect("opens");
    std::io::Write::write_all(&mut &file, b"x").expect("appends");
    assert!(
        matches!(ProvingKey::load(&path), Err(KeyError::Length { found, expected, .. }) if found == expected + 1)
    );
}

#[test]
fn every_altered_byte_is_found() {
    let (_folder, path) = saved();
    let bytes = fs::read(&path).expect("reads");
    let file = OpenOptions::new().write(true).open(&path).expect("opens");
    // Every bit of the header, then one bit of every byte.
    let header = (0..HEADER_BYTES).flat_map(|offset| (0..8).map(move |bit| (offset, bit)));
    let payload = (HEADER_BYTES..bytes.len()).map(|offset| (offset, offset % 8));
    for (offset, bit) in header.chain(payload) {
        file.write_all_at(&[bytes[offset] ^ (1 << bit)], offset as u64).expect("writes");
        let error = ProvingKey::load(&path).expect_err("altered");
        let expected = match offset {
            0..8 => matches!(error, KeyError::Header { source: HeaderError::NotAKey, .. }),
            8..12 => matches!(error, KeyError::Header { source: HeaderError::Version { .. }, .. }),
            12..HEADER_BYTES => matches!(error, KeyError::Header { source: HeaderError::Damaged, .. }),
            _ => matches!(error, KeyError::Damaged { .. }),
        };
        assert!(expected, "bit {bit} at {offset}: {error}");
        file.write_all_at(&[bytes[offset]], offset as u64).expect("writes");
    }
    ProvingKey::load(&path).expect("whole again");
}

#[test]
fn a_key_of_another_shape_is_refused_before_its_points_are_read() {
    let (_folder, path) = saved();
    let error = ProvingKey::load_for(&path, shape("sha256-1")).expect_err("wrong circuit").to_string();
    assert!(
        error.ends_with("is for mimc-2^5, not sha256-1: make one with `prover setup sha256-1`"),
        "{error}"
    );
}

#[test]
fn sizes_that_contradict_each_other_are_refused_even_with_right_hashes() {
    let size = |offset: usize, number: u64| {
        let (_folder, path) = saved();
        forge(&path, offset, &number.to_le_bytes());
        header_error(&path)
    };
    // The key is never believed about a length: nothing is allocated for these.
    for huge in [u64::MAX, u64::MAX / 2, 1 << 40] {
        assert!(matches!(size(80, huge), HeaderError::Size { .. }), "constraints {huge}");
        assert!(matches!(size(88, huge), HeaderError::Size { field: "domain", .. }));
        assert!(matches!(size(96, huge), HeaderError::Size { .. }));
        assert!(matches!(size(104, huge), HeaderError::Size { .. }));
        assert!(matches!(size(112, huge), HeaderError::Size { field: "payload length", .. }));
    }
    assert!(matches!(size(104, 0), HeaderError::Size { field: "payload length", .. }));
}

#[test]
fn consistent_but_enormous_sizes_are_refused_by_the_length_of_the_file() {
    let (_folder, path) = saved();
    let mut bytes = fs::read(&path).expect("reads");
    let witness: u64 = 1 << 40;
    let grown = (witness - SAMPLE.key.size().witness()) * (96 * 3 + 192);
    let payload = (bytes.len() - HEADER_BYTES) as u64 + grown;
    bytes[104..112].copy_from_slice(&witness.to_le_bytes());
    fs::write(&path, bytes).expect("writes");
    forge(&path, 112, &payload.to_le_bytes());
    assert!(matches!(ProvingKey::load(&path), Err(KeyError::Length { .. })));
}

#[test]
fn unknown_kinds_and_circuits_are_refused() {
    let forged = |offset: usize, bytes: &[u8]| {
        let (_folder, path) = saved();
        forge(&path, offset, bytes);
        header_error(&path)
    };
    assert_eq!(forged(12, &3_u32.to_le_bytes()), HeaderError::Kind { found: 3 });
    assert!(matches!(forged(16, b"keccak-1"), HeaderError::Circuit(_)));
    assert_eq!(forged(16, b"\xff"), HeaderError::CircuitText);
    assert!(matches!(forged(16, b"merkle-3"), HeaderError::Size { field: "public inputs", .. }));
    // A second spelling of a shape would be a second name for one key.
    assert_eq!(forged(16, b"merkle-16x4096"), HeaderError::CircuitText);
}

#[test]
fn a_coordinate_that_is_no_field_element_is_named_with_its_offset() {
    let (_folder, path) = saved();
    let a_query = HEADER_BYTES + 96 + 3 * 192 + 2 * 96 + 2 * 96;
    forge(&path, a_query + 96, &[0x1f; 48]);
    let error = ProvingKey::load(&path).expect_err("not below p");
    assert!(matches!(error, KeyError::Point { section: "a", index: 1, .. }), "{error}");
    assert!(error.to_string().contains(&format!("a[1] at offset {}", a_query + 96)), "{error}");
}

#[test]
fn the_verifying_part_is_checked_even_with_right_hashes() {
    let (_folder, path) = saved();
    // α becomes infinity.
    let mut infinity = [0; 96];
    infinity[0] = 0x40;
    forge(&path, HEADER_BYTES, &infinity);
    let error = ProvingKey::load(&path).expect_err("infinity");
    assert!(error.to_string().contains("alpha_g1: point is infinity"), "{error}");
}

#[test]
fn what_is_no_key_at_all_is_refused() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("text");
    fs::write(&path, "not a key").expect("writes");
    assert_eq!(header_error(&path), HeaderError::NotAKey);
    File::create(&path).expect("creates");
    assert_eq!(header_error(&path), HeaderError::Truncated { found: 0 });
    let missing = ProvingKey::load(&folder.path().join("missing")).expect_err("missing");
    assert!(missing.to_string().starts_with("cannot open key "), "{missing}");
    let folder_itself = ProvingKey::load(folder.path()).expect_err("a folder");
    assert!(folder_itself.to_string().starts_with("cannot read key "), "{folder_itself}");
}
