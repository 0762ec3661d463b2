//! What is right, and what is ordinary, is not reported.

use super::findings;

/// Forms that end with the prover's 7, for real.
pub(super) const RIGHT: &[&str] = &[
    "rc=0; set -o pipefail; prover | tee f || rc=$?; exit $rc",
    "set -o pipefail; prover | tee f; rc=$?; exit $rc",
    "set -euo pipefail\nprover | tee f\necho never",
    "set -e\nprover\necho never",
    "prover | tee f; exit ${PIPESTATUS[0]}",
    "prover | tee f\nrcs=(\"${PIPESTATUS[@]}\")\nexit ${rcs[0]}",
    "if ! prover | grep -q x; then exit ${PIPESTATUS[0]}; fi",
    "out=$(prover); exit $?",
    "out=$(prover) || exit $?",
    "if prover; then :; else rc=$?; exit $rc; fi",
    "until prover; do exit $?; done",
    "rc=0; prover || rc=$?; exit $rc",
    "prover || exit $?",
    "prover || exit",
    "prover || { rc=$?; echo \"failed: $rc\"; exit $rc; }",
    "exec sh -c 'exit 7'",
    "prover & wait $!",
    "prover & pid=$!; wait \"$pid\"; rc=$?; exit $rc",
    "prover & wait -n; exit $?",
    "trap 'rm -f f' EXIT; prover",
    "trap 'rc=$?; rm -f f; exit $rc' EXIT; prover",
    "trap 'exit $?' EXIT; prover",
    "prover; case $? in 0) exit 0 ;; *) exit $? ;; esac",
    "prover; rc=$?; [ $rc -eq 0 ] && echo fine; exit $rc",
    "prover; rc=$?; if [ $rc -ne 0 ]; then echo \"failed: $rc\"; fi; exit $rc",
    "prover > >(tee f) 2>&1",
    "run() { local out; out=$(prover) || return; }; run",
    "run() { local rc=0; prover || rc=$?; return $rc; }; run",
    "prover || true; prover",
    "(prover) || exit $?",
    "! true | tee f; prover; rc=$?; exit $rc",
    "main() { set -o pipefail; prover | tee f; }\nmain",
    "run() { prover | tee f; }\nset -o pipefail\nrun",
    "shopt -s inherit_errexit; set -o pipefail; out=$(prover | tee f); exit $?",
];

/// Ordinary lines that lose nothing that anyone wants.
const ORDINARY: &[&str] = &[
    "echo hello | tee f; echo $?",
    "rm -f f || true",
    "grep -q x f; if [ $? -eq 0 ]; then echo yes; fi",
    "[ -f f ] || echo none; exit",
    "if ! grep -q x f; then echo none; exit; fi",
    "usage() { echo usage; exit; }\nusage",
    "version=$(prover --version | head -1)\necho \"$version\"",
    "ps aux | grep prover | awk '{print $2}'",
    "if ps aux | grep -q prover; then echo runs; fi",
    "local_time=$(date)\nexport NOW=$(date)",
    "set -e\nexport HERE=$(cd \"$(dirname \"$0\")\" && pwd || exit 1)",
    "sleep 5 & wait",
    "nohup prover >/dev/null 2>&1 &",
    "prover >/dev/null 2>&1 & echo $! >pid",
    "prover & pid=$!\nkill $pid\nwait",
    "trap 'exit 0' TERM; prover",
    "trap - EXIT",
    "cat <<EOF\nif ! cmd | tee f; then rc=\\$?\nEOF",
    "cat <<'EOF'\ncmd | tee f; rc=$?\nEOF",
    "# if ! cmd | tee f; then rc=$?",
    "echo 'cmd | tee f; rc=$?'",
    "find . | while read -r f; do [ -f \"$f\" ] || exit 1; done || exit 1",
    "x=1 y=2\nFOO=1 prover\nexit $?",
];

#[test]
fn right_forms_are_not_reported() {
    for body in RIGHT {
        let script = format!("#!/bin/bash\nprover() {{ sh -c 'exit 7'; }}\n{body}\n");
        let found = findings(&script);
        assert!(found.is_empty(), "{script}{found:#?}");
    }
}

#[test]
fn ordinary_lines_are_not_reported() {
    for body in ORDINARY {
        let found = findings(&format!("#!/bin/bash\n{body}\n"));
        assert!(found.is_empty(), "{body}\n{found:#?}");
    }
}

#[test]
fn a_library_may_set_the_options() {
    assert!(findings("#!/bin/bash\n. ./lib.sh\nprover | tee f\nexit $?\n").is_empty());
    assert_eq!(findings("#!/bin/bash\n. ./prover.env\nprover | tee f\nexit $?\n").len(), 1);
}
