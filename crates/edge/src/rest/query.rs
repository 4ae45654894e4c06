//! Query parameters. Unknown parameters are ignored, however often they occur.

use std::borrow::Cow;

use grabd_proto::v1::Unparsed;
use http::Uri;
use url::form_urlencoded;

use super::call::unparsed;

/// Names and values in their original order.
pub(super) struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    pub(super) fn from_uri(uri: &'a Uri) -> Self {
        Self { pairs: form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).collect() }
    }

    /// The value of a parameter that may occur once. Repeated parameters are reported to the core as an invalid value.
    pub(super) fn single(&self, name: &str, rejected: &mut Vec<Unparsed>) -> Option<&str> {
        let mut values = self.values(name);
        let first = values.next()?;
        match values.count() {
            0 => Some(first),
            more => {
                rejected.push(unparsed(name, &format!("{} values", more + 1)));
                None
            }
        }
    }

    /// Like [`Query::single`], with a parsed value. If `parse` fails, the value is reported to the core as invalid.
    pub(super) fn parse<T>(
        &self,
        name: &str,
        rejected: &mut Vec<Unparsed>,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.single(name, rejected)?;
        let value = parse(text);
        if value.is_none() {
            rejected.push(unparsed(name, &format!("\"{text}\"")));
        }
        value
    }

    /// The values of a parameter that is a list, separated by commas or given repeatedly.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        self.values(name).flat_map(|value| value.split(',')).map(|value| value.trim().to_owned()).collect()
    }

    /// The last value of a parameter.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.values(name).last()
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_ref())
    }
}
