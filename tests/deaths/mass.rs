//! A thousand OOM kills: none missed, none invented.

use sexton_tests::OrSkip;
use sexton_tests::deaths::mass;

#[track_caller]
fn none_missed_none_invented(kills: usize) {
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let Some((tally, wrong)) = mass::run(kills, seed).or_skip() else { return };
    eprintln!("{tally}");
    assert!(wrong.is_empty(), "{tally}\n{}", wrong.join("\n"));
    assert!(tally.oom * 10 >= kills * 8 && tally.all > tally.oom, "a mix of both: {tally}");
}

#[test]
fn a_hundred_oom_kills_with_decoys() {
    none_missed_none_invented(100);
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_oom_kills_with_decoys() {
    none_missed_none_invented(1000);
}
