//! The public listener of REST, images and health: HTTP/1 and HTTP/2 without TLS.

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::RETRY_AFTER;
use axum::response::Response;
use grabd_edge::error_response;
use grabd_proto::v1::ErrorCode;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;

use super::listener::{ListenerService, Timeouts};
use super::protocol;

/// Concurrent requests on one HTTP/2 connection.
const MAX_STREAMS: u32 = 100;
/// HTTP/2 flow control windows of one request, and of one connection. The body of a capture is at most as long as the first.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;

const TOO_MANY_CONNECTIONS: &str = "Too many connections from this address. Close some, or use the ones there are.";
const TOO_MANY_REQUESTS: &str = "Too many requests of this address are under way. Wait for their answers.";

/// The listener's service with these routes.
pub(super) fn service(router: Router, timeouts: Timeouts) -> ListenerService {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // The listener has its own timeouts, which distinguish an idle connection from a slow header.
        .header_read_timeout(timeouts.idle.max(timeouts.header))
        .max_buf_size(protocol::MAX_HEADER_BYTES as usize);
    protocol::apply_limits(&mut builder)
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    ListenerService {
        protocol: builder,
        router,
        rejection: rejection(),
        replace_response: malformed,
        too_many_requests,
    }
}

/// The response to a connection that is rejected before anything is read.
fn rejection() -> Vec<u8> {
    raw_response("429 Too Many Requests", "retry-after: 1\r\n", "rate_limit_exceeded", TOO_MANY_CONNECTIONS)
}

/// Invalid HTTP is rejected by hyper with an empty response, which is replaced by a JSON error. Responses of routes
/// have a request id, so none of them is replaced.
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
    is_bare.then(|| raw_response("400 Bad Request", "", "bad_request", message))
}

/// A complete HTTP/1.1 response that closes the connection.
fn raw_response(status: &str, header: &str, code: &str, message: &str) -> Vec<u8> {
    // Such responses are only sent to clients that did something wrong.
    let body = format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#);
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncache-control: no-store\r\nerror-cause: request\r\n\
         {header}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

fn too_many_requests() -> Response {
    let mut response = error_response(ErrorCode::RateLimitExceeded, TOO_MANY_REQUESTS);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
