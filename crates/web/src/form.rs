//! Parsing of submitted forms, and form fields for templates.

use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tokio::time::timeout;
use url::form_urlencoded;

/// Maximum size of a form in bytes. The longest authorization request and the largest set of capture options fit.
const LIMIT_BYTES: usize = 64 * 1024;
/// Deadline for reading a form.
const DEADLINE: Duration = Duration::from_secs(10);

/// Names and values in the order of the request, including repeated names.
#[derive(Debug, Default)]
pub(crate) struct Form(Vec<(String, String)>);

/// Why a form could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormError {
    #[error("The body must be application/x-www-form-urlencoded.")]
    UnsupportedMediaType,
    #[error("The body has more than {LIMIT_BYTES} bytes.")]
    TooLarge,
    #[error("The body did not arrive as a whole.")]
    Incomplete,
}

impl<'a> FromIterator<(&'a str, &'a str)> for Form {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

impl Form {
    /// Reads a form from a request body.
    ///
    /// # Errors
    /// When it is not a form, is too large, or does not arrive in time.
    pub(crate) async fn read(headers: &HeaderMap, body: Body) -> Result<Self, FormError> {
        let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(FormError::UnsupportedMediaType);
        }
        Ok(Self::parse(&read(body).await?))
    }

    /// Parses a query or body.
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// The value of a field. Empty if the field is missing or repeated.
    pub(crate) fn get(&self, name: &str) -> &str {
        let mut values = self.0.iter().filter(|(named, _)| named == name).map(|(_, value)| value.as_str());
        values.next().filter(|_| values.next().is_none()).unwrap_or_default()
    }

    /// The values of a field that may be repeated.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(named, _)| named == name).map(|(_, value)| value.as_str())
    }

    /// Whether the form has the field.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(named, _)| named == name)
    }

    /// All fields.
    pub(crate) fn fields(&self) -> &Vec<(String, String)> {
        &self.0
    }

    /// The form as a query string.
    pub(crate) fn to_query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }
}

/// Reads a body of at most the size of a form.
///
/// # Errors
/// When it is too large or does not arrive in time.
pub(crate) async fn read(body: Body) -> Result<Vec<u8>, FormError> {
    if body.size_hint().lower() > LIMIT_BYTES as u64 {
        return Err(FormError::TooLarge);
    }
    match timeout(DEADLINE, to_bytes(body, LIMIT_BYTES + 1)).await {
        Ok(Ok(bytes)) if bytes.len() <= LIMIT_BYTES => Ok(bytes.into()),
        Ok(Ok(_)) => Err(FormError::TooLarge),
        // `to_bytes` fails for a longer body as it does for a broken connection.
        Ok(Err(_)) | Err(_) => Err(FormError::Incomplete),
    }
}

/// A field as a template renders it.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    /// The `type` of the input.
    pub(crate) kind: &'static str,
    pub(crate) autocomplete: &'static str,
    /// The `maxlength` of the input.
    pub(crate) max_length: u32,
    pub(crate) hint: &'static str,
    /// The current value. Never a password.
    pub(crate) value: String,
    pub(crate) error: Option<String>,
}

/// A validation error and its field.
#[derive(Debug, Default)]
pub(crate) struct FieldError {
    /// Empty if the error is not about a single field.
    pub(crate) field: &'static str,
    pub(crate) message: String,
}

impl Field {
    /// The value of `aria-describedby`: the ids of the hint and the error.
    pub(crate) fn described_by(&self) -> Option<String> {
        let Self { name, .. } = self;
        match (self.hint.is_empty(), self.error.is_some()) {
            (true, false) => None,
            (false, false) => Some(format!("{name}-hint")),
            (true, true) => Some(format!("{name}-error")),
            (false, true) => Some(format!("{name}-hint {name}-error")),
        }
    }

    /// The same field with another name and label, and its errors.
    pub(crate) fn with_name(self, name: &'static str, label: &'static str, errors: &[FieldError]) -> Self {
        Self { name, label, ..self }.with_errors(errors)
    }

    /// The same field with a value.
    pub(crate) fn with_value(self, value: &str) -> Self {
        Self { value: value.to_owned(), ..self }
    }

    /// Sets the error for this field, if there is one.
    pub(crate) fn with_errors(mut self, errors: &[FieldError]) -> Self {
        let own = errors.iter().find(|field_error| field_error.field == self.name);
        self.error = own.map(|field_error| field_error.message.clone());
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
    async fn forms_above_the_size_limit_are_rejected() {
        let form = typed("application/x-www-form-urlencoded;charset=UTF-8");
        let read = async |headers: &HeaderMap, body| Form::read(headers, body).await.map(|form| form.get("a").len());
        let full = format!("a={}", "x".repeat(LIMIT_BYTES - 2));
        assert_eq!(read(&form, Body::from(full.clone())).await, Ok(LIMIT_BYTES - 2));
        assert_eq!(read(&form, Body::from(full + "x")).await, Err(FormError::TooLarge));
        let chunk = Bytes::from(vec![b'x'; LIMIT_BYTES / 2 + 1]);
        let endless = Body::from_stream(stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone())));
        assert_eq!(read(&form, endless).await, Err(FormError::Incomplete));
        for other in ["application/json", "multipart/form-data", ""] {
            assert_eq!(read(&typed(other), Body::from("a=b")).await, Err(FormError::UnsupportedMediaType), "{other}");
        }
        assert_eq!(read(&HeaderMap::new(), Body::from("a=b")).await, Err(FormError::UnsupportedMediaType));
    }

    #[test]
    fn repeated_field_reads_as_empty() {
        let form = Form::parse(b"a=1&b=2&a=3&c=%C3%A4+%26");
        assert_eq!([form.get("a"), form.get("b"), form.get("c"), form.get("d")], ["", "2", "\u{e4} &", ""]);
        assert!(form.has("a") && !form.has("d"));
        assert_eq!(form.to_query(), "a=1&b=2&a=3&c=%C3%A4+%26");
    }
}
