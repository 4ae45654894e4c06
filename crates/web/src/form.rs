//! Forms as they come in, and their fields as they are shown again.

use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tokio::time::timeout;
use url::form_urlencoded;

/// Largest form in bytes. The longest authorization request is below half of it.
const LIMIT_BYTES: usize = 16 * 1024;
/// How long a form may take to arrive.
const DEADLINE: Duration = Duration::from_secs(10);

/// Names and values in the order in which they came, repeated ones too.
#[derive(Debug, Default)]
pub(crate) struct Form(Vec<(String, String)>);

/// Why there is no form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("The body must be application/x-www-form-urlencoded.")]
    AnotherType,
    #[error("The body has more than {LIMIT_BYTES} bytes.")]
    TooLarge,
    #[error("The body did not arrive as a whole.")]
    BrokenOff,
}

impl<'a> FromIterator<(&'a str, &'a str)> for Form {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

impl Form {
    /// The form in a body.
    ///
    /// # Errors
    /// When it is none, too large, or does not arrive in time.
    pub(crate) async fn read(headers: &HeaderMap, body: Body) -> Result<Self, Unreadable> {
        let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(Unreadable::AnotherType);
        }
        Ok(Self::parse(&read(body).await?))
    }

    /// The form in a query or body.
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// A field. One that is not there, or is there twice, is as good as empty.
    pub(crate) fn one(&self, name: &str) -> &str {
        let mut values = self.0.iter().filter(|(named, _)| named == name).map(|(_, value)| value.as_str());
        values.next().filter(|_| values.next().is_none()).unwrap_or_default()
    }

    /// Is there such a field?
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(named, _)| named == name)
    }

    /// All fields, for whoever judges them.
    pub(crate) fn fields(&self) -> &Vec<(String, String)> {
        &self.0
    }

    /// As the query of an address.
    pub(crate) fn to_query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }
}

/// A body that is not larger than forms are.
///
/// # Errors
/// When it is, or does not arrive in time.
pub(crate) async fn read(body: Body) -> Result<Vec<u8>, Unreadable> {
    if body.size_hint().lower() > LIMIT_BYTES as u64 {
        return Err(Unreadable::TooLarge);
    }
    match timeout(DEADLINE, to_bytes(body, LIMIT_BYTES + 1)).await {
        Ok(Ok(bytes)) if bytes.len() <= LIMIT_BYTES => Ok(bytes.into()),
        Ok(Ok(_)) => Err(Unreadable::TooLarge),
        // A longer body breaks the reading off, as a connection does that ends.
        Ok(Err(_)) | Err(_) => Err(Unreadable::BrokenOff),
    }
}

/// A field as it is shown.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    /// The `type` of the input.
    pub(crate) kind: &'static str,
    pub(crate) autocomplete: &'static str,
    /// Characters a browser lets one type.
    pub(crate) longest: u32,
    pub(crate) hint: &'static str,
    /// What stands in it. Never a password.
    pub(crate) value: String,
    pub(crate) error: Option<String>,
}

/// Something wrong, and the field to look at.
#[derive(Debug, Default)]
pub(crate) struct Complaint {
    /// Empty when it is about no field, or about all.
    pub(crate) field: &'static str,
    pub(crate) message: String,
}

impl Field {
    /// The ids of what says more about it.
    pub(crate) fn described_by(&self) -> Option<String> {
        let Self { name, .. } = self;
        match (self.hint.is_empty(), self.error.is_some()) {
            (true, false) => None,
            (false, false) => Some(format!("{name}-hint")),
            (true, true) => Some(format!("{name}-error")),
            (false, true) => Some(format!("{name}-hint {name}-error")),
        }
    }

    /// The same field under another name, with the complaints about it.
    pub(crate) fn named(self, name: &'static str, label: &'static str, complaints: &[Complaint]) -> Self {
        Self { name, label, ..self }.with_errors(complaints)
    }

    /// The same field with something in it.
    pub(crate) fn holding(self, value: &str) -> Self {
        Self { value: value.to_owned(), ..self }
    }

    /// Ties the complaints about it to it.
    pub(crate) fn with_errors(mut self, complaints: &[Complaint]) -> Self {
        let own = complaints.iter().find(|complaint| complaint.field == self.name);
        self.error = own.map(|complaint| complaint.message.clone());
        self
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use futures::stream;
    use http::HeaderValue;

    use super::*;

    fn typed(media_type: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))])
    }

    #[tokio::test]
    async fn forms_are_read_up_to_their_limit() {
        let form = typed("application/x-www-form-urlencoded;charset=UTF-8");
        let read = async |headers: &HeaderMap, body| Form::read(headers, body).await.map(|form| form.one("a").len());
        let full = format!("a={}", "x".repeat(LIMIT_BYTES - 2));
        assert_eq!(read(&form, Body::from(full.clone())).await, Ok(LIMIT_BYTES - 2));
        assert_eq!(read(&form, Body::from(full + "x")).await, Err(Unreadable::TooLarge));
        let chunk = Bytes::from(vec![b'x'; LIMIT_BYTES / 2 + 1]);
        let endless = Body::from_stream(stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone())));
        assert_eq!(read(&form, endless).await, Err(Unreadable::BrokenOff));
        for other in ["application/json", "multipart/form-data", ""] {
            assert_eq!(read(&typed(other), Body::from("a=b")).await, Err(Unreadable::AnotherType), "{other}");
        }
        assert_eq!(read(&HeaderMap::new(), Body::from("a=b")).await, Err(Unreadable::AnotherType));
    }

    #[test]
    fn a_field_that_comes_twice_counts_as_none() {
        let form = Form::parse(b"a=1&b=2&a=3&c=%C3%A4+%26");
        assert_eq!([form.one("a"), form.one("b"), form.one("c"), form.one("d")], ["", "2", "\u{e4} &", ""]);
        assert!(form.has("a") && !form.has("d"));
        assert_eq!(form.to_query(), "a=1&b=2&a=3&c=%C3%A4+%26");
    }
}
