//! Images under their unguessable addresses.

use std::io::SeekFrom;
use std::ops::RangeInclusive;
use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path as Segments, State};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, IF_RANGE, RANGE, REFERRER_POLICY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use grabd_domain::grabs::ImageKey;
use grabd_edge::{only, open_to_browsers, refuse};
use grabd_engine::{Core, Image};
use grabd_proto::v1::ErrorCode;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

/// `/i/{2}/{2}/{key}`.
pub(super) fn router(core: Core) -> Router {
    Router::new()
        .route("/i/{first}/{second}/{file}", only("GET, HEAD, OPTIONS", get(image)))
        .layer(middleware::from_fn(open_to_browsers))
        .with_state(core)
}

async fn image(
    State(core): State<Core>,
    segments: Result<Segments<(String, String, String)>, PathRejection>,
    headers: HeaderMap,
) -> Response {
    // A path that is no text is no image's.
    let Ok(Segments((first, second, file))) = segments else { return missing() };
    let Some(key) = ImageKey::parse(&file).filter(|key| key.path() == format!("i/{first}/{second}/{file}")) else {
        return missing();
    };
    // A key is never used for another image, so it is a strong validator by itself.
    let tag = format!("\"{}\"", key.as_str());
    let image = match core.image(&key).await {
        Ok(Some(image)) => image,
        Ok(None) => return missing(),
        Err(error) => return failed(&error),
    };
    let mut response = match matches_tag(&headers, &tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => match body(image, asked_range(&headers, &tag)).await {
            Ok(response) => response,
            // Deleted between the look and the read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return missing(),
            Err(error) => return failed(&error),
        },
    };
    if response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
        return response;
    }
    if response.status() != StatusCode::NOT_MODIFIED {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(key.format().media_type()));
    }
    let fixed = [
        (CACHE_CONTROL, "public, max-age=86400, s-maxage=31536000, immutable"),
        (CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
        (REFERRER_POLICY, "no-referrer"),
        (ACCEPT_RANGES, "bytes"),
        (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

async fn body(image: Image, range: Option<&str>) -> std::io::Result<Response> {
    match image {
        Image::Drawn(bytes) => {
            let size = u64::try_from(bytes.len()).unwrap_or(0);
            Ok(match part(range, size) {
                Part::Whole => with_length(StatusCode::OK, size, Body::from(bytes)),
                Part::Some(range) => {
                    let bounds =
                        usize::try_from(*range.start()).unwrap_or(0)..=usize::try_from(*range.end()).unwrap_or(0);
                    partial(&range, size, Body::from(bytes.slice(bounds)))
                }
                Part::None => unsatisfiable(size),
            })
        }
        Image::File(path) => file(&path, range).await,
    }
}

async fn file(path: &Path, range: Option<&str>) -> std::io::Result<Response> {
    let mut file = tokio::fs::File::open(path).await?;
    let size = file.metadata().await?.len();
    Ok(match part(range, size) {
        Part::Whole => with_length(StatusCode::OK, size, Body::from_stream(ReaderStream::with_capacity(file, CHUNK))),
        Part::Some(range) => {
            file.seek(SeekFrom::Start(*range.start())).await?;
            let rest = file.take(range.end() - range.start() + 1);
            partial(&range, size, Body::from_stream(ReaderStream::with_capacity(rest, CHUNK)))
        }
        Part::None => unsatisfiable(size),
    })
}

/// Bytes read from a file at a time.
const CHUNK: usize = 64 << 10;

enum Part {
    Whole,
    Some(RangeInclusive<u64>),
    None,
}

/// One range is served; several, or what cannot be read, get the whole (RFC 9110 section 14.2 allows both).
fn part(range: Option<&str>, size: u64) -> Part {
    let Some(Ok(ranges)) = range.map(http_range_header::parse_range_header) else { return Part::Whole };
    match ranges.validate(size) {
        Ok(ranges) => match <[_; 1]>::try_from(ranges) {
            Ok([range]) => Part::Some(range),
            Err(_) => Part::Whole,
        },
        Err(_) => Part::None,
    }
}

fn asked_range<'a>(headers: &'a HeaderMap, tag: &str) -> Option<&'a str> {
    let current = headers.get(IF_RANGE).is_none_or(|value| value.as_bytes() == tag.as_bytes());
    headers.get(RANGE).filter(|_| current).and_then(|value| value.to_str().ok())
}

fn matches_tag(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|candidate| candidate.trim().trim_start_matches("W/"))
        .any(|candidate| candidate == "*" || candidate == tag)
}

fn with_length(status: StatusCode, length: u64, body: Body) -> Response {
    (status, [(CONTENT_LENGTH, length.to_string())], body).into_response()
}

fn partial(range: &RangeInclusive<u64>, size: u64, body: Body) -> Response {
    let (first, last) = (range.start(), range.end());
    let mut response = with_length(StatusCode::PARTIAL_CONTENT, last - first + 1, body);
    if let Ok(value) = HeaderValue::try_from(format!("bytes {first}-{last}/{size}")) {
        response.headers_mut().insert(CONTENT_RANGE, value);
    }
    response
}

fn unsatisfiable(size: u64) -> Response {
    let mut response = refuse(ErrorCode::BadRequest, "The image has no such range.");
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    if let Ok(value) = HeaderValue::try_from(format!("bytes */{size}")) {
        response.headers_mut().insert(CONTENT_RANGE, value);
    }
    response
}

fn missing() -> Response {
    refuse(ErrorCode::NotFound, "There is no image at this address, or it was deleted.")
}

fn failed(error: &dyn std::error::Error) -> Response {
    tracing::error!(%error, "an image could not be served");
    refuse(ErrorCode::InternalError, "The image could not be read; try again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_a_part_and_several_are_the_whole() {
        let is = |range, size| match part(range, size) {
            Part::Whole => "whole".to_owned(),
            Part::Some(range) => format!("{}-{}", range.start(), range.end()),
            Part::None => "none".to_owned(),
        };
        assert_eq!(is(None, 10), "whole");
        assert_eq!(is(Some("bytes=0-3"), 10), "0-3");
        assert_eq!(is(Some("bytes=4-"), 10), "4-9");
        assert_eq!(is(Some("bytes=-2"), 10), "8-9");
        assert_eq!(is(Some("bytes=0-1,3-4"), 10), "whole");
        assert_eq!(is(Some("lines=0-1"), 10), "whole");
        assert_eq!(is(Some("bytes=10-"), 10), "none");
    }
}
