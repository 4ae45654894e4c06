//! The listener of gRPC, for internal clients.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::{self, Next};
use axum::response::Response;
use grabd_engine::rpc::{Public, too_many_calls};
use hyper_util::rt::TokioExecutor;
use hyper_util::server::conn::auto::Builder;
use tokio::time::timeout;
use tonic::Status;
use tower::ServiceExt;

use super::listener::Face;
use super::protocol;

/// Calls on one connection at a time. An internal client is a whole face: every customer who follows a grab through it
/// holds one stream, and one call beyond the limit would wait silently until a customer leaves.
const MAX_STREAMS: u32 = 10_000;
/// Bytes that may be under way on one call, and on all of a connection.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// The longest that the beginning of an answer may take: a synchronous create, and something for the way. A call whose
/// message never comes ends with it too.
const LONGEST: Duration = Duration::from_secs(30);

/// The face over the services.
pub(super) fn face(public: &Public) -> Face {
    let mut builder = Builder::new(TokioExecutor::new()).http2_only();
    protocol::bound(&mut builder)
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let services = public
        .gated()
        .map_request(|request: Request| request.map(tonic::body::Body::new))
        .map_response(|response: Response<tonic::body::Body>| response.map(Body::new));
    let router = Router::new().fallback_service(services).layer(middleware::from_fn(in_time));
    Face { protocol: builder, router, turned_away: Vec::new(), instead: |_| None, too_many }
}

/// Holds a call to its deadline, or to ours when that is earlier.
async fn in_time(request: Request, next: Next) -> Response {
    let deadline = told(request.headers()).map_or(LONGEST, |told| told.min(LONGEST));
    match timeout(deadline, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Status::deadline_exceeded(format!("There was no answer within {deadline:?}.")).into_http(),
    }
}

fn too_many() -> Response {
    too_many_calls().into_http()
}

/// The deadline that a caller tells: up to eight digits and a unit. What is no deadline tells none.
fn told(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let plain = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let amount: u64 = digits.parse().ok().filter(|_| plain)?;
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
    async fn a_call_has_thirty_seconds_or_less_when_it_says_so() {
        let router = Router::new().fallback(std::future::pending::<Response>).layer(middleware::from_fn(in_time));
        for (deadline, expected) in [("27S", 27), ("1H", 30), ("nonsense", 30)] {
            let start = Instant::now();
            let request = Request::builder().header("grpc-timeout", deadline).body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.headers()["grpc-status"], "4");
            assert_eq!(start.elapsed().as_secs(), expected, "{deadline}");
        }
    }

    #[test]
    fn deadlines_are_read_in_every_unit_and_nonsense_is_none() {
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
            assert_eq!(told(&headers), expected.map(Duration::from_millis), "{text:?}");
        }
        let headers =
            HeaderMap::from_iter([("grpc-timeout".parse().unwrap(), HeaderValue::from_bytes(b"\xc3\xa9").unwrap())]);
        assert_eq!(told(&headers), None);
    }
}
