//! Outputs appear whole or not at all.

use std::fs;
use std::process::Command;

use crate::harness::{Place, names, seen, text};

#[test]
fn an_output_that_cannot_be_created_is_told_before_the_work() {
    let place = Place::new();
    for (proof, expected) in [
        ("/proc/proof.json", "cannot create /proc/proof.json"),
        ("no/such/folder/proof.json", "cannot create no/such/folder/proof.json"),
        ("/dev/null", "/dev/null: exists and is not a regular file"),
        (".", ".: exists and is not a regular file"),
    ] {
        let line = format!("prove mimc --size 2^8 --proof {proof} --vk vk.json --public public.json");
        let (code, stdout, stderr) = seen(&place.line(&line));
        assert_eq!((code, stdout.as_str(), stderr.lines().count()), (Some(73), "", 1), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    assert!(names(&place.path(".")).is_empty(), "no key was made, and no other output");
}

#[test]
fn outputs_of_an_earlier_proof_survive_a_failed_one() {
    let place = Place::new();
    place.prove("");
    let before = fs::read(place.path("proof.json")).unwrap();
    fs::write(place.path("keys/mimc-2^8.key"), "damaged").unwrap();
    let line = "prove mimc --size 2^8 --proof proof.json --vk vk.json --public public.json";
    assert_eq!(place.line(line).status.code(), Some(65));
    assert_eq!(fs::read(place.path("proof.json")).unwrap(), before);
    assert_eq!(names(&place.path(".")), ["keys", "proof.json", "public.json", "vk.json"]);
}

/// Needs a mount namespace: skipped, and said so, where there is none to be had.
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let place = Place::new();
    place.prove("");
    fs::create_dir(place.path("full")).unwrap();
    let script = r#"mount -t tmpfs -o size=4k none full || exit 99
        "$0" prove mimc --size 2^8 --proof full/p --vk full/v --public full/i
        echo "code $?"; ls -A full"#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_prover")]);
    command.current_dir(place.path(".")).env("SEXTON_KEYS", place.path("keys"));
    let output = match command.output() {
        Ok(output) if output.status.success() => output,
        other => {
            eprintln!("skipped: no mount namespace here ({other:?})");
            return;
        }
    };
    assert_eq!(text(&output.stdout), "code 74\n");
    assert!(text(&output.stderr).contains("cannot write full/v: No space left"), "{}", text(&output.stderr));
}

#[test]
fn a_read_only_folder_is_told_with_its_path() {
    let place = Place::new();
    let script = r#"mount -t tmpfs -o ro none full || exit 99
        "$0" setup mimc-2^8 --key full/key; echo "code $?""#;
    fs::create_dir(place.path("full")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_prover")]).current_dir(place.path("."));
    match command.output() {
        Ok(output) if output.status.success() => {
            assert_eq!(text(&output.stdout), "code 73\n");
            assert!(text(&output.stderr).contains("Read-only file system"), "{}", text(&output.stderr));
        }
        other => eprintln!("skipped: no mount namespace here ({other:?})"),
    }
}
