//! Parts of a request that had the wrong type on the wire they came by.

use grabd_options::{CaptureOption, CaptureRequest, Member, Problem};

use crate::faults::Field;

/// The member of an option that could not be read, and its value.
pub(super) fn member<'a>(request: &'a CaptureRequest, option: &CaptureOption) -> Option<(&'static Member, &'a str)> {
    request.unparsed.iter().find_map(|(name, seen)| {
        let member = name.strip_prefix(option.name)?.strip_prefix('.')?;
        Some((option.member(member)?, seen.as_str()))
    })
}

/// The field of an error for a value that an option cannot have.
pub(super) fn field(Problem { name, member, seen, allowed }: Problem) -> Field {
    Field::new(name, &seen, allowed).in_member(member)
}

/// A part of an option that had the wrong type on its wire: the value seen there, and what is allowed.
pub(super) fn part<'a>(request: &'a CaptureRequest, option: &CaptureOption) -> Option<(&'a str, String)> {
    let allowed = |field: &str| option.kind.allowed_at(option.name, field.strip_prefix(option.name)?);
    request.unparsed.iter().find_map(|(field, seen)| Some((seen.as_str(), allowed(field)?)))
}
