//! The query of a request. Parameters that an endpoint does not know are ignored, however often they come.

use std::borrow::Cow;

use grabd_proto::v1::Unparsed;
use http::Uri;
use url::form_urlencoded;

use super::call::unparsed;

/// Names and values in the order they came.
pub(super) struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    /// The query of an address.
    pub(super) fn of(uri: &'a Uri) -> Self {
        Self { pairs: form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).collect() }
    }

    /// The value of a parameter that may come once. Two of them are told to the core as a value it cannot accept.
    pub(super) fn once(&self, name: &str, refused: &mut Vec<Unparsed>) -> Option<&str> {
        let mut values = self.values(name);
        let first = values.next()?;
        match values.count() {
            0 => Some(first),
            more => {
                refused.push(unparsed(name, &format!("{} values", more + 1)));
                None
            }
        }
    }

    /// Its value, read by `parse`. What `parse` does not take is told to the core.
    pub(super) fn parsed<T>(
        &self,
        name: &str,
        refused: &mut Vec<Unparsed>,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.once(name, refused)?;
        let value = parse(text);
        if value.is_none() {
            refused.push(unparsed(name, &format!("\"{text}\"")));
        }
        value
    }

    /// The value that a parameter was given last.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.values(name).last()
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_ref())
    }
}
