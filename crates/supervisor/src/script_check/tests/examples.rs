//! Each form that loses the code 7, with the form that keeps it.

use super::super::Rule;
use super::{findings, report};

/// `bad` and `good` do the same work, in which a command ends with 7. Both mean to end with that code; only `good` does.
pub(super) struct Example {
    pub(super) rule: Rule,
    /// `bash` or `dash`.
    pub(super) shell: &'static str,
    /// The line of `bad`, from 1, with the finding.
    pub(super) line: usize,
    pub(super) bad: &'static str,
    pub(super) good: &'static str,
}

const fn bash(rule: Rule, line: usize, bad: &'static str, good: &'static str) -> Example {
    Example { rule, shell: "bash", line, bad, good }
}

const fn dash(rule: Rule, line: usize, bad: &'static str, good: &'static str) -> Example {
    Example { rule, shell: "dash", line, bad, good }
}

/// A prover that fails: a function, a program.
pub(super) const PRELUDE: &str = "prover() { sh -c 'exit 7'; }\n";

pub(super) const EXAMPLES: &[Example] = &[
    // negated-status
    bash(
        Rule::NegatedStatus,
        2,
        "set -o pipefail\nif ! prover | tee log; then rc=$?; exit $rc; fi",
        "set -o pipefail; rc=0; prover | tee log || rc=$?\nexit $rc",
    ),
    dash(Rule::NegatedStatus, 1, "if ! prover; then exit $?; fi", "rc=0; prover || rc=$?\nexit $rc"),
    dash(Rule::NegatedStatus, 1, "if ! prover; then exit; fi", "rc=0; prover || rc=$?\nexit $rc"),
    dash(Rule::NegatedStatus, 2, "! prover\nrc=$?; exit $rc", "rc=0; prover || rc=$?\nexit $rc"),
    dash(Rule::NegatedStatus, 1, "while ! prover; do exit $?; done", "rc=0; prover || rc=$?\nexit $rc"),
    dash(Rule::NegatedStatus, 1, "! prover && exit $?", "rc=0; prover || rc=$?\nexit $rc"),
    dash(
        Rule::NegatedStatus,
        1,
        "if ! out=$(prover); then exit $?; fi",
        "rc=0; out=$(prover) || rc=$?\nexit $rc",
    ),
    // pipeline-status
    bash(
        Rule::PipelineStatus,
        2,
        "prover | tee log\nrc=$?; exit $rc",
        "set -o pipefail; rc=0; prover | tee log || rc=$?\nexit $rc",
    ),
    bash(
        Rule::PipelineStatus,
        1,
        "if prover 2>&1 | tee log; then exit 0; fi\nexit 7",
        "set -o pipefail; rc=0; prover 2>&1 | tee log || rc=$?\nexit $rc",
    ),
    bash(
        Rule::PipelineStatus,
        1,
        "prover | tee log || exit 7",
        "set -o pipefail; rc=0; prover | tee log || rc=$?\nexit $rc",
    ),
    bash(
        Rule::PipelineStatus,
        1,
        "prover | sed 's/^/prover: /' && exit 0\nexit 7",
        "set -o pipefail; rc=0; prover | sed 's/^/prover: /' || rc=$?\nexit $rc",
    ),
    bash(
        Rule::PipelineStatus,
        2,
        "set -e\nprover | tee log\nexit 0",
        "set -e\nset -o pipefail; rc=0; prover | tee log || rc=$?\nexit $rc",
    ),
    bash(
        Rule::PipelineStatus,
        3,
        "set -o pipefail\nset +o pipefail\nprover | cat",
        "set -o pipefail; rc=0; prover | cat || rc=$?\nexit $rc",
    ),
    bash(
        Rule::PipelineStatus,
        2,
        "(set -o pipefail)\nprover | cat >log || exit",
        "set -o pipefail; rc=0; prover | cat >log || rc=$?\nexit $rc",
    ),
    bash(
        Rule::PipelineStatus,
        1,
        "run() { prover | tee log; }\nrun",
        "run() { set -o pipefail; rc=0; prover | tee log || rc=$?; return $rc; }\nrun",
    ),
    bash(
        Rule::PipelineStatus,
        1,
        "prover | while read -r line; do echo \"$line\"; done\nexit $?",
        "set -o pipefail; rc=0; prover | while read -r line; do echo \"$line\"; done || rc=$?\nexit $rc",
    ),
    bash(
        Rule::PipelineStatus,
        1,
        "out=$(prover | tee log) || exit 7",
        "set -o pipefail; rc=0; prover | tee log || rc=$?\nexit $rc",
    ),
    dash(
        Rule::PipelineStatus,
        2,
        "prover | tee log\nexit $?",
        "{ rc=0; prover || rc=$?; echo \"$rc\" >code; } | tee log; rc=$(cat code)\nexit $rc",
    ),
    dash(
        Rule::PipelineStatus,
        1,
        "prover 2>&1 | tee log | cat",
        "{ rc=0; prover 2>&1 || rc=$?; echo \"$rc\" >code; } | tee log | cat; rc=$(cat code)\nexit $rc",
    ),
    // exec-in-pipeline
    bash(Rule::ExecInPipeline, 1, "exec sh -c 'exit 7' | tee log", "exec sh -c 'exit 7' > >(tee log)"),
    bash(
        Rule::ExecInPipeline,
        1,
        "exec sh -c 'exit 7' | tee log | cat",
        "set -o pipefail; sh -c 'exit 7' | tee log | cat; exit \"$?\"",
    ),
    dash(
        Rule::ExecInPipeline,
        1,
        "exec sh -c 'exit 7' | tee log",
        "{ rc=0; sh -c 'exit 7' || rc=$?; echo \"$rc\" >code; } | tee log; exit \"$(cat code)\"",
    ),
    // declared-status
    bash(
        Rule::DeclaredStatus,
        1,
        "run() { local out=$(prover); return $?; }\nrun",
        "run() { local out; out=$(prover); return $?; }\nrun",
    ),
    bash(
        Rule::DeclaredStatus,
        2,
        "set -e\nexport OUT=$(prover)\nexit 0",
        "set -e\nexport OUT; OUT=$(prover)\nexit 0",
    ),
    bash(
        Rule::DeclaredStatus,
        1,
        "readonly out=$(prover) || exit 7",
        "rc=0; out=$(prover) || rc=$?; readonly out\nexit $rc",
    ),
    bash(
        Rule::DeclaredStatus,
        2,
        "declare -r out=$(prover)\nexit $?",
        "declare out; rc=0; out=$(prover) || rc=$?; readonly out\nexit $rc",
    ),
    // bare-wait
    dash(Rule::BareWait, 2, "prover &\nwait", "prover & pid=$!; rc=0; wait \"$pid\" || rc=$?\nexit $rc"),
    bash(
        Rule::BareWait,
        2,
        "for gpu in 0 1; do prover $gpu & done\nwait\nexit $?",
        "pids=; for gpu in 0 1; do prover $gpu & pids=\"$pids $!\"; done\nrc=0\n\
         for pid in $pids; do wait \"$pid\" || rc=$?; done\n\
         exit $rc # in short: prover $gpu & pid=$!; rc=0; wait \"$pid\" || rc=$?",
    ),
    // wait-elsewhere
    dash(
        Rule::WaitElsewhere,
        2,
        "prover & pid=$!\n(wait $pid); exit $?",
        "prover & pid=$!; rc=0; wait \"$pid\" || rc=$?\nexit $rc",
    ),
    dash(
        Rule::WaitElsewhere,
        2,
        "(prover &)\nwait; exit $?",
        "prover & pid=$!; rc=0; wait \"$pid\" || rc=$?\nexit $rc",
    ),
    bash(
        Rule::WaitElsewhere,
        2,
        "pid=$(prover >/dev/null & echo $!)\nwait $pid; exit $?",
        "prover >/dev/null & pid=$!; rc=0; wait \"$pid\" || rc=$?\nexit $rc",
    ),
    bash(
        Rule::WaitElsewhere,
        2,
        "prover &\nwait $! | cat; exit $?",
        "prover & pid=$!; rc=0; wait \"$pid\" || rc=$?\nexit $rc",
    ),
    // job-not-waited
    dash(
        Rule::JobNotWaited,
        2,
        "prover & pid=$!\nwhile kill -0 $pid 2>/dev/null; do sleep 0.05; done",
        "prover & pid=$!; rc=0; wait \"$pid\" || rc=$?\nexit $rc",
    ),
    dash(
        Rule::JobNotWaited,
        1,
        "prover &\nexit 0",
        "prover & pid=$!; rc=0; wait \"$pid\" || rc=$?\nexit $rc",
    ),
    // masked-status
    dash(Rule::MaskedStatus, 2, "prover || true\nrc=$?; exit $rc", "rc=0; prover || rc=$?\nexit $rc"),
    dash(Rule::MaskedStatus, 2, "prover || :\nexit $?", "rc=0; prover || rc=$?\nexit $rc"),
    dash(Rule::MaskedStatus, 1, "prover; true; exit $?", "rc=0; prover || rc=$?\nexit $rc"),
    dash(Rule::MaskedStatus, 1, "prover || true", "rc=0; prover || rc=$?\nexit $rc"),
    dash(Rule::MaskedStatus, 1, "prover; true", "rc=0; prover || rc=$?\nexit $rc"),
    dash(Rule::MaskedStatus, 1, "prover || echo failed; exit $?", "rc=0; prover || rc=$?\nexit $rc"),
    dash(Rule::MaskedStatus, 1, "out=$(prover || true); exit $?", "rc=0; prover || rc=$?\nexit $rc"),
    // overwritten-status
    dash(Rule::OverwrittenStatus, 2, "prover\necho done; exit $?", "prover; rc=$?\necho done; exit $rc"),
    dash(
        Rule::OverwrittenStatus,
        2,
        "prover\necho \"rc $?\"; exit $?",
        "prover; rc=$?\necho \"rc $rc\"; exit $rc",
    ),
    dash(
        Rule::OverwrittenStatus,
        2,
        "prover\nif [ $? -ne 0 ]; then exit $?; fi",
        "prover; rc=$?\nif [ $rc -ne 0 ]; then exit $rc; fi",
    ),
    dash(
        Rule::OverwrittenStatus,
        2,
        "prover\n[ $? -eq 0 ] || exit $?",
        "prover; rc=$?\n[ $rc -eq 0 ] || exit $rc",
    ),
    dash(
        Rule::OverwrittenStatus,
        2,
        "prover\ntest $? -eq 0 || exit $?",
        "prover; rc=$?\ntest $rc -eq 0 || exit $rc",
    ),
    bash(Rule::OverwrittenStatus, 2, "prover\nif (( $? )); then exit $?; fi", "prover; rc=$?\nexit $rc"),
    bash(
        Rule::OverwrittenStatus,
        2,
        "prover\nif [[ $? != 0 ]]; then echo failed; exit $?; fi",
        "prover; rc=$?\nif [[ $rc != 0 ]]; then echo failed; exit $rc; fi",
    ),
    dash(Rule::OverwrittenStatus, 2, "prover\nend=now; exit $?", "prover; rc=$?\nend=now; exit $rc"),
    dash(
        Rule::OverwrittenStatus,
        3,
        "set +e\nprover\nset -e; exit $?",
        "set +e\nprover; rc=$?\nset -e; exit $rc",
    ),
    dash(
        Rule::OverwrittenStatus,
        2,
        "prover\nif [ -n \"$VERBOSE\" ]; then echo ended; fi; exit $?",
        "prover; rc=$?\nif [ -n \"$VERBOSE\" ]; then echo ended; fi; exit $rc",
    ),
    dash(
        Rule::OverwrittenStatus,
        1,
        "log() { echo \"$@\"; }; prover; log ended; exit $?",
        "prover; rc=$?; echo ended; exit $rc",
    ),
    dash(
        Rule::OverwrittenStatus,
        1,
        "prover & exit $?",
        "prover & pid=$!; rc=0; wait \"$pid\" || rc=$?\nexit $rc",
    ),
    dash(
        Rule::OverwrittenStatus,
        2,
        "prover; rc=$?\nif [ $? -ne 0 ]; then exit 7; fi",
        "prover; rc=$?\nexit $rc",
    ),
    dash(
        Rule::OverwrittenStatus,
        1,
        "echo \"$(prover)\"; exit $?",
        "x=$(prover); rc=$?; echo \"$x\"; exit $rc",
    ),
    bash(
        Rule::OverwrittenStatus,
        2,
        "set -e\nset -- $(prover); exit $?",
        "x=$(prover); rc=$?; set -- $x; exit $rc",
    ),
    // exit-after-message
    dash(
        Rule::ExitAfterMessage,
        1,
        "prover || { echo failed >&2; exit; }",
        "prover || { rc=$?; echo failed >&2; exit \"$rc\"; }",
    ),
    dash(
        Rule::ExitAfterMessage,
        1,
        "if ! prover; then echo failed; exit; fi",
        "prover || { rc=$?; echo failed; exit \"$rc\"; }",
    ),
    dash(
        Rule::ExitAfterMessage,
        1,
        "run() { if prover; then :; else echo failed; return; fi; }; run",
        "run() { prover || { rc=$?; echo failed; return \"$rc\"; }; }; run",
    ),
    dash(
        Rule::ExitAfterMessage,
        2,
        "prover\nif [ $? -ne 0 ]; then echo failed; exit; fi",
        "prover || { rc=$?; echo failed; exit \"$rc\"; }",
    ),
    // trap-status
    dash(
        Rule::TrapStatus,
        1,
        "trap 'rm -f f; exit 0' EXIT\nprover",
        "trap 'rc=$?; rm -f f; exit \"$rc\"' EXIT\nprover",
    ),
    dash(
        Rule::TrapStatus,
        1,
        "trap 'rm -f f; exit $?' EXIT\nprover",
        "trap 'rc=$?; rm -f f; exit \"$rc\"' EXIT\nprover",
    ),
    dash(
        Rule::TrapStatus,
        2,
        "end() { rm -f f; exit 0; }\ntrap end EXIT\nprover",
        "trap 'rc=$?; rm -f f; exit \"$rc\"' EXIT\nprover",
    ),
    // stale-pipestatus
    bash(
        Rule::StalePipestatus,
        2,
        "prover | tee log\necho ended; exit ${PIPESTATUS[0]}",
        "prover | tee log; rc=${PIPESTATUS[0]}\necho ended; exit $rc",
    ),
    bash(
        Rule::StalePipestatus,
        2,
        "prover | tee log\nif [ ${PIPESTATUS[0]} -ne 0 ]; then exit ${PIPESTATUS[0]}; fi",
        "prover | tee log; rc=${PIPESTATUS[0]}\nif [ $rc -ne 0 ]; then exit $rc; fi",
    ),
    // pipestatus-in-sh
    dash(
        Rule::PipestatusInSh,
        2,
        "prover | tee log\nexit ${PIPESTATUS[0]}",
        "{ rc=0; prover || rc=$?; echo \"$rc\" >code; } | tee log; rc=$(cat code)\nexit $rc",
    ),
];

