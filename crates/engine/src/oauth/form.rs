//! Form fields of a request, with a check for repeated fields.

/// Names and values in the order received, including repeated ones.
pub type Fields = Vec<(String, String)>;

/// A field that was sent more than once although only one value is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RepeatedField(pub(super) &'static str);

#[derive(Clone, Copy)]
pub(super) struct Form<'a>(pub(super) &'a Fields);

impl<'a> Form<'a> {
    /// The value of a field. An empty value counts as omitted (RFC 6749 section 3.1).
    pub(super) fn one(self, name: &'static str) -> Result<Option<&'a str>, RepeatedField> {
        let mut values = self.named(name);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(RepeatedField(name)),
            (value, None) => Ok(value.filter(|value| !value.is_empty())),
        }
    }

    /// All non-empty values of a field that may be repeated.
    pub(super) fn all(self, name: &'static str) -> impl Iterator<Item = &'a str> {
        self.named(name).filter(|value| !value.is_empty())
    }

    pub(super) fn bytes(self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    fn named(self, name: &'static str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

impl RepeatedField {
    pub(super) fn description(self) -> String {
        format!("`{}` must not be repeated.", self.0)
    }
}
