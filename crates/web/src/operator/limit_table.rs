//! The table of a team's limits, and the form that changes one.

use grabd_domain::team_limits::TeamLimit;
use grabd_engine::operator::LimitRow;

use crate::form::{Field, FieldError, Form};
use crate::number::grouped;

/// The field with the name of the limit.
pub(super) const LIMIT_FIELD: &str = "limit";
/// The field with its value; empty to remove the override.
pub(super) const VALUE_FIELD: &str = "limit_value";

/// The table of limits, and the form that changes one.
pub(super) struct Limits {
    pub(super) rows: Vec<Row>,
    pub(super) choices: Vec<Choice>,
    pub(super) limit_error: Option<String>,
    pub(super) value: Field,
}

/// A limit in the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) title: String,
    pub(super) value: String,
    pub(super) setting: String,
    pub(super) is_overridden: bool,
}

/// A limit in the form.
pub(super) struct Choice {
    pub(super) name: &'static str,
    pub(super) title: String,
    pub(super) is_selected: bool,
}

impl Limits {
    pub(super) fn new(rows: Vec<LimitRow>, input: &Form, errors: &[FieldError]) -> Self {
        let row = |row: LimitRow| Row {
            name: row.limit.as_str(),
            title: title(row.limit),
            value: grouped(row.value),
            setting: grouped(row.setting),
            is_overridden: row.is_overridden,
        };
        let value = Field {
            name: VALUE_FIELD,
            label: "New value",
            kind: "text",
            autocomplete: "off",
            max_length: 10,
            hint: "A whole number. Leave it empty to apply the setting again.",
            value: input.get(VALUE_FIELD).to_owned(),
            error: None,
        };
        let selected = input.get(LIMIT_FIELD);
        let choice = |limit: TeamLimit| {
            let name = limit.as_str();
            Choice { name, title: title(limit), is_selected: name == selected }
        };
        Self {
            rows: rows.into_iter().map(row).collect(),
            choices: TeamLimit::ALL.into_iter().map(choice).collect(),
            limit_error: errors.iter().find(|error| error.field == LIMIT_FIELD).map(|error| error.message.clone()),
            value: value.with_errors(errors),
        }
    }
}

/// What the limit is, with a capital first letter.
fn title(limit: TeamLimit) -> String {
    let mut letters = limit.about().chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
