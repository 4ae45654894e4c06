//! The gate, with keys, tokens and links of a real core.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod gate;
mod secrets;
#[expect(dead_code, reason = "the tests of the use-cases need more of it")]
#[path = "../../../engine/tests/users/test_core.rs"]
mod test_core;
