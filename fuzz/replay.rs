//! Replays a corpus without the fuzzer. The tests of every crate with a parser include this file.

use std::fs;
use std::path::Path;

/// Hands every input in `fuzz/corpus/NAME` to a property, which panics when it is broken. What is printed last is then
/// the input that broke it.
pub(super) fn replay(name: &str, property: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let listed = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut inputs: Vec<_> = listed.map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} is empty", corpus.display());
    for input in inputs {
        println!("{}", input.display());
        property(&fs::read(&input).unwrap());
    }
}
