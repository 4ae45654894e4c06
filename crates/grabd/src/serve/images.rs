//! Serves images and attachments at their unguessable URLs.

use std::ops::RangeInclusive;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path as Segments, RawQuery, State};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_RANGE, LOCATION, RANGE, REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use grabd_domain::capture::{AttachmentName, FileKind};
use grabd_domain::grabs::{FileKey, ImageKey};
use grabd_edge::{allow_methods, error_response};
use grabd_engine::{Attachment, Core, Image};
use grabd_http::{allow_any_origin, known_tags};
use grabd_images::{Content, Error, Found, ImageFile, ResponseHeaders};
use grabd_proto::v1::ErrorCode;
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use super::download;
use crate::config::Delivery;

/// How long the URL of a redirect is valid: time to follow it, also on a slow connection.
const REDIRECT_VALID: Duration = Duration::from_secs(300);

#[derive(Clone)]
struct ImagesState {
    core: Core,
    delivery: Delivery,
}

/// What the request for a file asks for.
struct FileRequest<'a> {
    headers: &'a HeaderMap,
    is_head: bool,
    delivery: Delivery,
}

/// `/i/{2}/{2}/{key}` for images, and `/f/{key}/{name}` for attachments.
pub(super) fn router(core: Core, delivery: Delivery) -> Router {
    Router::new()
        .route("/i/{first}/{second}/{file}", allow_methods("GET, HEAD, OPTIONS", get(image)))
        .route("/f/{key}/{name}", allow_methods("GET, HEAD, OPTIONS", get(attachment)))
        .layer(middleware::from_fn(allow_any_origin))
        .with_state(ImagesState { core, delivery })
}

