//! The filter of the audit trail in the query of a page.

use grabd_domain::Day;
use grabd_engine::trail::AuditAction;

use crate::form::{FieldError, Form};
use crate::problem::Problem;

/// The query parameter with the entry after which a page begins.
pub(crate) const AFTER: &str = "after";
/// The query parameter with the action.
const ACTION: &str = "action";
/// The query parameter with the day.
const DAY: &str = "day";
/// Longest text of a rejected value that an error repeats, in characters.
const SEEN_CHARS: usize = 40;

/// A choice of a filter.
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) label: String,
    pub(crate) is_chosen: bool,
}

/// The choices of actions.
pub(crate) fn action_choices(actions: impl Iterator<Item = AuditAction>, chosen: Option<AuditAction>) -> Vec<Choice> {
    let choice = |action: AuditAction| Choice {
        value: action.name.to_owned(),
        label: action.label.to_owned(),
        is_chosen: chosen == Some(action),
    };
    actions.map(choice).collect()
}

/// The action of a query. An unknown one adds an error.
pub(crate) fn parse_action(query: &Form, errors: &mut Vec<FieldError>) -> Option<AuditAction> {
    let text = query.get(ACTION);
    let action = AuditAction::find(text);
    if action.is_none() && !text.is_empty() {
        let message = format!("There is no action “{}”. Choose one of the list.", seen(text));
        errors.push(FieldError { field: ACTION, message });
    }
    action
}

/// The day of a query. A malformed one adds an error.
pub(crate) fn parse_day(query: &Form, errors: &mut Vec<FieldError>) -> Option<Day> {
    let text = query.get(DAY);
    let day = Day::parse(text);
    if day.is_none() && !text.is_empty() {
        let message = format!("“{}” is not a day. Enter one such as 2026-11-20.", seen(text));
        errors.push(FieldError { field: DAY, message });
    }
    day
}

/// The entry after which a page begins.
///
/// # Errors
/// When it is malformed.
pub(crate) fn parse_after(query: &Form) -> Result<Option<i64>, Problem> {
    match query.get(AFTER) {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            Problem::bad_request(
                "Invalid page link",
                "The link refers to an unknown entry.",
                "Go to the newest entries.",
            )
        }),
    }
}

fn seen(text: &str) -> String {
    let mut seen: String = text.chars().take(SEEN_CHARS).collect();
    if seen.len() < text.len() {
        seen.push('…');
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_parsed_and_errors_say_what_was_seen() {
        let parsed = |action: &str, day: &str| {
            let query = Form::from_iter([(ACTION, action), (DAY, day)]);
            let mut errors = Vec::new();
            let parsed = (parse_action(&query, &mut errors).map(|action| action.name), parse_day(&query, &mut errors));
            (parsed, errors.into_iter().map(|error| error.message).collect::<Vec<_>>())
        };
        assert_eq!(parsed("", ""), ((None, None), Vec::new()));
        let day = Day::parse("2026-11-20");
        assert_eq!(parsed("key.create", "2026-11-20"), ((Some("key.create"), day), Vec::new()));
        let (_, errors) = parsed("key.sell", "20.11.2026");
        assert_eq!(
            errors,
            [
                "There is no action “key.sell”. Choose one of the list.",
                "“20.11.2026” is not a day. Enter one such as 2026-11-20."
            ]
        );
        assert!(parse_after(&Form::from_iter([(AFTER, "7")])).is_ok_and(|after| after == Some(7)));
        assert!(parse_after(&Form::from_iter([(AFTER, "x")])).is_err());
    }
}
