//! The source of credits, as shown to users.

use grabd_store::credits::TRIAL_PREFIX;

/// Prefixes of generated references: grants by an operator without a reference, the first grant of a new team, and trials.
/// Nobody paid for such credits.
pub(crate) const FREE_REFERENCES: [&str; 3] = ["hand:", "team:", TRIAL_PREFIX];
/// Prefix of a reference that an operator wrote.
const OPERATOR_PREFIX: &str = "ref:";

/// The displayable part of the reference of a lot or an entry: a payment id, or the operator's text. `None` for a
/// generated reference, which only makes the grant idempotent.
pub fn source(reference: &str) -> Option<&str> {
    if FREE_REFERENCES.iter().any(|prefix| reference.starts_with(prefix)) {
        return None;
    }
    Some(reference.strip_prefix(OPERATOR_PREFIX).unwrap_or(reference))
}

/// Whether the credits of this reference are those that a user got for verifying the e-mail address.
pub fn is_trial(reference: &str) -> bool {
    reference.starts_with(TRIAL_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_references_have_no_source() {
        for (reference, expected) in [
            ("ref:invoice-4711", Some("invoice-4711")),
            ("ref:ref:x", Some("ref:x")),
            ("stripe:pi_1", Some("stripe:pi_1")),
            ("refund of stripe:pi_1", Some("refund of stripe:pi_1")),
            ("hand:000102", None),
            ("team:01993e1c-7b1a-7000-8000-0123456789ab", None),
            ("trial:01993e1c-7b1a-7000-8000-0123456789ab", None),
        ] {
            assert_eq!(source(reference), expected, "{reference}");
        }
    }

    #[test]
    fn trial_is_not_what_an_operator_wrote() {
        assert!(is_trial("trial:01993e1c-7b1a-7000-8000-0123456789ab"));
        assert!(!is_trial("ref:trial:x") && !is_trial("hand:000102"));
    }
}
