//! The members of a JSON body, each as its type or as what was seen instead. Members that nobody asks for are ignored.

use grabd_proto::v1::Unparsed;
use serde_json::value::RawValue;

use super::call::unparsed;
use super::json;

/// The members, and those of the wrong type, which the core judges in its own order.
pub(crate) struct Fields<'a> {
    members: json::Members<'a>,
    pub(crate) unparsed: Vec<Unparsed>,
}

impl<'a> From<json::Members<'a>> for Fields<'a> {
    fn from(members: json::Members<'a>) -> Self {
        Self { members, unparsed: Vec::new() }
    }
}

impl<'a> Fields<'a> {
    /// Of the one object that a body holds.
    ///
    /// # Errors
    /// With what was seen instead.
    pub(crate) fn of(body: &'a [u8]) -> Result<Self, String> {
        json::object(body).map(Self::from)
    }

    /// A member that is none of these, if there is one; of several always the same.
    pub(crate) fn other_than(&self, known: &[&str]) -> Option<&str> {
        self.members.keys().map(String::as_str).filter(|name| !known.contains(name)).min()
    }

    /// A member, if it is there and `parse` takes it.
    pub(crate) fn read<T>(&mut self, name: &str, parse: impl FnOnce(&RawValue) -> Option<T>) -> Option<T> {
        let value = self.members.get(name)?;
        let parsed = parse(value);
        if parsed.is_none() {
            self.unparsed.push(unparsed(name, value.get()));
        }
        parsed
    }
}
