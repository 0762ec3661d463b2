//! `setup`, `prove` and `verify`: what they print, and the exit code that tells apart what went wrong.

use std::fs;

use serde_json::Value;

use crate::harness::{Place, seen, text};

#[test]
fn a_proof_is_made_and_verified_in_both_formats() {
    for format in ["native", "snarkjs"] {
        let place = Place::new();
        place.prove(&format!(" --seed 7 --format {format}"));
        let (code, stdout, stderr) = seen(&place.line("verify proof.json --vk vk.json --public public.json"));
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "proof.json: valid\n", ""));
    }
}

#[test]
fn the_same_seed_gives_the_same_statement_and_another_proof() {
    let place = Place::new();
    let read = |name: &str| fs::read(place.path(name)).unwrap();
    place.prove(" --seed 7");
    let (public, proof) = (read("public.json"), read("proof.json"));
    place.prove(" --seed 7");
    assert_eq!(public, read("public.json"));
    assert_ne!(proof, read("proof.json"), "r and s are fresh in every proof");
}

#[test]
fn a_proof_for_other_inputs_is_invalid_with_a_reason_and_exit_code_1() {
    let place = Place::new();
    place.prove(" --seed 7");
    fs::rename(place.path("public.json"), place.path("other.json")).unwrap();
    place.prove(" --seed 8");
    let (code, stdout, _) = seen(&place.line("verify proof.json --vk vk.json --public other.json"));
    let reason = "proof is not valid for these public inputs and this verifying key";
    assert_eq!((code, stdout), (Some(1), format!("proof.json: invalid: {reason}\n")));

    let output = place.line("verify proof.json --vk vk.json --public other.json --json");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &document["valid"], &document["reason"]),
        (Some(1), &false.into(), &reason.into())
    );
}

/// x and x + r are one number in the field and two statements to whoever reads the file.
#[test]
fn a_public_input_of_r_or_more_is_refused() {
    let place = Place::new();
    place.prove(" --format snarkjs");
    let r = "52435875175126190479447740508185965837690552500527637822603658699938581184513";
    fs::write(place.path("public.json"), format!("[\"{r}\"]")).unwrap();
    let (code, stdout, _) = seen(&place.line("verify proof.json --vk vk.json --public public.json"));
    assert_eq!(code, Some(1));
    assert!(stdout.contains("invalid") && stdout.contains("modulus r"), "{stdout}");
}

#[test]
fn a_malformed_or_unreadable_file_is_no_answer_about_the_proof() {
    let place = Place::new();
    place.prove("");
    let verify = |proof: &str, vk: &str| {
        let (code, stdout, stderr) =
            seen(&place.line(&format!("verify {proof} --vk {vk} --public public.json")));
        assert_eq!((stdout.as_str(), stderr.lines().count()), ("", 1), "{stderr}");
        (code, stderr)
    };
    fs::write(place.path("broken.json"), "{").unwrap();
    fs::write(place.path("binary.json"), [0xff, 0xfe]).unwrap();
    for (proof, vk) in [("broken.json", "vk.json"), ("binary.json", "vk.json"), ("proof.json", "broken.json")]
    {
        let (code, stderr) = verify(proof, vk);
        assert_eq!(code, Some(65), "{stderr}");
        assert!(stderr.contains(".json: not a "), "{stderr}");
    }
    let (code, stderr) = verify("missing.json", "vk.json");
    assert_eq!(code, Some(66));
    assert!(stderr.contains("missing.json: No such file"), "{stderr}");
    assert_eq!(verify("keys", "vk.json").0, Some(66), "a folder");
}

#[test]
fn a_key_is_made_checked_and_not_overwritten() {
    let place = Place::new();
    let (code, stdout, stderr) = seen(&place.line("setup mimc-2^8 --key mimc.key"));
    assert_eq!(code, Some(0));
    assert!(stderr.contains("development key") && stdout.contains("(development key)"), "{stdout}{stderr}");

    let (code, _, stderr) = seen(&place.line("setup mimc-2^8 --key mimc.key"));
    assert_eq!(code, Some(73));
    assert!(stderr.contains("mimc.key exists") && stderr.contains("--force"), "{stderr}");
    assert!(place.line("setup mimc-2^8 --key mimc.key --force").status.success());

    place.prove(" --key mimc.key");
    let wrong = "prove mimc --size 2^9 --key mimc.key --proof p --vk v --public i";
    let (code, _, stderr) = seen(&place.line(wrong));
    assert_eq!(code, Some(65));
    assert!(stderr.contains("is for mimc-2^8, not mimc-2^9"), "{stderr}");
}

