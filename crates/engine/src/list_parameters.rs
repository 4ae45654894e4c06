//! The parameters that all list requests have: `limit` and `starting_after`.

use grabd_domain::Fault;
use grabd_domain::faults::Field;
use grabd_domain::limits::{DEFAULT_PAGE_SIZE, PAGE_SIZE};

/// What `limit` must be.
pub(crate) fn allowed_limits() -> String {
    format!("an integer from {} to {}", PAGE_SIZE.start(), PAGE_SIZE.end())
}

/// The number of entries of a page.
///
/// # Errors
/// [`Fault::BadRequest`] if `limit` is out of range.
pub(crate) fn parse_limit(limit: Option<i64>) -> Result<u32, Fault> {
    let limit = limit.unwrap_or_else(|| DEFAULT_PAGE_SIZE.into());
    u32::try_from(limit)
        .ok()
        .filter(|_| PAGE_SIZE.contains(&limit))
        .ok_or_else(|| Fault::BadRequest(Field::new("limit", &limit.to_string(), allowed_limits())))
}

/// The number of entries of a page. Also checks the types of the parameters: `unparsed` are those with a wrong one, and `cursor` is
/// what `starting_after` must be.
///
/// # Errors
/// [`Fault::BadRequest`] with the invalid parameter.
pub(crate) fn parse_typed_limit(limit: Option<i64>, unparsed: &[(String, String)], cursor: &str) -> Result<u32, Fault> {
    let limits = allowed_limits();
    for (name, allowed) in [("limit", limits.as_str()), ("starting_after", cursor)] {
        if let Some((_, seen)) = unparsed.iter().find(|(field, _)| field == name) {
            return Err(Fault::BadRequest(Field::new(name, seen, allowed)));
        }
    }
    parse_limit(limit)
}

/// The error for a `starting_after` that is not in the list.
pub(crate) fn invalid_cursor(text: &str, allowed: &str) -> Fault {
    Fault::BadRequest(Field::new("starting_after", &format!("\"{text}\""), allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_parameter_of_a_list_is_named() {
        let field = |limit: Option<i64>, unparsed: &[(String, String)]| {
            parse_typed_limit(limit, unparsed, "an id").err().and_then(|fault| fault.field().map(|field| field.name))
        };
        assert_eq!(parse_limit(None), Ok(25));
        for (limit, is_valid) in [(1, true), (100, true), (0, false), (101, false), (-1, false), (i64::MAX, false)] {
            assert_eq!(field(Some(limit), &[]), (!is_valid).then_some("limit"), "{limit}");
        }
        for name in ["limit", "starting_after"] {
            assert_eq!(field(None, &[(name.to_owned(), "x".to_owned())]), Some(name));
        }
    }
}
