//! What holds of every input, whoever sent it. The fuzzer looks for one that breaks a property, and the tests replay what
//! it kept in `fuzz/corpus`.
//!
//! Every property is formulated without the code that it is about. It panics when it is broken.

mod address;
mod capture;
mod keys;
mod url;

pub use address::address;
pub use capture::capture;
pub use keys::{api_key, idempotency_key};
pub use url::url;

use crate::Fault;

/// The field that a refusal names, which must be fit to be shown.
fn named(fault: &Fault) -> &'static str {
    let field = fault.field().expect("a refusal names a field");
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
    fn the_corpus_keeps_them() {
        replay("address", super::address);
        replay("authorization", super::api_key);
        replay("create_body", super::capture);
        replay("idempotency_key", super::idempotency_key);
        replay("url", super::url);
    }
}
