//! Parser properties that hold for every input. The fuzzer searches for counterexamples; the tests replay
//! `fuzz/corpus`.
//!
//! Properties are written independently of the code under test. They panic on a violation.

mod address;
mod capture;
mod keys;
mod url;

pub use address::address;
pub use capture::capture;
pub use keys::{api_key, idempotency_key};
pub use url::url;

use crate::Fault;

/// Returns the name of the invalid field, after checking that the field can be displayed.
fn invalid_field(fault: &Fault) -> &'static str {
    let field = fault.field().expect("the fault has a field");
    assert!(field.seen.chars().count() <= 121 && !field.seen.chars().any(char::is_control), "{field:?}");
    assert!(!field.allowed.is_empty(), "{field:?}");
    field.name
}

#[cfg(test)]
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;

    #[test]
    fn corpus_satisfies_the_properties() {
        replay("address", super::address);
        replay("authorization", super::api_key);
        replay("create_body", super::capture);
        replay("idempotency_key", super::idempotency_key);
        replay("url", super::url);
    }
}
