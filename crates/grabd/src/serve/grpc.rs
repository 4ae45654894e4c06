//! The gRPC listener, for internal clients.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::{self, Next};
use axum::response::Response;
use grabd_rpc::{PublicServices, too_many_calls};
use hyper_util::rt::TokioExecutor;
use hyper_util::server::conn::auto::Builder;
use tokio::time::timeout;
use tonic::Status;
use tower::ServiceExt;

use super::listener::ListenerService;
use super::protocol;

/// Concurrent calls on one connection. One client serves many customers, and every customer who follows a grab holds
/// one stream. A call beyond the limit would wait silently until another one ends.
const MAX_STREAMS: u32 = 10_000;
/// Flow control windows of one call, and of one connection.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Maximum time until the first response headers: a synchronous create, plus transfer. Also ends calls whose request
/// message never arrives.
const MAX_DEADLINE: Duration = Duration::from_secs(30);

/// The listener's service.
pub(super) fn service(public: &PublicServices) -> ListenerService {
    let mut builder = Builder::new(TokioExecutor::new()).http2_only();
    protocol::apply_limits(&mut builder)
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let services = public
        .gated()
        .map_request(|request: Request| request.map(tonic::body::Body::new))
        .map_response(|response: Response<tonic::body::Body>| response.map(Body::new));
    let router = Router::new().fallback_service(services).layer(middleware::from_fn(enforce_deadline));
    ListenerService { protocol: builder, router, rejection: Vec::new(), replace_response: |_| None, too_many_requests }
}

/// Enforces the caller's deadline, or the maximum if that is earlier.
async fn enforce_deadline(request: Request, next: Next) -> Response {
    let deadline = timeout_header(request.headers()).map_or(MAX_DEADLINE, |requested| requested.min(MAX_DEADLINE));
    match timeout(deadline, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Status::deadline_exceeded(format!("There was no answer within {deadline:?}.")).into_http(),
    }
}

fn too_many_requests() -> Response {
    too_many_calls().into_http()
}

/// Parses the `grpc-timeout` header: up to eight digits and a unit. `None` if it is missing or invalid.
fn timeout_header(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_valid = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let amount: u64 = digits.parse().ok().filter(|_| is_valid)?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 3600)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn call_deadline_is_the_earlier_of_the_header_and_thirty_seconds() {
        let router =
            Router::new().fallback(std::future::pending::<Response>).layer(middleware::from_fn(enforce_deadline));
        for (deadline, expected) in [("27S", 27), ("1H", 30), ("nonsense", 30)] {
            let start = Instant::now();
            let request = Request::builder().header("grpc-timeout", deadline).body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.headers()["grpc-status"], "4");
            assert_eq!(start.elapsed().as_secs(), expected, "{deadline}");
        }
    }

    #[test]
    fn timeout_header_is_parsed_in_every_unit_and_invalid_values_are_ignored() {
        for (text, expected) in [
            ("1H", Some(3_600_000)),
            ("2M", Some(120_000)),
            ("27S", Some(27_000)),
            ("0m", Some(0)),
            ("27000000u", Some(27_000)),
            ("1000000n", Some(1)),
            ("99999999H", Some(359_999_996_400_000)),
            ("123456789S", None),
            ("+1S", None),
            ("S", None),
            ("", None),
            ("5", None),
            ("5x", None),
            ("-5S", None),
        ] {
            let headers = HeaderMap::from_iter([("grpc-timeout".parse().unwrap(), HeaderValue::from_static(text))]);
            assert_eq!(timeout_header(&headers), expected.map(Duration::from_millis), "{text:?}");
        }
        let headers =
            HeaderMap::from_iter([("grpc-timeout".parse().unwrap(), HeaderValue::from_bytes(b"\xc3\xa9").unwrap())]);
        assert_eq!(timeout_header(&headers), None);
    }
}