impl Example {
    /// A whole script.
    pub(super) fn script(&self, body: &str) -> String {
        let shell = if self.shell == "dash" { "/bin/sh" } else { "/bin/bash" };
        format!("#!{shell}\n{PRELUDE}{body}\n")
    }
}

#[test]
fn each_bad_form_is_found_with_its_reason() {
    for example in EXAMPLES {
        let script = example.script(example.bad);
        let line = example.line + 2;
        let found = findings(&script);
        let hit = found.iter().find(|found| found.rule == example.rule && found.line >= line);
        assert!(hit.is_some(), "{} is not found in\n{script}{found:#?}", example.rule);
        assert!(report(&script).unread.is_none(), "{script}");
    }
}

#[test]
fn each_good_form_is_left_alone() {
    for example in EXAMPLES {
        let script = example.script(example.good);
        let found = findings(&script);
        assert!(found.is_empty(), "{script}{found:#?}");
    }
}

/// So that the right form which is run is the one that is printed.
#[test]
fn the_fix_that_is_printed_is_the_good_form() {
    for example in EXAMPLES {
        let found = findings(&example.script(example.bad));
        let Some(found) = found.iter().find(|found| found.rule == example.rule) else { continue };
        assert!(
            example.good.contains(&found.fix),
            "{}:\n{}\nis not in\n{}",
            example.rule,
            found.fix,
            example.good
        );
    }
}

#[test]
fn every_rule_has_an_example() {
    for rule in Rule::ALL {
        assert!(EXAMPLES.iter().any(|example| example.rule == *rule), "{rule}");
    }
}
