//! The help texts are documentation: a change of them is seen and read.

use crate::harness::{Place, seen};

fn help(command: &str) -> String {
    let (code, stdout, stderr) = seen(&Place::new().line(&format!("{command} --help")));
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{command}");
    stdout
}

#[test]
fn help_of_prover() {
    let (code, stdout, _) = seen(&Place::new().line("--help"));
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(stdout);
}

#[test]
fn help_of_setup() {
    insta::assert_snapshot!(help("setup"));
}

#[test]
fn help_of_prove() {
    insta::assert_snapshot!(help("prove"));
}

#[test]
fn help_of_prove_mimc() {
    insta::assert_snapshot!(help("prove mimc"));
}

#[test]
fn help_of_prove_sha256() {
    insta::assert_snapshot!(help("prove sha256"));
}

#[test]
fn help_of_prove_merkle() {
    insta::assert_snapshot!(help("prove merkle"));
}

#[test]
fn help_of_verify() {
    insta::assert_snapshot!(help("verify"));
}

#[test]
fn help_of_serve() {
    insta::assert_snapshot!(help("serve"));
}
