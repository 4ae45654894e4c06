//! The members of a JSON body, each as its type or as what was seen instead. Members that nobody asks for are ignored.

use grabd_proto::v1::Unparsed;
use serde_json::value::RawValue;

use super::call::unparsed;
use super::json;

/// The members, and those of the wrong type, which the core judges in its own order.
pub(super) struct Fields<'a> {
    members: json::Members<'a>,
    pub(super) unparsed: Vec<Unparsed>,
}

impl<'a> Fields<'a> {
    /// Of the one object that a body holds.
    ///
    /// # Errors
    /// With what was seen instead.
    pub(super) fn of(body: &'a [u8]) -> Result<Self, String> {
        json::object(body).map(|members| Self { members, unparsed: Vec::new() })
    }

    /// A member, if it is there and `parse` takes it.
    pub(super) fn read<T>(&mut self, name: &str, parse: impl FnOnce(&RawValue) -> Option<T>) -> Option<T> {
        let value = self.members.get(name)?;
        let parsed = parse(value);
        if parsed.is_none() {
            self.unparsed.push(unparsed(name, value.get()));
        }
        parsed
    }
}
