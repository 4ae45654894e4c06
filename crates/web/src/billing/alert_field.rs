//! The field for the number of credits below which owners get an alert.

use crate::form::{Field, FieldError};

/// The name of the field.
pub(super) const FIELD: &str = "alert_below";
/// Enough for the highest number with separators, and for what users enter by mistake.
pub(super) const MAX_CHARS: u32 = 20;

/// The field for the number.
pub(super) fn field(below: String, errors: &[FieldError]) -> Field {
    let field = Field {
        name: FIELD,
        label: "Alert below",
        kind: "text",
        autocomplete: "off",
        max_length: MAX_CHARS,
        hint: "Credits. 0 turns the alert off.",
        value: below,
        error: None,
    };
    field.with_errors(errors)
}
