//! Twenty of a kind at once.

use sexton_tests::OrSkip;
use sexton_tests::deaths::{Death, run_all};

use crate::assert_right;

const AT_ONCE: usize = 20;

#[track_caller]
fn assert_right_together(deaths: &[Death], at_once: usize) {
    let Some(outcomes) = run_all(deaths, at_once).or_skip() else { return };
    assert_right(&outcomes);
}

/// The two that are confused with each other most easily.
#[test]
fn ten_oom_kills_and_ten_kills_beside_a_neighbours_at_once() {
    assert_right_together(&[Death::OwnLimit], 5);
    assert_right_together(&[Death::SiblingThenKill], 5);
}

/// One test for a part of the deaths: a test may take some minutes only.
macro_rules! twenty_at_once {
    ($($name:ident: $range:expr;)*) => {
        $(#[test]
        #[ignore = "takes minutes"]
        fn $name() {
            assert_right_together(&Death::ALL[$range], AT_ONCE);
        })*
    };
}

twenty_at_once! {
    twenty_at_once_oom: 0..3;
    twenty_at_once_oom_of_others: 3..5;
    twenty_at_once_oom_of_members: 5..8;
    twenty_at_once_signals: 8..14;
    twenty_at_once_faults: 14..20;
    twenty_at_once_by_themselves: 20..27;
}
