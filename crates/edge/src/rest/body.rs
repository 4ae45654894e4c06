//! The body of a create: how much of it is read, and what it must claim to be.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

/// Largest body of REST in bytes. The longest acceptable url and selector are a tenth of that.
pub(crate) const LIMIT_BYTES: usize = 64 * 1024;
/// How long a body may take to arrive.
const DEADLINE: Duration = Duration::from_secs(10);

/// A body that will not be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What came instead of a JSON object.
    pub(crate) seen: String,
    /// More of it may be under way, so that the connection is of no further use.
    pub(crate) unread: bool,
    /// For those who tell more kinds of refusals apart than REST does.
    pub(crate) why: Why,
}

/// Why a body is not parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is larger than it may be.
    TooLarge,
    /// It is announced as something else than JSON.
    NotJson,
    /// There is none, or it did not arrive.
    Missing,
}

/// The whole body of at most `limit_bytes`, if it may be JSON.
///
/// # Errors
/// When it is too large, which is known before anything of it is kept; of another type; too slow; or broken off.
pub(crate) async fn read(headers: &HeaderMap, body: Body, limit_bytes: usize) -> Result<Bytes, Refused> {
    let refused = |seen: String, unread: bool, why: Why| Err(Refused { seen, unread, why });
    let announced = body.size_hint().lower();
    if announced > limit_bytes as u64 {
        return refused(format!("{announced} bytes where {limit_bytes} are the most"), true, Why::TooLarge);
    }
    if body.is_end_stream() {
        return refused("an empty body".to_owned(), false, Why::Missing);
    }
    if let Err(seen) = is_json(headers) {
        return refused(seen, false, Why::NotJson);
    }
    match timeout(DEADLINE, Limited::new(body, limit_bytes).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            refused(format!("more bytes than the most, {limit_bytes}"), true, Why::TooLarge)
        }
        Ok(Err(_)) => refused("a body that broke off".to_owned(), true, Why::Missing),
        Err(_) => refused(format!("a body that took more than {} s", DEADLINE.as_secs()), true, Why::Missing),
    }
}

/// Is it announced as JSON in UTF-8? If not, as what.
fn is_json(headers: &HeaderMap) -> Result<(), String> {
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

    fn typed(lines: &[&str]) -> HeaderMap {
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
            assert_eq!(is_json(&typed(&[good])), Ok(()), "{good}");
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
            assert_eq!(is_json(&typed(&[bad])), Err(bad.to_owned()), "{bad}");
        }
        assert_eq!(is_json(&typed(&[])), Err("no Content-Type".to_owned()));
        let twice = typed(&["application/json", "application/json"]);
        assert_eq!(is_json(&twice), Err("more than one Content-Type".to_owned()));
    }

    /// A body of unknown length that must not be polled beyond `chunks`.
    fn chunked(chunks: Vec<&'static [u8]>) -> Body {
        Body::from_stream(stream::iter(chunks.into_iter().map(|chunk| Ok::<_, std::io::Error>(Bytes::from(chunk)))))
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_are_read_up_to_the_limit() {
        static FULL: [u8; LIMIT_BYTES] = [b' '; LIMIT_BYTES];
        let json = typed(&["application/json"]);
        let refused = |seen: &str, unread, why| Err(Refused { seen: seen.to_owned(), unread, why });
        let read = async |headers: &HeaderMap, body| read(headers, body, LIMIT_BYTES).await;

        assert_eq!(read(&json, Body::from(&FULL[..])).await.map(|whole| whole.len()), Ok(LIMIT_BYTES));
        assert_eq!(read(&json, chunked(vec![b"{", b"}"])).await, Ok(Bytes::from("{}")));
        assert_eq!(
            read(&json, Body::from(vec![b' '; 70_000])).await,
            refused("70000 bytes where 65536 are the most", true, Why::TooLarge)
        );
        let endless = Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&FULL))));
        assert_eq!(read(&json, endless).await, refused("more bytes than the most, 65536", true, Why::TooLarge));
        assert_eq!(read(&json, Body::empty()).await, refused("an empty body", false, Why::Missing));
        assert_eq!(read(&typed(&[]), Body::empty()).await, refused("an empty body", false, Why::Missing));
        assert_eq!(read(&typed(&["text/plain"]), Body::from("{}")).await, refused("text/plain", false, Why::NotJson));
        let broken = Body::from_stream(stream::iter([Err::<Bytes, _>(std::io::Error::other("reset"))]));
        assert_eq!(read(&json, broken).await, refused("a body that broke off", true, Why::Missing));
        let stuck = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(read(&json, stuck).await, refused("a body that took more than 10 s", true, Why::Missing));
    }
}
