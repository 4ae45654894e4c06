//! A place in a list, as an address has it: a time and an id.

use std::fmt::Display;
use std::str::FromStr;

use grabd_domain::Timestamp;

use crate::form::Form;
use crate::problem::Problem;

/// The field of a query that says after which place a page begins.
pub(super) const AFTER: &str = "after";

/// `1795206774120.01993e1c-7b1a-7000-8000-0123456789ab`
pub(super) fn write(at: Timestamp, id: impl Display) -> String {
    format!("{}.{id}", at.as_ms())
}

/// The place that a query names; `None` when it names none.
///
/// # Errors
/// When what it names is no place.
pub(super) fn read<Id: FromStr>(query: &Form) -> Result<Option<(Timestamp, Id)>, Problem> {
    let text = query.one(AFTER);
    if text.is_empty() {
        return Ok(None);
    }
    parse(text).map(Some).ok_or_else(|| {
        Problem::bad_request(
            "There is no such place in the list",
            "The address names no place in it.",
            "Begin at the top.",
        )
    })
}

fn parse<Id: FromStr>(text: &str) -> Option<(Timestamp, Id)> {
    let (at, id) = text.split_once('.')?;
    Some((Timestamp::from_ms(at.parse().ok()?), id.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use grabd_domain::ids::TeamId;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let id: TeamId = "01993e1c-7b1a-7000-8000-0123456789ab".parse().unwrap();
        let at = Timestamp::from_ms(1_795_206_774_120);
        let query = |text: &str| Form::from_iter([(AFTER, text)]);
        assert_eq!(read(&query(&write(at, id))).unwrap(), Some((at, id)));
        assert_eq!(read::<TeamId>(&query("")).unwrap(), None);
        for text in ["x", "1.x", ".", "1795206774120", "x.01993e1c-7b1a-7000-8000-0123456789ab"] {
            assert!(read::<TeamId>(&query(text)).is_err(), "{text}");
        }
    }
}
