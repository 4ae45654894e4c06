//! Typed access to the members of a JSON body. Members that are not read are ignored.

use grabd_options::unknown;
use grabd_proto::v1::Unparsed;
use serde_json::value::RawValue;

use super::call::unparsed;
use super::json;

/// The members of an object, and those that had the wrong type when they were read.
pub(crate) struct Fields<'a> {
    members: json::Members<'a>,
    /// Members of the wrong type. The core reports them in the order of its validation.
    pub(crate) unparsed: Vec<Unparsed>,
}

impl<'a> From<json::Members<'a>> for Fields<'a> {
    fn from(members: json::Members<'a>) -> Self {
        Self { members, unparsed: Vec::new() }
    }
}

impl<'a> Fields<'a> {
    /// Parses a body that must be one object.
    ///
    /// # Errors
    /// With a description of what was received instead.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, String> {
        json::object(body).map(Self::from)
    }

    /// The alphabetically first member that is not in `known`.
    pub(crate) fn unknown_member(&self, known: &[&str]) -> Option<&str> {
        self.members.keys().map(String::as_str).filter(|name| !known.contains(name)).min()
    }

    /// The names of members that are no capture options, as warnings name them.
    pub(crate) fn no_options(&self) -> Vec<String> {
        let names = self.members.keys().map(String::as_str);
        unknown::shortened(names.filter(|name| grabd_options::find(name).is_none()))
    }

    /// Parses a member. If `parse` fails, the member is added to `unparsed`.
    pub(crate) fn read<T>(&mut self, name: &str, parse: impl FnOnce(&RawValue) -> Option<T>) -> Option<T> {
        let value = self.members.get(name)?;
        let parsed = parse(value);
        if parsed.is_none() {
            self.unparsed.push(unparsed(name, value.get()));
        }
        parsed
    }
}
