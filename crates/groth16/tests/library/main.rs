//! The library from outside: what a caller may rely on.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "clippy sees the functions that tests share as ordinary code"
)]

mod circuits;
mod formats;
mod key_files;
mod second_verifier;
mod soundness;
mod vectors;

use std::path::PathBuf;
use std::sync::LazyLock;

use sexton_groth16::circuit::mimc;
use sexton_groth16::{Instance, Proven, ProvingKey, Scalar, Shape, prove, setup};

/// One small key and a proof of it, for the tests that are about neither.
static SAMPLE: LazyLock<Sample> = LazyLock::new(|| {
    let instance: Instance = mimc::Preimage::new(5, Scalar::from(42)).expect("in range").into();
    let key = setup(instance.shape()).expect("set up");
    let proven = prove(&key, &instance).expect("proves");
    Sample { key, proven }
});

struct Sample {
    key: ProvingKey,
    proven: Proven,
}

fn shape(text: &str) -> Shape {
    text.parse().expect("valid shape")
}

/// A file among the test vectors of others, which lie beside the project; says so and gives `None` without them.
fn vector(name: &str) -> Option<PathBuf> {
    let project = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = project.join("../shared/vectors").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: test vector ../shared/vectors/{name} is not there");
    None
}
