//! `POST /v1/grabs/batch`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use grabd_proto::v1::{CreateGrabResponse, CreateMode, ErrorCode, GrabStatus};
use serde_json::{Value, json};
use tonic::{Response, Status};

use crate::support::{TestApp, TestResponse, error_status, grab, post, with_limit_headers};

async fn send(app: &TestApp, key: Option<&str>, body: &str) -> TestResponse {
    let request = key.into_iter().fold(post("/v1/grabs/batch"), |request, key| request.header("idempotency-key", key));
    app.send(request.body(Body::from(body.to_owned())).expect("a request")).await
}

fn queued() -> Result<Response<CreateGrabResponse>, Status> {
    with_limit_headers(CreateGrabResponse { grab: Some(grab(GrabStatus::Pending, 1)), replayed: false })
}

/// Accepts creates, except for the one of this number, from 0.
fn refuse_only(app: &TestApp, number: usize, code: ErrorCode) {
    let count = AtomicUsize::new(0);
    app.core.create.respond_with(move || match count.fetch_add(1, Ordering::Relaxed) == number {
        true => Err(error_status(code, "Refused.", Some(Duration::from_secs(7)))),
        false => queued(),
    });
}

#[tokio::test]
async fn each_capture_is_an_asynchronous_create_with_its_own_key_and_the_shared_options() {
    for app in TestApp::both().await {
        app.core.create.respond_with(queued);
        let body = r#"{"grabs":[{"url":"a","width":300},{"url":"b","format":"png"},{"url":3}],
            "options":{"format":"webp","width":400}}"#;
        let response = send(&app, Some("k"), body).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("cache-control"), "private, no-store");
        assert!(response.header("ratelimit").contains("\"async-queue\""));
        let results = response.json();
        let results = results["results"].as_array().expect("results");
        assert_eq!(results.len(), 3);
        assert!(results.iter().all(|result| result["grab"]["status"] == "pending" && result["error"].is_null()));
        let sent: Vec<_> = app.core.create.take_requests().into_iter().map(|(_, request)| request).collect();
        let keys: Vec<_> = sent.iter().map(|request| request.idempotency_key.as_deref()).collect();
        assert_eq!(keys, [Some("k#0"), Some("k#1"), Some("k#2")]);
        assert!(sent.iter().all(|request| request.mode() == CreateMode::Async));
        let options: Vec<_> = sent.iter().map(|request| request.options.clone().expect("options")).collect();
        assert_eq!((options[0].width, options[0].format.as_deref()), (Some(300), Some("webp")));
        assert_eq!((options[1].width, options[1].format.as_deref()), (Some(400), Some("png")));
        assert_eq!(sent[2].unparsed[0].field, "url");
    }
}

#[tokio::test]
async fn one_refused_capture_does_not_stop_the_others() {
    let app = TestApp::new();
    for code in [ErrorCode::BadRequest, ErrorCode::SsrfDetected, ErrorCode::InvalidViewport] {
        refuse_only(&app, 0, code);
        let response = send(&app, None, r#"{"grabs":[{},{},{}]}"#).await;
        let results = response.json();
        assert_eq!((response.status, &results["results"][0]["grab"]), (200.try_into().unwrap(), &Value::Null));
        assert_eq!(results["results"][0]["error"]["message"], "Refused.");
        assert_eq!(results["results"][2]["grab"]["status"], "pending");
        assert!(app.core.create.take_requests().iter().all(|(_, request)| request.idempotency_key.is_none()));
    }
}

#[tokio::test]
async fn captures_after_an_exceeded_limit_are_not_sent_and_get_its_error() {
    let app = TestApp::new();
    // That of a 429 is at least the time until the rate limit admits a request.
    for (code, retry_after) in [
        (ErrorCode::RateLimitExceeded, "12"),
        (ErrorCode::QueueLimitExceeded, "12"),
        (ErrorCode::CreditsExhausted, "7"),
    ] {
        refuse_only(&app, 1, code);
        let response = send(&app, None, r#"{"grabs":[{},{},{},{}]}"#).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("retry-after"), retry_after);
        let results = response.json();
        assert_eq!(results["results"].as_array().map(Vec::len), Some(4));
        assert_eq!(results["results"][0]["grab"]["status"], "pending");
        assert_eq!(results["results"][1]["error"], results["results"][3]["error"]);
        assert_eq!(results["results"][3]["error"]["message"], "Refused.");
        assert_eq!(app.core.create.take_requests().len(), 2);
    }
}

#[tokio::test]
async fn refusal_of_the_first_capture_that_meets_all_is_the_response() {
    let app = TestApp::new();
    for (code, status) in [
        (ErrorCode::Unauthorized, 401),
        (ErrorCode::Forbidden, 403),
        (ErrorCode::CreditsExhausted, 402),
        (ErrorCode::RateLimitExceeded, 429),
    ] {
        refuse_only(&app, 0, code);
        let response = send(&app, None, r#"{"grabs":[{},{}]}"#).await;
        assert_eq!(response.status, status);
        assert_eq!(response.json()["error"]["message"], "Refused.");
        assert_eq!(app.core.create.take_requests().len(), 1);
    }
}

#[tokio::test]
async fn invalid_batches_are_refused_by_name_after_the_credential_is_checked() {
    let app = TestApp::new();
    let many = json!({ "grabs": vec![json!({}); 51] }).to_string();
    let long = "k".repeat(251);
    for (key, body, message) in [
        (None, "[]", "The body must be a JSON object."),
        (None, "{", "The body must be a JSON object; got malformed JSON at line 1 column 1."),
        (None, "{}", "`grabs` must be a list of 1 to 50 objects; got nothing."),
        (None, r#"{"grabs":[]}"#, "`grabs` must be a list of 1 to 50 objects; got 0."),
        (None, r#"{"grabs":{"url":"u"}}"#, "`grabs` must be a list of 1 to 50 objects; got another type."),
        (None, many.as_str(), "`grabs` must be a list of 1 to 50 objects; got 51."),
        (None, r#"{"grabs":[{},"secret"]}"#, "`grabs[1]` must be an object."),
        (None, r#"{"grabs":[{}],"options":[]}"#, "`options` must be an object."),
        (
            Some(long.as_str()),
            r#"{"grabs":[{}]}"#,
            "`Idempotency-Key` of a batch must be 1 to 250 visible ASCII characters.",
        ),
        (Some(""), r#"{"grabs":[{}]}"#, "`Idempotency-Key` of a batch must be 1 to 250 visible ASCII characters."),
    ] {
        app.core.create.respond_with(|| Err(error_status(ErrorCode::BadRequest, "`body` …", None)));
        let response = send(&app, key, body).await;
        assert_eq!(response.status, 400, "{body}");
        assert_eq!(response.json()["error"]["message"], message);
        app.core.create.respond_with(|| Err(error_status(ErrorCode::Unauthorized, "No key.", None)));
        assert_eq!(send(&app, key, body).await.status, 401, "{body}");
    }
    assert_eq!(app.get("/v1/grabs/batch").await.status, 405);
}
