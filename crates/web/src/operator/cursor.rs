//! Pagination cursors: a time and an id.

use std::fmt::Display;
use std::str::FromStr;

use grabd_domain::Timestamp;

use crate::form::Form;
use crate::problem::Problem;

/// The query parameter with the cursor after which a page begins.
pub(super) const AFTER: &str = "after";

/// Formats a cursor, such as `1795206774120.01993e1c-7b1a-7000-8000-0123456789ab`.
pub(super) fn format(at: Timestamp, id: impl Display) -> String {
    format!("{}.{id}", at.as_ms())
}

/// The path of a list with this text of the field of its search, after a cursor.
pub(super) fn list_path(path: &str, (field, search): (&str, &str), after: Option<&str>) -> String {
    let mut query: Vec<(&str, &str)> = Vec::new();
    query.extend((!search.is_empty()).then_some((field, search)));
    query.extend(after.map(|after| (AFTER, after)));
    let query = Form::from_iter(query).to_query();
    format!("{path}{}{query}", if query.is_empty() { "" } else { "?" })
}

/// The cursor in a query, if there is one.
///
/// # Errors
/// When the cursor is malformed.
pub(super) fn from_query<Id: FromStr>(query: &Form) -> Result<Option<(Timestamp, Id)>, Problem> {
    let text = query.get(AFTER);
    if text.is_empty() {
        return Ok(None);
    }
    parse(text).map(Some).ok_or_else(|| {
        Problem::bad_request(
            "Invalid page link",
            "The link refers to an unknown position.",
            "Go back to the first page.",
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
    fn cursors_round_trip() {
        let id: TeamId = "01993e1c-7b1a-7000-8000-0123456789ab".parse().unwrap();
        let at = Timestamp::from_ms(1_795_206_774_120);
        let query = |text: &str| Form::from_iter([(AFTER, text)]);
        assert_eq!(from_query(&query(&format(at, id))).unwrap(), Some((at, id)));
        assert_eq!(from_query::<TeamId>(&query("")).unwrap(), None);
        for text in ["x", "1.x", ".", "1795206774120", "x.01993e1c-7b1a-7000-8000-0123456789ab"] {
            assert!(from_query::<TeamId>(&query(text)).is_err(), "{text}");
        }
    }
}