async fn image(
    State(ImagesState { core, delivery }): State<ImagesState>,
    segments: Result<Segments<(String, String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
    method: Method,
    headers: HeaderMap,
) -> Response {
    // A path that is not UTF-8 matches no image.
    let Ok(Segments((first, second, file))) = segments else { return missing() };
    let Some(key) = ImageKey::parse(&file).filter(|key| key.path() == format!("i/{first}/{second}/{file}")) else {
        return missing();
    };
    let image = match core.image(&key).await {
        Ok(Some(image)) => image,
        Ok(None) => return missing(),
        Err(error) if error.is_busy() => return busy(),
        Err(error) => return failed(&error),
    };
    let request = FileRequest { headers: &headers, is_head: method == Method::HEAD, delivery };
    let disposition = download::disposition(query.as_deref().unwrap_or_default(), key.format());
    deliver(image, key.as_str(), key.format().media_type(), disposition, request).await
}

/// An attachment. The content comes from a page that is not trusted: HTML and MHTML are only ever downloaded, and would be
/// sandboxed without scripts and without an origin if they were shown.
async fn attachment(
    State(ImagesState { core, delivery }): State<ImagesState>,
    segments: Result<Segments<(String, String)>, PathRejection>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let Ok(Segments((key, name))) = segments else { return missing() };
    let Some(key) = FileKey::parse(&key) else { return missing() };
    let Attachment { name, format, content } = match core.file(&key).await {
        Ok(Some(file)) if file.name.file_name(file.format) == name => file,
        Ok(_) => return missing(),
        Err(error) if error.is_busy() => return busy(),
        Err(error) => return failed(&error),
    };
    let attachment = match name {
        AttachmentName::Also(FileKind::Html) => Some("attachment; filename=\"page.html\""),
        AttachmentName::Also(FileKind::Mhtml) => Some("attachment; filename=\"page.mhtml\""),
        // Programs open it, and browsers show it as one line.
        AttachmentName::Also(FileKind::Har) => Some("attachment; filename=\"page.har\""),
        // Browsers do not show sandboxed PDFs.
        AttachmentName::Also(FileKind::Pdf) => Some("attachment; filename=\"page.pdf\""),
        AttachmentName::Also(FileKind::Evidence) => Some("attachment; filename=\"evidence.zip\""),
        AttachmentName::Also(
            FileKind::Text
            | FileKind::Markdown
            | FileKind::Links
            | FileKind::Elements
            | FileKind::Accessibility
            | FileKind::Marks
            | FileKind::Report
            | FileKind::Difference
            | FileKind::Thumbnail,
        )
        | AttachmentName::Slice(_)
        | AttachmentName::Viewport(_)
        | AttachmentName::Step(_) => None,
    };
    let request = FileRequest { headers: &headers, is_head: method == Method::HEAD, delivery };
    let disposition = attachment.map(HeaderValue::from_static);
    deliver(content, key.as_str(), name.media_type(format), disposition, request).await
}

/// The response with a file. A key always identifies the same file, so it is a strong validator.
async fn deliver(
    file: Image,
    key: &str,
    media_type: &'static str,
    disposition: Option<HeaderValue>,
    request: FileRequest<'_>,
) -> Response {
    let FileRequest { headers, is_head, delivery } = request;
    let tag = format!("\"{key}\"");
    let is_known = matches_tag(headers, &tag);
    // The URL of a redirect is signed for GET.
    if let (Image::Stored(file), Delivery::Redirect, false, false) = (&file, delivery, is_head, is_known) {
        match redirect(file, media_type, disposition.as_ref()).await {
            Ok(Some(response)) => return response,
            // It is not in a bucket.
            Ok(None) => {}
            Err(error) => return failed(&error),
        }
    }
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => match body(file, requested_range(headers, &tag), is_head).await {
            Ok(Some(response)) => response,
            // Deleted after the lookup.
            Ok(None) => return missing(),
            Err(error) => return failed(&error),
        },
    };
    if response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
        return response;
    }
    if response.status() != StatusCode::NOT_MODIFIED {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    }
    let fixed = [
        (CACHE_CONTROL, "public, max-age=86400, s-maxage=31536000, immutable"),
        (CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
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
    if let Some(disposition) = disposition {
        response.headers_mut().insert(CONTENT_DISPOSITION, disposition);
    }
    response
}

/// A redirect to the object store, if the file is in a bucket. It must not be stored, since its URL is soon invalid.
async fn redirect(
    file: &ImageFile,
    media_type: &str,
    disposition: Option<&HeaderValue>,
) -> Result<Option<Response>, Error> {
    let content_disposition = disposition.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let headers = ResponseHeaders { content_type: media_type.to_owned(), content_disposition };
    let url = file.presigned(REDIRECT_VALID, &headers).await?;
    let headers = |url: String| {
        let fixed = [(CACHE_CONTROL, "no-store"), (REFERRER_POLICY, "no-referrer")];
        (StatusCode::FOUND, fixed, [(LOCATION, url)]).into_response()
    };
    Ok(url.map(headers))
}

/// The response with a file, or a range of it. `None` if it does not exist.
async fn body(image: Image, range: Option<&str>, is_head: bool) -> Result<Option<Response>, Error> {
    match image {
        Image::Placeholder(bytes) => {
            let size = u64::try_from(bytes.len()).unwrap_or(0);
            Ok(Some(match select_range(range, size) {
                Selection::Whole => with_length(StatusCode::OK, size, Body::from(bytes)),
                Selection::Range(range) => {
                    let bounds =
                        usize::try_from(*range.start()).unwrap_or(0)..=usize::try_from(*range.end()).unwrap_or(0);
                    partial(&range, size, Body::from(bytes.slice(bounds)))
                }
                Selection::Unsatisfiable => unsatisfiable(size),
            }))
        }
        Image::Stored(file) => stored(&file, range, is_head).await,
    }
}

async fn stored(file: &ImageFile, range: Option<&str>, is_head: bool) -> Result<Option<Response>, Error> {
    if range.is_none() && !is_head {
        // One request to an object store, which also tells the size.
        let found = file.read(None).await?;
        return Ok(found.map(|Found { size, content }| with_length(StatusCode::OK, size, stream(content, size))));
    }
    let Some(size) = file.size().await? else { return Ok(None) };
    let selected = match select_range(range, size) {
        Selection::Unsatisfiable => return Ok(Some(unsatisfiable(size))),
        Selection::Whole => None,
        Selection::Range(range) => Some(range),
    };
    let length = selected.as_ref().map_or(size, |range| range.end() - range.start() + 1);
    let body = match is_head {
        true => Body::empty(),
        false => match file.read(selected.clone()).await? {
            Some(Found { size: _, content }) => stream(content, length),
            None => return Ok(None),
        },
    };
    Ok(Some(match selected {
        Some(range) => partial(&range, size, body),
        None => with_length(StatusCode::OK, size, body),
    }))
}

/// The next `length` bytes of a file.
fn stream(content: Content, length: u64) -> Body {
    match content {
        Content::File(file) => {
            let part = tokio::fs::File::from_std(file).take(length);
            Body::from_stream(ReaderStream::with_capacity(part, CHUNK))
        }
        Content::Stream(stream) => Body::from_stream(stream),
    }
}

/// Buffer size for reading files.
const CHUNK: usize = 64 << 10;

enum Selection {
    Whole,
    Range(RangeInclusive<u64>),
    Unsatisfiable,
}

/// A single range is served. Several ranges or an invalid header get the whole image, as RFC 9110 section 14.2 allows.
fn select_range(range: Option<&str>, size: u64) -> Selection {
    let Some(Ok(ranges)) = range.map(http_range_header::parse_range_header) else { return Selection::Whole };
    match ranges.validate(size) {
        Ok(ranges) => match <[_; 1]>::try_from(ranges) {
            Ok([range]) => Selection::Range(range),
            Err(_) => Selection::Whole,
        },
        Err(_) => Selection::Unsatisfiable,
    }
}

fn requested_range<'a>(headers: &'a HeaderMap, tag: &str) -> Option<&'a str> {
    let current = headers.get(IF_RANGE).is_none_or(|value| value.as_bytes() == tag.as_bytes());
    headers.get(RANGE).filter(|_| current).and_then(|value| value.to_str().ok())
}

