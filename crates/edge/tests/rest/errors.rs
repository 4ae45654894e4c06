//! Every error of the contract, from wherever it comes.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use grabd_edge::router;
use grabd_proto::v1::{CreateGrabResponse, ErrorCode, Grab, GrabStatus};
use http_body_util::BodyExt;
use tonic::{Code, Status};
use tower::ServiceExt;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{House, POLICY, STATE, bare, fault, get, grab, limited, options, peer, post, unreachable};

/// Section 7 of the contract.
const TABLE: [(ErrorCode, u16, &str); 13] = [
    (ErrorCode::Unauthorized, 401, "unauthorized"),
    (ErrorCode::BadRequest, 400, "bad_request"),
    (ErrorCode::InvalidViewport, 400, "invalid_viewport"),
    (ErrorCode::SsrfDetected, 400, "ssrf_detected"),
    (ErrorCode::IdempotencyMismatch, 400, "idempotency_mismatch"),
    (ErrorCode::CreditsExhausted, 402, "credits_exhausted"),
    (ErrorCode::NotFound, 404, "not_found"),
    (ErrorCode::IdempotencyConflict, 409, "idempotency_conflict"),
    (ErrorCode::RenderBlocked, 422, "render_blocked"),
    (ErrorCode::RateLimitExceeded, 429, "rate_limit_exceeded"),
    (ErrorCode::QueueLimitExceeded, 429, "queue_limit_exceeded"),
    (ErrorCode::RenderFailed, 500, "render_failed"),
    (ErrorCode::InternalError, 500, "internal_error"),
];

const INTERNAL: &str = "Something went wrong on our side. Retry, and quote the X-Request-Id if it persists.";

