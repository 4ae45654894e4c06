//! Reading of request bodies: size limit, timeout and content type. The listener discards what is left unread, or closes
//! the connection.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

/// Largest REST body in bytes, and size up to which bodies are not large.
pub(crate) const MAX_BODY_BYTES: usize = 64 * 1024;
/// Largest body with an HTML document, in bytes. The document has at most 1 MiB, of which JSON may make three times as
/// much by escaping all that is not ASCII.
pub(crate) const MAX_LARGE_BODY_BYTES: usize = 4 << 20;
/// Time limit for receiving a body.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Why a body cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BodyError {
    /// Description of what was received instead of a JSON object.
    pub(crate) seen: String,
    /// Not used by REST; MCP has a status for each.
    pub(crate) kind: BodyErrorKind,
}

/// Kind of [`BodyError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyErrorKind {
    /// Larger than the limit.
    TooLarge,
    /// The content type is not JSON in UTF-8.
    NotJson,
    /// Empty, or not received completely.
    Missing,
}

pub(super) fn too_slow() -> BodyError {
    let seen = format!("a body that took more than {} s", TIMEOUT.as_secs());
    BodyError { seen, kind: BodyErrorKind::Missing }
}

/// Reads a whole body of at most `limit_bytes` whose content type is JSON.
///
/// # Errors
/// When the body is too large (detected before buffering if the length is announced), empty, of another type, too slow
/// or cut off.
pub(crate) async fn read(headers: &HeaderMap, body: Body, limit_bytes: usize) -> Result<Bytes, BodyError> {
    let body_error = |seen: String, kind: BodyErrorKind| Err(BodyError { seen, kind });
    let announced = body.size_hint().lower();
    if announced > limit_bytes as u64 {
        return body_error(format!("{announced} bytes where {limit_bytes} are the most"), BodyErrorKind::TooLarge);
    }
    if body.is_end_stream() {
        return body_error("an empty body".to_owned(), BodyErrorKind::Missing);
    }
    if let Err(seen) = is_json(headers) {
        return body_error(seen, BodyErrorKind::NotJson);
    }
    match timeout(TIMEOUT, Limited::new(body, limit_bytes).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            body_error(format!("more bytes than the most, {limit_bytes}"), BodyErrorKind::TooLarge)
        }
        Ok(Err(_)) => body_error("a body that broke off".to_owned(), BodyErrorKind::Missing),
        Err(_) => Err(too_slow()),
    }
}

/// Checks that the content type is JSON in UTF-8. The error describes what it is instead.
pub(super) fn is_json(headers: &HeaderMap) -> Result<(), String> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let line = lines.next().ok_or_else(|| "no Content-Type".to_owned())?;
    let seen = || String::from_utf8_lossy(line.as_bytes()).into_owned();
    if lines.next().is_some() {
        return Err("more than one Content-Type".to_owned());
    }
    let mut parts = line.to_str().map_err(|_| seen())?.split(';').map(str::trim);
    let media_type = parts.next().is_some_and(|media_type| media_type.eq_ignore_ascii_case("application/json"));
    let utf_8 = parts.all(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        name.eq_ignore_ascii_case("charset") && value.eq_ignore_ascii_case("utf-8")
    });
    if media_type && utf_8 { Ok(()) } else { Err(seen()) }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http::HeaderValue;

    use super::*;

    fn content_type(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(CONTENT_TYPE, HeaderValue::from_str(line).unwrap());
        }
        headers
    }

    #[test]
    fn only_json_in_utf_8_is_accepted() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=UTF-8",
            "application/json; Charset=\"utf-8\"",
        ] {
            assert_eq!(is_json(&content_type(&[good])), Ok(()), "{good}");
        }
        for bad in [
            "text/plain",
            "text/json",
            "application/json; charset=latin1",
            "application/json; version=1",
            "application/json;",
            "application/x-www-form-urlencoded",
            "application/json, text/plain",
            "",
        ] {
            assert_eq!(is_json(&content_type(&[bad])), Err(bad.to_owned()), "{bad}");
        }
        assert_eq!(is_json(&content_type(&[])), Err("no Content-Type".to_owned()));
        let two = content_type(&["application/json", "application/json"]);
        assert_eq!(is_json(&two), Err("more than one Content-Type".to_owned()));
    }

    /// A body of unknown length.
    fn chunked(chunks: Vec<&'static [u8]>) -> Body {
        Body::from_stream(stream::iter(chunks.into_iter().map(|chunk| Ok::<_, std::io::Error>(Bytes::from(chunk)))))
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_are_read_up_to_the_limit() {
        static FULL: [u8; MAX_BODY_BYTES] = [b' '; MAX_BODY_BYTES];
        let json = content_type(&["application/json"]);
        let body_error = |seen: &str, kind| Err(BodyError { seen: seen.to_owned(), kind });
        let read = async |headers: &HeaderMap, body| read(headers, body, MAX_BODY_BYTES).await;

        assert_eq!(read(&json, Body::from(&FULL[..])).await.map(|whole| whole.len()), Ok(MAX_BODY_BYTES));
        assert_eq!(read(&json, chunked(vec![b"{", b"}"])).await, Ok(Bytes::from("{}")));
        assert_eq!(
            read(&json, Body::from(vec![b' '; 70_000])).await,
            body_error("70000 bytes where 65536 are the most", BodyErrorKind::TooLarge)
        );
        let endless = Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&FULL))));
        assert_eq!(read(&json, endless).await, body_error("more bytes than the most, 65536", BodyErrorKind::TooLarge));
        assert_eq!(read(&json, Body::empty()).await, body_error("an empty body", BodyErrorKind::Missing));
        assert_eq!(read(&content_type(&[]), Body::empty()).await, body_error("an empty body", BodyErrorKind::Missing));
        let text = content_type(&["text/plain"]);
        assert_eq!(read(&text, Body::from("{}")).await, body_error("text/plain", BodyErrorKind::NotJson));
        let broken = Body::from_stream(stream::iter([Err::<Bytes, _>(std::io::Error::other("reset"))]));
        assert_eq!(read(&json, broken).await, body_error("a body that broke off", BodyErrorKind::Missing));
        let stuck = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(read(&json, stuck).await, body_error("a body that took more than 10 s", BodyErrorKind::Missing));
    }
}
