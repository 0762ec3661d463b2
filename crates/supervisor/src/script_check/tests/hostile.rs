//! Any bytes: no panic, bounded time.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::{MAX_BYTES, check};
use super::examples::EXAMPLES;

/// Far above what one takes, far below what a script that goes astray would.
const PATIENCE: Duration = Duration::from_secs(30);

fn in_time(script: &[u8]) {
    let start = Instant::now();
    let _ = check(script);
    let took = start.elapsed();
    let beginning = String::from_utf8_lossy(&script[..script.len().min(60)]).into_owned();
    assert!(took < PATIENCE, "{took:?} for {} bytes of {beginning}", script.len());
}

/// Pieces of shell, in any order.
fn soup() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "if ",
        "! ",
        "then ",
        "fi ",
        "while ",
        "do ",
        "done ",
        "case x in ",
        "esac ",
        "a) ",
        ";; ",
        "( ",
        ") ",
        "{ ",
        "} ",
        "$( ",
        "` ",
        "\" ",
        "' ",
        "| ",
        "|| ",
        "&& ",
        "& ",
        "; ",
        "\n",
        "$? ",
        "$! ",
        "${PIPESTATUS[0]} ",
        "wait ",
        "exit ",
        "trap ",
        "EXIT ",
        "local x=",
        "x=1 ",
        "cmd ",
        "tee f ",
        "echo ",
        "<<EOF ",
        "EOF\n",
        "> f ",
        "2>&1 ",
        "f() ",
        "set -e ",
        "set -o pipefail ",
        "exec ",
        "true ",
        "[ ",
        "]",
        "[[ ",
        "]] ",
        "(( ",
        ")) ",
        "# sexton: allow ",
        "\\",
        "µ",
        "\u{feff}",
        "\r\n",
        "${x:",
        "} ",
        ">( ",
        "<( ",
        "<<< ",
        "kill -0 $! ",
    ]);
    prop::collection::vec(pieces, 0..80).prop_map(|pieces| pieces.concat())
}

fn cases(few: u32) -> ProptestConfig {
    let cases = if long() { few * 600 } else { few };
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

fn long() -> bool {
    std::env::var_os("SEXTON_TEST_LONG").is_some_and(|value| value == "1")
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        in_time(&bytes);
    }

    #[test]
    fn any_soup_is_taken(text in soup()) {
        in_time(text.as_bytes());
    }

    #[test]
    fn examples_with_bytes_changed_are_taken(
        which in 0..EXAMPLES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = EXAMPLES[which].script(EXAMPLES[which].bad).into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        in_time(&bytes);
    }
}

#[test]
fn deep_and_long_scripts_end_in_time() {
    for piece in [
        "(",
        "$(",
        "${x",
        "\"${x",
        "if a; then ",
        "{ ",
        "a && ",
        "! ",
        "`",
        "<<E ",
        "\"$(",
        "a | ",
        "case x in a) ",
        "((",
        "x=$(",
        "x=(",
        "trap 'a' EXIT\n",
        "wait\n",
        "a & wait\n",
        "prover | tee f; rc=$?\n",
        "f() {",
        "[[ a || ",
        "\\\n",
        "if ! a; then rc=$?; fi; ",
        "# sexton: allow bare-wait\n",
        "cat <<EOF\nx\nEOF\n",
        "a;",
        "'",
        "\"",
        "$((",
        "µ",
    ] {
        for bytes in [2_000, if long() { 100_000 } else { 30_000 }] {
            in_time(piece.repeat(bytes / piece.len()).as_bytes());
        }
    }
}

#[test]
fn nesting_up_to_the_limit_is_walked() {
    for depth in [50, 100, 140, 200, 290] {
        in_time(format!("{}a{}", "(".repeat(depth), ")".repeat(depth)).as_bytes());
        in_time(format!("{}a{}", "x=$(".repeat(depth), ")".repeat(depth)).as_bytes());
        in_time(format!("{}a{}", "if a; then ".repeat(depth), "; fi".repeat(depth)).as_bytes());
        let handler = format!("trap '{}a{}' EXIT", "(".repeat(depth), ")".repeat(depth));
        in_time(format!("{}{handler}{}", "(".repeat(depth), ")".repeat(depth)).as_bytes());
    }
}

#[test]
fn scripts_of_the_largest_size_are_checked() {
    for line in ["prover | tee log\n", "a & wait\n", "f() { a & }; (f; wait); ", "if ! a; then rc=$?; fi; "] {
        in_time(line.repeat(MAX_BYTES / line.len()).as_bytes());
    }
}