#[tokio::test]
async fn every_code_has_its_status_and_envelope() {
    for house in House::both().await {
        for (code, status, word) in TABLE {
            house.core.create.answers(move || Err(fault(code, "Why it is so.", None)));
            let reply = house.create(r#"{"url":"u"}"#).await;
            let message = reply.refused(status, word);
            assert_eq!(message, if code == ErrorCode::InternalError { INTERNAL } else { "Why it is so." });
            if code != ErrorCode::Unauthorized {
                assert_eq!((reply.header("ratelimit-policy"), reply.header("ratelimit")), (POLICY, STATE), "{word}");
            }
        }
    }
}

#[tokio::test]
async fn failed_captures_answer_with_their_reason_and_where_they_are() {
    let cases = [
        (ErrorCode::RenderBlocked, 422, "render_blocked"),
        (ErrorCode::RenderFailed, 500, "render_failed"),
        (ErrorCode::SsrfDetected, 400, "ssrf_detected"),
        (ErrorCode::InternalError, 500, "internal_error"),
        (ErrorCode::Unspecified, 500, "internal_error"),
    ];
    for house in House::both().await {
        for (reason, status, word) in cases {
            house.core.create.answers(move || {
                let failed = Grab {
                    failure_reason: reason.into(),
                    error_message: Some("The page said no.".to_owned()),
                    ..grab(GrabStatus::Failed, 4)
                };
                limited(CreateGrabResponse { grab: Some(failed), replayed: false })
            });
            let reply = house.create(r#"{"url":"u"}"#).await;
            assert_eq!(reply.refused(status, word), "The page said no.");
            assert_eq!(reply.header("location"), "/v1/grabs/01990000-0000-7000-8000-000000000001");
            assert_eq!((reply.header("ratelimit-policy"), reply.header("ratelimit")), (POLICY, STATE));
        }
    }
}

#[tokio::test]
async fn callers_are_told_when_to_come_back() {
    let house = House::new();
    let secs = |secs| Some(Duration::from_secs(secs));
    // The limit's own state says 12 seconds.
    for (code, told, expected) in [
        (ErrorCode::RateLimitExceeded, None, "12"),
        (ErrorCode::RateLimitExceeded, secs(3), "12"),
        (ErrorCode::RateLimitExceeded, secs(40), "40"),
        (ErrorCode::QueueLimitExceeded, Some(Duration::from_millis(20_001)), "21"),
        (ErrorCode::IdempotencyConflict, secs(2), "2"),
        (ErrorCode::IdempotencyConflict, None, ""),
        (ErrorCode::BadRequest, None, ""),
    ] {
        house.core.get.answers(move || Err(fault(code, "x", told)));
        let reply = house.get("/v1/grabs/x").await;
        assert_eq!(reply.header("retry-after"), expected, "{code:?} {told:?}");
    }
}

#[tokio::test]
async fn a_challenge_tells_bad_credentials_from_none() {
    let house = House::new();
    house.core.get.answers(|| Err(fault(ErrorCode::Unauthorized, "Missing or invalid Bearer token.", None)));
    for (lines, challenge, forwarded) in [
        (vec!["Bearer sk_live_x"], "Bearer error=\"invalid_token\"", true),
        (vec![], "Bearer", false),
        (vec!["Basic eDp5"], "Bearer", false),
        (vec!["Bearer a", "Bearer b"], "Bearer", false),
    ] {
        let mut request = http::Request::get("/v1/grabs/x");
        for line in &lines {
            request = request.header("authorization", *line);
        }
        let reply = house.send(bare(request)).await;
        reply.refused(401, "unauthorized");
        assert_eq!(reply.header("www-authenticate"), challenge, "{lines:?}");
        let metadata = house.core.get.asked_once().0;
        assert_eq!(metadata.get("authorization").is_some(), forwarded, "{lines:?}");
    }
    house.core.get.answers(|| Err(fault(ErrorCode::NotFound, "x", None)));
    assert_eq!(house.get("/v1/grabs/x").await.header("www-authenticate"), "");
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn causes_of_our_own_failures_are_logged_once_and_never_told() {
    let house = House::new();
    type Prepare = fn(&House);
    let failures: [(Prepare, &str); 7] = [
        (|house| house.core.get.answers(|| Err(Status::unavailable("database is on fire"))), "database is on fire"),
        (|house| house.core.get.answers(|| Err(Status::cancelled("Timeout expired"))), "Timeout expired"),
        (|house| house.core.get.answers(|| Err(Status::deadline_exceeded("too slow"))), "too slow"),
        (|house| house.core.get.answers(|| Err(Status::new(Code::NotFound, "no reason given"))), "no reason given"),
        (
            |house| house.core.get.answers(|| Err(fault(ErrorCode::InternalError, "row 7 is gone", None))),
            "row 7 is gone",
        ),
        (|house| house.core.get.answers(|| panic!("a bug")), "a handler panicked"),
        (|house| house.core.get.answers(|| limited(Default::default())), "incomplete"),
    ];
    for (prepare, cause) in failures {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
        let guard = tracing::subscriber::set_default(subscriber);
        prepare(&house);
        let reply = house.send(bare(get("/v1/grabs/x").header("x-request-id", "r-1"))).await;
        drop(guard);
        assert_eq!(reply.refused(500, "internal_error"), INTERNAL);
        assert_eq!(reply.header("x-request-id"), "r-1");
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(cause) && log.contains("r-1") && log.contains("ERROR"), "{log}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_core_that_does_not_answer_is_given_up() {
    let house = House::new();
    let started = tokio::time::Instant::now();
    house.get("/v1/grabs/x").await.refused(500, "internal_error");
    assert_eq!(started.elapsed().as_secs(), 5);
    house.create(r#"{"url":"u"}"#).await.refused(500, "internal_error");
    assert_eq!(started.elapsed().as_secs(), 5 + 27);
    assert_eq!(house.core.get.asked_once().0["grpc-timeout"], "5000000u");
    assert_eq!(house.core.create.asked_once().0["grpc-timeout"], "27000000u");
}

#[tokio::test]
async fn a_core_that_cannot_be_reached_is_our_failure() {
    let router = router(unreachable(), options());
    let requests = [
        post("/v1/grabs").body(Body::from("{}")).unwrap(),
        bare(get("/v1/grabs")),
        bare(get("/v1/grabs/x")),
        bare(get("/v1/grabs/x").header("prefer", "wait=1")),
        bare(get("/v1/grabs/x/events")),
        bare(get("/v1/usage")),
        bare(get("/v1/pricing")),
    ];
    for mut request in requests {
        request.extensions_mut().insert(peer("192.0.2.1:1"));
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 500);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(body.starts_with(b"{\"error\":{\"code\":\"internal_error\","));
    }
}
