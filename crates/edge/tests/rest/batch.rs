//! `POST /v1/grabs/batch`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use grabd_proto::reason;
use grabd_proto::v1::batch_result::Result as CoreResult;
use grabd_proto::v1::{BatchCreateGrabsResponse, BatchError, BatchResult, ErrorCode, GrabStatus};
use serde_json::{Value, json};

use crate::support::{TestApp, TestResponse, error_status, grab, post, with_limit_headers};

async fn send(app: &TestApp, key: Option<&str>, body: &str) -> TestResponse {
    let request = key.into_iter().fold(post("/v1/grabs/batch"), |request, key| request.header("idempotency-key", key));
    app.send(request.body(Body::from(body.to_owned())).expect("a request")).await
}

fn queued() -> BatchResult {
    BatchResult { result: Some(CoreResult::Grab(Box::new(grab(GrabStatus::Pending, 1)))), replayed: false }
}

fn refused(code: ErrorCode) -> BatchResult {
    let retry_after = Some(prost_types::Duration { seconds: 7, nanos: 0 });
    let error = BatchError { code: code.into(), message: "Refused.".to_owned(), retry_after, ..BatchError::default() };
    BatchResult { result: Some(CoreResult::Error(error)), replayed: false }
}

/// The core responds with these results.
fn respond_with(app: &TestApp, results: Vec<BatchResult>, stopped: bool) {
    let response = BatchCreateGrabsResponse { results, stopped };
    app.core.batch.respond_with(move || with_limit_headers(response.clone()));
}

#[tokio::test]
async fn captures_are_sent_together_with_their_own_keys_and_the_shared_options() {
    for app in TestApp::both().await {
        respond_with(&app, vec![queued(), queued(), queued()], false);
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
        let sent = app.core.batch.take_request().1.requests;
        let keys: Vec<_> = sent.iter().map(|request| request.idempotency_key.as_deref()).collect();
        assert_eq!(keys, [Some("k#0"), Some("k#1"), Some("k#2")]);
        let options: Vec<_> = sent.iter().map(|request| request.options.clone().expect("options")).collect();
        assert_eq!((options[0].width, options[0].format.as_deref()), (Some(300), Some("webp")));
        assert_eq!((options[1].width, options[1].format.as_deref()), (Some(400), Some("png")));
        assert_eq!(sent[2].unparsed[0].field, "url");
    }
}

#[tokio::test]
async fn unknown_members_of_each_capture_and_of_the_batch_are_named() {
    let app = TestApp::new();
    respond_with(&app, vec![queued(), refused(ErrorCode::BadRequest)], false);
    let body = r#"{"grabs":[{"url":"a","widht":1},{"ulr":"b"}],"options":{"foo":1},"full_page":true}"#;
    let response = send(&app, None, body).await;
    let expected = "Refused. Ignored, since no such option exists: foo, full_page, ulr (did you mean url?).";
    assert_eq!(response.json()["results"][1]["error"]["message"], expected);
    let sent = app.core.batch.take_request().1.requests;
    assert_eq!(sent[0].unknown, ["foo", "full_page", "widht"]);
    assert_eq!(sent[1].unknown, ["foo", "full_page", "ulr"]);
}

