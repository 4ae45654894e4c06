//! Arguments of tools that are not forwarded to the core.

use super::super::message::shorten;
use crate::rest::fields::Fields;
use crate::rest::json;

/// Reads a boolean.
///
/// # Errors
/// With a message for a value that is not a boolean.
pub(super) fn read_bool(fields: &mut Fields<'_>, name: &str, default: bool) -> Result<bool, String> {
    let value = fields.read(name, json::boolean);
    match value {
        Some(value) => Ok(value),
        None if is_unparsed(fields, name) => Err(argument_error(fields, name, "true or false")),
        None => Ok(default),
    }
}

/// Reads an integer within bounds.
///
/// # Errors
/// With a message for another value.
pub(super) fn read_integer(
    fields: &mut Fields<'_>,
    name: &str,
    (least, most): (u32, u32),
    default: u32,
) -> Result<u32, String> {
    let within = |number: &u32| (least..=most).contains(number);
    let value = fields.read(name, |value| u32::try_from(json::integer(value)?).ok().filter(within));
    match value {
        Some(value) => Ok(value),
        None if is_unparsed(fields, name) => {
            Err(argument_error(fields, name, &format!("an integer from {least} to {most}")))
        }
        None => Ok(default),
    }
}

/// Whether an argument had the wrong type or a value out of its bounds.
pub(super) fn is_unparsed(fields: &Fields<'_>, name: &str) -> bool {
    fields.unparsed.iter().any(|unparsed| unparsed.field == name)
}

/// The message for an argument that is missing or not allowed.
pub(super) fn argument_error(fields: &Fields<'_>, name: &str, allowed: &str) -> String {
    match fields.unparsed.iter().find(|unparsed| unparsed.field == name) {
        Some(unparsed) => format!("`{name}` must be {allowed}; got {}.", shorten(&unparsed.seen)),
        None => format!("`{name}` must be {allowed}."),
    }
}