#[test]
fn json_is_one_document_that_names_the_development_key() {
    let place = Place::new();
    let document =
        |output: std::process::Output| -> Value { serde_json::from_slice(&output.stdout).unwrap() };
    let setup = document(place.line("setup mimc-2^8 --json"));
    assert_eq!((&setup["schema_version"], &setup["development_key"]), (&1.into(), &true.into()));
    let again = document(place.line("setup mimc-2^8 --json"));
    assert_eq!((&again["made"], &again["key_id"]), (&false.into(), &setup["key_id"]));
    let proof = document(place.line("prove mimc --size 2^8 --proof p --vk v --public i --json"));
    assert_eq!((&proof["key_id"], &proof["development_key"]), (&setup["key_id"], &true.into()));
    assert!(proof["timings"]["prove_us"].as_u64().unwrap() > 0);
}

#[test]
fn a_file_is_proved_block_by_block() {
    let place = Place::new();
    fs::write(place.path("data"), vec![7; 5_000]).unwrap();
    let prove = |block: u64| {
        let files = "--proof proof.json --vk vk.json --public public.json";
        place.line(&format!("prove merkle --file data --block {block} --block-size 1KiB {files}"))
    };
    assert!(prove(4).status.success());
    assert!(place.line("verify proof.json --vk vk.json --public public.json").status.success());
    let (code, _, stderr) = seen(&prove(5));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("data: no block 5: the file has 5"), "{stderr}");
}

#[test]
fn wrong_arguments_are_usage_errors_that_name_what_is_accepted() {
    let place = Place::new();
    let files = "--proof p --vk v --public i";
    for (line, expected) in [
        (format!("prove mimc --size 4096 {files}"), "power of two like 2^12"),
        (format!("prove mimc --size 2^40 {files}"), "use 4 to 24"),
        (format!("prove merkle --file data --block 0 --block-size 4 {files}"), "KiB"),
        (format!("prove sha256 {files}"), "--preimage"),
        ("prove mimc --size 2^8 --proof p --vk p --public i".to_owned(), "--proof and --vk are both p"),
        ("setup keccak-1".to_owned(), "known are mimc-2^K"),
        ("serve --linger 5".to_owned(), "like 250ms, 30s"),
        ("serve --workers 0".to_owned(), "1..=256"),
        ("serve --json".to_owned(), "GET /status"),
    ] {
        let (code, stdout, stderr) = seen(&place.line(&line));
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{line}");
        assert!(stderr.contains(expected), "{line}: {stderr}");
    }
    assert!(!place.path("keys").exists(), "nothing was made");
}

#[test]
fn two_processes_that_find_no_key_make_one() {
    let place = Place::new();
    let children: Vec<_> = (0..2)
        .map(|n| {
            let line = format!("prove mimc --size 2^8 --proof p{n} --vk v{n} --public i{n}");
            let mut command = place.command();
            command
                .args(line.split(' '))
                .stderr(std::process::Stdio::piped())
                .stdout(std::process::Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let said: String = outputs.iter().map(|output| text(&output.stderr)).collect();
    assert!(outputs.iter().all(|output| output.status.success()), "{said}");
    assert_eq!(said.matches("making a development key").count(), 1, "{said}");
    assert_eq!(fs::read(place.path("v0")).unwrap(), fs::read(place.path("v1")).unwrap());
}

#[test]
fn a_damaged_key_in_the_folder_is_refused_and_left_alone() {
    let place = Place::new();
    place.prove("");
    let key = place.path("keys/mimc-2^8.key");
    let whole = fs::read(&key).unwrap();
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 1;
    for damaged in [&whole[..whole.len() - 1], &altered, &whole[..10]] {
        fs::write(&key, damaged).unwrap();
        let (code, _, stderr) = seen(&place.line("prove mimc --size 2^8 --proof p --vk v --public i"));
        assert_eq!((code, stderr.lines().count()), (Some(65), 1), "{stderr}");
        assert!(stderr.contains("mimc-2^8.key"), "{stderr}");
        assert_eq!(fs::read(&key).unwrap(), damaged);
        assert!(!place.path("p").exists());
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::new();
    let mut command = place.command();
    command.args("setup mimc-2^8".split(' ')).stdout(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
