//! Fields of a request, which must not be repeated where one is meant.

/// As they came, repeated ones too.
pub type Fields = Vec<(String, String)>;

/// A field that came more than once, so that nobody can say which one was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeated(pub(super) &'static str);

#[derive(Clone, Copy)]
pub(super) struct Form<'a>(pub(super) &'a Fields);

impl<'a> Form<'a> {
    /// The field's value. One without a value counts as left out (RFC 6749 section 3.1).
    pub(super) fn one(self, name: &'static str) -> Result<Option<&'a str>, Repeated> {
        let mut values = self.named(name);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Repeated(name)),
            (value, None) => Ok(value.filter(|value| !value.is_empty())),
        }
    }

    /// All values of a field that may be repeated.
    pub(super) fn all(self, name: &'static str) -> impl Iterator<Item = &'a str> {
        self.named(name).filter(|value| !value.is_empty())
    }

    pub(super) fn bytes(self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    fn named(self, name: &'static str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Repeated {
    pub(super) fn sentence(self) -> String {
        format!("`{}` must not be repeated.", self.0)
    }
}
