//! The listener of REST, images and health: HTTP/1 and HTTP/2 without TLS, for anybody.

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::RETRY_AFTER;
use axum::response::Response;
use grabd_edge::refuse;
use grabd_proto::v1::ErrorCode;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;

use super::listener::{Face, Patience};
use super::protocol;

/// Requests on one HTTP/2 connection at a time.
const MAX_STREAMS: u32 = 100;
/// Bytes that may be under way on one request of HTTP/2, and on all of a connection. A body has no more than the first.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;

const TOO_MANY_CONNECTIONS: &str = "Too many connections from this address. Close some, or use the ones there are.";
const TOO_MANY_REQUESTS: &str = "Too many requests of this address are under way. Wait for their answers.";

/// The face over these routes.
pub(super) fn face(router: Router, patience: Patience) -> Face {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // The listener knows more: that a connection is idle is something else than a slow header.
        .header_read_timeout(patience.idle.max(patience.header))
        .max_buf_size(protocol::MAX_HEADER_BYTES as usize);
    protocol::bound(&mut builder)
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    Face { protocol: builder, router, turned_away: turned_away(), instead: malformed, too_many }
}

/// The answer to a connection of which nothing has been read.
fn turned_away() -> Vec<u8> {
    written("429 Too Many Requests", "retry-after: 1\r\n", "rate_limit_exceeded", TOO_MANY_CONNECTIONS)
}

/// What is no HTTP is refused by the protocol before any route, with a bare status; here it gets its envelope. Every
/// answer of a route has a request id, so that nothing else is mistaken for such a refusal.
fn malformed(bytes: &[u8]) -> Option<Vec<u8>> {
    let head = str::from_utf8(bytes).ok()?.strip_suffix("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ").or_else(|| head.strip_prefix("HTTP/1.0 "))?;
    let is_bare = head.contains("\r\ncontent-length: 0") && !head.contains("\r\nx-request-id: ");
    let message = match status.get(..3)? {
        "400" => "The request is not HTTP as grabd reads it.",
        "414" => "The address of the request is too long.",
        "431" => "The header of the request has more than 16384 bytes or more than 100 fields.",
        _ => return None,
    };
    is_bare.then(|| written("400 Bad Request", "", "bad_request", message))
}

/// A whole last answer.
fn written(status: &str, header: &str, code: &str, message: &str) -> Vec<u8> {
    let body = format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#);
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncache-control: no-store\r\n{header}\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

fn too_many() -> Response {
    let mut response = refuse(ErrorCode::RateLimitExceeded, TOO_MANY_REQUESTS);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
