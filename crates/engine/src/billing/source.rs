//! Where credits came from, as far as it tells people something.

/// Begins what was made up for a grant that nobody gave a reference: the operator's, and a new team's.
const MADE_UP: [&str; 2] = ["hand:", "team:"];
/// Begins what the operator wrote.
const WRITTEN: &str = "ref:";

/// What the reference of a lot or an entry says: a payment, or the operator's own words. `None` when it was only made up to
/// grant once.
pub fn source(reference: &str) -> Option<&str> {
    if MADE_UP.iter().any(|prefix| reference.starts_with(prefix)) {
        return None;
    }
    Some(reference.strip_prefix(WRITTEN).unwrap_or(reference))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_is_left_out() {
        for (reference, expected) in [
            ("ref:invoice-4711", Some("invoice-4711")),
            ("ref:ref:x", Some("ref:x")),
            ("stripe:pi_1", Some("stripe:pi_1")),
            ("refund of stripe:pi_1", Some("refund of stripe:pi_1")),
            ("hand:000102", None),
            ("team:01993e1c-7b1a-7000-8000-0123456789ab", None),
        ] {
            assert_eq!(source(reference), expected, "{reference}");
        }
    }
}
