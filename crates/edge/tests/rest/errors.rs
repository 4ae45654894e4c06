//! Error responses.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use grabd_edge::router;
use grabd_proto::reason;
use grabd_proto::v1::{CreateGrabResponse, ErrorCause, ErrorCode, Grab, GrabStatus};
use http_body_util::BodyExt;
use tonic::{Code, Response, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower::ServiceExt;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{
    POLICY, STATE, TestApp, error_status, get, grab, options, peer, post, unreachable, with_limit_headers, without_body,
};

/// Section 7 of the contract.
const TABLE: [(ErrorCode, u16, &str); 14] = [
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
    // An addition to the contract.
    (ErrorCode::Forbidden, 403, "forbidden"),
];

const INTERNAL: &str = "Something went wrong on our side. Retry, and quote the X-Request-Id if it persists.";

#[tokio::test]
async fn every_error_code_has_its_status_and_envelope() {
    for app in TestApp::both().await {
        for (code, status, word) in TABLE {
            app.core.create.respond_with(move || Err(error_status(code, "Why it is so.", None)));
            let response = app.create(r#"{"url":"u"}"#).await;
            let message = response.assert_error(status, word);
            assert_eq!(message, if code == ErrorCode::InternalError { INTERNAL } else { "Why it is so." });
            if code != ErrorCode::Unauthorized {
                assert_eq!(
                    (response.header("ratelimit-policy"), response.header("ratelimit")),
                    (POLICY, STATE),
                    "{word}"
                );
            }
        }
    }
}

#[tokio::test]
async fn error_says_whose_fault_it_is() {
    let app = TestApp::new();
    let cause_of = async |result: fn() -> Result<Response<CreateGrabResponse>, Status>| {
        app.core.create.respond_with(result);
        app.create(r#"{"url":"u"}"#).await.header("error-cause").to_owned()
    };
    // The usual cause of the code, and one that the core names.
    assert_eq!(cause_of(|| Err(error_status(ErrorCode::RateLimitExceeded, "x", None))).await, "request");
    assert_eq!(cause_of(|| Err(status_with_cause(ErrorCode::RateLimitExceeded, "service"))).await, "service");
    assert_eq!(cause_of(|| Err(Status::unavailable("x"))).await, "service");
    assert_eq!(cause_of(|| failed_capture(ErrorCause::Unspecified)).await, "target");
    assert_eq!(cause_of(|| failed_capture(ErrorCause::Service)).await, "service");
    assert_eq!(cause_of(|| failed_capture(ErrorCause::Request)).await, "request");
}

fn status_with_cause(code: ErrorCode, cause: &str) -> Status {
    let metadata = HashMap::from([(reason::CAUSE.to_owned(), cause.to_owned())]);
    let details = ErrorDetails::with_error_info(reason::of(code), reason::DOMAIN, metadata);
    Status::with_error_details(Code::ResourceExhausted, "x", details)
}

fn failed_capture(cause: ErrorCause) -> Result<Response<CreateGrabResponse>, Status> {
    let failure_reason = ErrorCode::RenderFailed.into();
    let failed = Grab { failure_reason, error_cause: cause.into(), ..grab(GrabStatus::Failed, 4) };
    with_limit_headers(CreateGrabResponse { grab: Some(failed), replayed: false })
}

#[tokio::test]
async fn failed_captures_return_their_reason_and_location() {
    let cases = [
        (ErrorCode::RenderBlocked, 422, "render_blocked"),
        (ErrorCode::RenderFailed, 500, "render_failed"),
        (ErrorCode::SsrfDetected, 400, "ssrf_detected"),
        (ErrorCode::InternalError, 500, "internal_error"),
        (ErrorCode::Unspecified, 500, "internal_error"),
    ];
    for app in TestApp::both().await {
        for (reason, status, word) in cases {
            app.core.create.respond_with(move || {
                let failed = Grab {
                    failure_reason: reason.into(),
                    error_message: Some("The page said no.".to_owned()),
                    ..grab(GrabStatus::Failed, 4)
                };
                with_limit_headers(CreateGrabResponse { grab: Some(failed), replayed: false })
            });
            let response = app.create(r#"{"url":"u"}"#).await;
            assert_eq!(response.assert_error(status, word), "The page said no.");
            assert_eq!(response.header("location"), "/v1/grabs/01990000-0000-7000-8000-000000000001");
            assert_eq!((response.header("ratelimit-policy"), response.header("ratelimit")), (POLICY, STATE));
        }
    }
}

#[tokio::test]
async fn retry_after_is_the_longer_of_retry_delay_and_limit_reset() {
    let app = TestApp::new();
    let secs = |secs| Some(Duration::from_secs(secs));
    // The limit resets in 12 seconds.
    for (code, delay, expected) in [
        (ErrorCode::RateLimitExceeded, None, "12"),
        (ErrorCode::RateLimitExceeded, secs(3), "12"),
        (ErrorCode::RateLimitExceeded, secs(40), "40"),
        (ErrorCode::QueueLimitExceeded, Some(Duration::from_millis(20_001)), "21"),
        (ErrorCode::IdempotencyConflict, secs(2), "2"),
        (ErrorCode::IdempotencyConflict, None, ""),
        (ErrorCode::BadRequest, None, ""),
    ] {
        app.core.get.respond_with(move || Err(error_status(code, "x", delay)));
        let response = app.get("/v1/grabs/x").await;
        assert_eq!(response.header("retry-after"), expected, "{code:?} {delay:?}");
    }
}

#[tokio::test]
async fn challenge_distinguishes_invalid_from_missing_credentials() {
    let app = TestApp::new();
    app.core.get.respond_with(|| Err(error_status(ErrorCode::Unauthorized, "Missing or invalid Bearer token.", None)));
    for (lines, challenge, forwarded) in [
        (vec!["Bearer sk_live_x"], "Bearer error=\"invalid_token\", ", true),
        (vec![], "Bearer ", false),
        (vec!["Basic eDp5"], "Bearer ", false),
        (vec!["Bearer a", "Bearer b"], "Bearer ", false),
    ] {
        let mut request = http::Request::get("/v1/grabs/x");
        for line in &lines {
            request = request.header("authorization", *line);
        }
        let response = app.send(without_body(request)).await;
        response.assert_error(401, "unauthorized");
        let metadata = "resource_metadata=\"https://grabd.example/.well-known/oauth-protected-resource\"";
        let expected = format!("{challenge}{metadata}, scope=\"grabs\"");
        assert_eq!(response.header("www-authenticate"), expected, "{lines:?}");
        let metadata = app.core.get.take_request().0;
        assert_eq!(metadata.get("authorization").is_some(), forwarded, "{lines:?}");
    }
    app.core.get.respond_with(|| Err(error_status(ErrorCode::NotFound, "x", None)));
    assert_eq!(app.get("/v1/grabs/x").await.header("www-authenticate"), "");
}

#[tokio::test]
async fn challenge_of_a_forbidden_request_names_the_scope_that_it_needs() {
    let app = TestApp::new();
    let forbidden = |scope: Option<&'static str>| {
        let scope = scope.map(|scope| (reason::OAUTH_SCOPE.to_owned(), scope.to_owned()));
        let metadata = HashMap::from_iter(scope);
        let details = ErrorDetails::with_error_info(reason::of(ErrorCode::Forbidden), reason::DOMAIN, metadata);
        Status::with_error_details(Code::PermissionDenied, "x", details)
    };
    let metadata = "resource_metadata=\"https://grabd.example/.well-known/oauth-protected-resource\"";
    for (scope, parameter) in [(Some("manage"), "scope=\"manage\", "), (Some("grabs"), "scope=\"grabs\", "), (None, "")]
    {
        app.core.get.respond_with(move || Err(forbidden(scope)));
        let response = app.get("/v1/grabs/x").await;
        response.assert_error(403, "forbidden");
        let expected = format!("Bearer error=\"insufficient_scope\", {parameter}{metadata}");
        assert_eq!(response.header("www-authenticate"), expected);
    }
}

/// Captures log output.
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
async fn causes_of_internal_errors_are_logged_once_and_not_returned() {
    let app = TestApp::new();
    type Prepare = fn(&TestApp);
    let failures: [(Prepare, &str); 7] = [
        (|app| app.core.get.respond_with(|| Err(Status::unavailable("database is on fire"))), "database is on fire"),
        (|app| app.core.get.respond_with(|| Err(Status::cancelled("Timeout expired"))), "Timeout expired"),
        (|app| app.core.get.respond_with(|| Err(Status::deadline_exceeded("too slow"))), "too slow"),
        (|app| app.core.get.respond_with(|| Err(Status::new(Code::NotFound, "no reason given"))), "no reason given"),
        (
            |app| app.core.get.respond_with(|| Err(error_status(ErrorCode::InternalError, "row 7 is gone", None))),
            "row 7 is gone",
        ),
        (|app| app.core.get.respond_with(|| panic!("a bug")), "a handler panicked"),
        (|app| app.core.get.respond_with(|| with_limit_headers(Default::default())), "incomplete"),
    ];
    for (prepare, cause) in failures {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
        let guard = tracing::subscriber::set_default(subscriber);
        prepare(&app);
        let response = app.send(without_body(get("/v1/grabs/x").header("x-request-id", "r-1"))).await;
        drop(guard);
        assert_eq!(response.assert_error(500, "internal_error"), INTERNAL);
        assert_eq!(response.header("x-request-id"), "r-1");
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(cause) && log.contains("r-1") && log.contains("ERROR"), "{log}");
    }
}

#[tokio::test(start_paused = true)]
async fn core_that_does_not_respond_times_out() {
    let app = TestApp::new();
    let started = tokio::time::Instant::now();
    app.get("/v1/grabs/x").await.assert_error(500, "internal_error");
    assert_eq!(started.elapsed().as_secs(), 5);
    app.create(r#"{"url":"u"}"#).await.assert_error(500, "internal_error");
    assert_eq!(started.elapsed().as_secs(), 5 + 27);
    assert_eq!(app.core.get.take_request().0["grpc-timeout"], "5000000u");
    assert_eq!(app.core.create.take_request().0["grpc-timeout"], "27000000u");
}

#[tokio::test]
async fn unreachable_core_is_an_internal_error() {
    let router = router(unreachable(), options());
    let requests = [
        post("/v1/grabs").body(Body::from("{}")).unwrap(),
        without_body(get("/v1/grabs")),
        without_body(get("/v1/grabs/x")),
        without_body(get("/v1/grabs/x").header("prefer", "wait=1")),
        without_body(get("/v1/grabs/x/events")),
        without_body(get("/v1/usage")),
        without_body(get("/v1/pricing")),
    ];
    for mut request in requests {
        request.extensions_mut().insert(peer("192.0.2.1:1"));
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 500);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(body.starts_with(b"{\"error\":{\"code\":\"internal_error\","));
    }
}

#[tokio::test]
async fn outage_says_when_to_try_again() {
    let app = TestApp::new();
    let outage = || error_status(ErrorCode::InternalError, "The database is away.", Some(Duration::from_secs(3)));
    app.core.get.respond_with(move || Err(outage()));
    let response = app.get("/v1/grabs/x").await;
    assert_eq!(response.assert_error(500, "internal_error"), "The database is away.");
    assert_eq!(response.header("retry-after"), "3");
}