#[tokio::test]
async fn one_refused_capture_is_reported_in_its_place() {
    let app = TestApp::new();
    for code in [ErrorCode::BadRequest, ErrorCode::SsrfDetected, ErrorCode::InvalidViewport] {
        respond_with(&app, vec![refused(code), queued(), queued()], false);
        let response = send(&app, None, r#"{"grabs":[{},{},{}]}"#).await;
        let results = response.json();
        assert_eq!((response.status, &results["results"][0]["grab"]), (200.try_into().unwrap(), &Value::Null));
        let refused = &results["results"][0];
        assert_eq!(refused["error"], json!({ "code": reason::of(code).to_lowercase(), "message": "Refused." }));
        assert_eq!(refused["error_cause"], "request");
        let created = &results["results"][2];
        assert_eq!((&created["grab"]["status"], created.get("error_cause")), (&json!("pending"), None), "{created}");
        let sent = app.core.batch.take_request().1.requests;
        assert!(sent.iter().all(|request| request.idempotency_key.is_none()));
    }
}

#[tokio::test]
async fn response_says_when_to_try_the_rest_again() {
    let app = TestApp::new();
    // That of a 429 is at least the time until the rate limit admits a request.
    for (code, retry_after) in [
        (ErrorCode::RateLimitExceeded, "12"),
        (ErrorCode::QueueLimitExceeded, "12"),
        (ErrorCode::CreditsExhausted, "7"),
    ] {
        respond_with(&app, vec![queued(), refused(code), refused(code)], true);
        let response = send(&app, None, r#"{"grabs":[{},{},{}]}"#).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("retry-after"), retry_after);
        let results = response.json();
        assert_eq!(results["results"].as_array().map(Vec::len), Some(3));
        assert_eq!(results["results"][0]["grab"]["status"], "pending");
        assert_eq!(results["results"][1], results["results"][2]);
        // Beside the error, since not all of a response may have it.
        assert_eq!(results["results"][1]["retry_after"].to_string(), retry_after);
        assert_eq!(results["results"][0].get("retry_after"), None);
    }
}

#[tokio::test]
async fn refusal_of_the_whole_batch_is_the_response() {
    let app = TestApp::new();
    for (code, status) in [
        (ErrorCode::Unauthorized, 401),
        (ErrorCode::Forbidden, 403),
        (ErrorCode::CreditsExhausted, 402),
        (ErrorCode::RateLimitExceeded, 429),
    ] {
        app.core.batch.respond_with(move || Err(error_status(code, "Refused.", Some(Duration::from_secs(7)))));
        let response = send(&app, None, r#"{"grabs":[{},{}]}"#).await;
        assert_eq!(response.status, status);
        assert_eq!(response.json()["error"]["message"], "Refused.");
        assert_eq!(app.core.batch.take_requests().len(), 1);
    }
}

/// Options that all captures share may be large, and the core limits the size of a call.
#[tokio::test]
async fn large_captures_are_sent_in_several_calls_until_one_is_refused() {
    let app = TestApp::new();
    let body = json!({ "grabs": [{}, {}, {}], "options": { "html": "x".repeat(600 << 10) } }).to_string();
    respond_with(&app, vec![queued()], false);
    let results = send(&app, Some("k"), &body).await.json();
    assert_eq!(results["results"].as_array().map(Vec::len), Some(3), "{results}");
    let sent: Vec<_> = app.core.batch.take_requests().into_iter().map(|(_, call)| call.requests).collect();
    let keys: Vec<_> = sent.iter().flatten().map(|request| request.idempotency_key.as_deref()).collect();
    assert_eq!((sent.len(), keys), (3, vec![Some("k#0"), Some("k#1"), Some("k#2")]));

    let count = AtomicUsize::new(0);
    app.core.batch.respond_with(move || match count.fetch_add(1, Ordering::Relaxed) {
        0 => with_limit_headers(BatchCreateGrabsResponse { results: vec![queued()], stopped: false }),
        _ => Err(error_status(ErrorCode::CreditsExhausted, "Refused.", None)),
    });
    let results = send(&app, None, &body).await.json();
    let codes: Vec<_> = (0..3).map(|index| results["results"][index]["error"]["code"].clone()).collect();
    assert_eq!(codes, [Value::Null, json!("credits_exhausted"), json!("credits_exhausted")]);
    assert_eq!(app.core.batch.take_requests().len(), 2);
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
        respond_with(&app, vec![refused(ErrorCode::BadRequest)], false);
        let response = send(&app, key, body).await;
        assert_eq!(response.status, 400, "{body}");
        assert_eq!(response.json()["error"]["message"], message);
        app.core.batch.respond_with(|| Err(error_status(ErrorCode::Unauthorized, "No key.", None)));
        assert_eq!(send(&app, key, body).await.status, 401, "{body}");
    }
    assert_eq!(app.get("/v1/grabs/batch").await.status, 405);
}
