//! Comments that silence a rule, positions, and what is no script.

use super::super::{MAX_BYTES, NotAScript, Rule, check};
use super::{findings, report};

#[test]
fn a_comment_on_the_same_line_or_before_silences_one_rule() {
    assert!(findings("prover | tee f\nexit $? # sexton: allow pipeline-status\n").is_empty());
    assert!(findings("prover | tee f\n# sexton: allow pipeline-status for the demo\nexit $?\n").is_empty());
    assert_eq!(findings("prover | tee f\nexit $? # sexton: allow bare-wait\n").len(), 1);
    assert_eq!(findings("# sexton: allow pipeline-status\n\nprover | tee f\nexit $?\n").len(), 1);
}

#[test]
fn positions_count_characters() {
    let found = findings(
        "prover | tee f\necho \"µ\"\nprover | tee f\nµ=1; : \"$?\"\nx='µ'; prover | tee f; exit $?\n",
    );
    let last = found.last().unwrap();
    assert_eq!((last.line, last.column, last.rule), (5, 30, Rule::PipelineStatus));
    assert_eq!(last.text, "x='µ'; prover | tee f; exit $?");
}

#[test]
fn what_does_not_parse_is_read_up_to_there() {
    let read = report("prover | tee f\nrc=$?\nif x; then (\nprover | tee f\nrc=$?\n");
    assert_eq!(read.findings.len(), 1, "{read:?}");
    assert_eq!(read.unread.unwrap().line, 3);
}

#[test]
fn a_line_that_is_not_understood_is_named_and_the_rest_is_read() {
    let read = report("for i do\n  prover | tee f\n  rc=$?\ndone\n");
    assert_eq!((read.findings.len(), read.skipped, read.unread), (1, vec![1], None));
}

#[test]
fn what_is_no_shell_script_is_told() {
    assert_eq!(check(b"#!/usr/bin/python3\n"), Err(NotAScript::OtherLanguage("python3".to_owned())));
    assert_eq!(check(b"\x7fELF\0\0"), Err(NotAScript::Binary));
    assert_eq!(check(&vec![b'\n'; MAX_BYTES + 1]), Err(NotAScript::TooLarge));
    assert!(check(b"").unwrap().findings.is_empty());
}

/// open-runtimes#548: the start script pipes the server into `tee`, and its crash ends with 0.
#[test]
fn open_runtimes_548_a_crash_behind_tee() {
    let script =
        "#!/bin/sh\nset -e\ncd /usr/local/server\nsh helpers/server.sh 2>&1 | tee -a /mnt/logs/run.log\n";
    let found = findings(script);
    assert_eq!(
        found.iter().map(|found| (found.line, found.rule)).collect::<Vec<_>>(),
        [(4, Rule::PipelineStatus)]
    );
}

/// ralph-to-ralph#65: a loop that says `|| true` never learns that its program crashed.
#[test]
fn ralph_to_ralph_65_a_crash_behind_or_true() {
    let script = "#!/bin/bash\nset -euo pipefail\nout=$(agent --print 2>&1 | tee log) || true\nrc=$?\n[ \"$rc\" -eq 0 ]\n";
    let found = findings(script);
    assert_eq!(
        found.iter().map(|found| (found.line, found.rule)).collect::<Vec<_>>(),
        [(4, Rule::MaskedStatus)]
    );
}

/// s6-overlay#320: the finish script's own commands overwrite the code that the service ended with.
#[test]
fn s6_overlay_320_a_finish_script_that_overwrites_the_code() {
    let script = "#!/bin/sh\nservice\necho \"service ended\"\nexit $?\n";
    let found = findings(script);
    assert_eq!(
        found.iter().map(|found| (found.line, found.rule)).collect::<Vec<_>>(),
        [(4, Rule::OverwrittenStatus)]
    );
}