fn matches_tag(headers: &HeaderMap, tag: &str) -> bool {
    known_tags(headers).any(|known| known == "*" || known == tag)
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
    let mut response = error_response(ErrorCode::BadRequest, "The image has no such range.");
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    if let Ok(value) = HeaderValue::try_from(format!("bytes */{size}")) {
        response.headers_mut().insert(CONTENT_RANGE, value);
    }
    response
}

fn missing() -> Response {
    error_response(ErrorCode::NotFound, "There is no image at this address, or it was deleted.")
}

/// A placeholder waited for memory in vain.
fn busy() -> Response {
    let message = "Too many images are being processed at the moment. Retry in 5 s.";
    let mut response = error_response(ErrorCode::RateLimitExceeded, message);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

fn failed(error: &dyn std::error::Error) -> Response {
    tracing::error!(%error, "an image could not be served");
    error_response(ErrorCode::InternalError, "The image could not be read; try again.")
}

#[cfg(test)]
mod tests {
    use grabd_images::Images;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn file_is_sent_in_chunks() {
        let image: Vec<u8> = (0..5 * CHUNK + 1).map(|at| (at % 251) as u8).collect();
        let dir = tempfile::tempdir().unwrap();
        let (images, key) = (Images::local(dir.path().to_owned()).unwrap(), ImageKey::new(1, "png"));
        images.put(&key, image.clone().into(), Duration::from_secs(10)).await.unwrap();
        for (range, expected) in [(None, &image[..]), (Some("bytes=7-"), &image[7..])] {
            let response = super::stored(&images.image(&key), range, false).await.unwrap().unwrap();
            let mut body = response.into_body();
            let mut sent = Vec::new();
            while let Some(frame) = body.frame().await {
                let part = frame.unwrap().into_data().unwrap();
                assert!(part.len() <= CHUNK, "{}", part.len());
                sent.extend_from_slice(&part);
            }
            assert!(sent == expected, "{range:?}");
        }
    }

    #[test]
    fn single_range_is_served_and_several_get_the_whole_image() {
        let is = |range, size| match select_range(range, size) {
            Selection::Whole => "whole".to_owned(),
            Selection::Range(range) => format!("{}-{}", range.start(), range.end()),
            Selection::Unsatisfiable => "none".to_owned(),
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
