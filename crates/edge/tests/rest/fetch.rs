//! `GET /v1/grabs/{id}`, with and without `Prefer: wait=N`.

use futures::stream;
use grabd_proto::v1::{ErrorCause, ErrorCode, GetGrabResponse, Grab, GrabStatus, WatchGrabRequest};
use serde_json::json;
use tokio::time::Instant;
use tonic::Status;

use crate::support::{POLICY, STATE, TestApp, error_status, get, grab, watch_stream, with_limit_headers, without_body};

const PATH: &str = "/v1/grabs/01990000-0000-7000-8000-000000000001";

#[tokio::test]
async fn fetch_returns_the_grab_with_its_revision_as_etag() {
    for app in TestApp::both().await {
        app.core
            .get
            .respond_with(|| with_limit_headers(GetGrabResponse { grab: Some(grab(GrabStatus::Processing, 2)) }));
        let response = app.get(PATH).await;
        assert_eq!(response.status, 200);
        assert_eq!(
            response.text(),
            concat!(
                r#"{"id":"01990000-0000-7000-8000-000000000001","status":"processing","#,
                r#""created_at":"2026-11-20T20:32:54.120Z","target_url":"https://example.com/","image_url":null,"#,
                r#""width":1280,"height":720,"format":"png","bytes":null,"execution_ms":null,"error_message":null,"#,
                r#""final_url":null,"http_status":null,"settled_by":null,"blocked_requests":null,"#,
                r#""image_width":null,"image_height":null,"truncated":null,"warnings":null,"title":null,"#,
                r#""description":null,"lang":null,"canonical_url":null,"icon_url":null,"open_graph":null,"page_width":null,"#,
                r#""page_height":null,"redirects":null,"timings":null,"image_sha256":null,"challenge":null,"words":null}"#
            )
        );
        assert_eq!(response.header("etag"), "W/\"2\"");
        assert_eq!(response.header("cache-control"), "private, no-cache");
        assert_eq!((response.header("ratelimit-policy"), response.header("ratelimit")), (POLICY, STATE));
        assert_eq!(app.core.get.take_request().1.id, &PATH["/v1/grabs/".len()..]);
    }
}

#[tokio::test]
async fn failed_grab_is_200_with_the_code_and_cause_of_its_failure() {
    let app = TestApp::new();
    for (reason, cause, expected) in [
        (ErrorCode::RenderFailed, ErrorCause::Target, ("render_failed", "target")),
        (ErrorCode::RenderFailed, ErrorCause::Service, ("render_failed", "service")),
        (ErrorCode::RenderBlocked, ErrorCause::Target, ("render_blocked", "target")),
        (ErrorCode::SsrfDetected, ErrorCause::Target, ("ssrf_detected", "target")),
        (ErrorCode::InternalError, ErrorCause::Service, ("internal_error", "service")),
        // A core that does not say it. A create would be the same error.
        (ErrorCode::RenderBlocked, ErrorCause::Unspecified, ("render_blocked", "target")),
        (ErrorCode::Unspecified, ErrorCause::Unspecified, ("internal_error", "service")),
    ] {
        app.core.get.respond_with(move || {
            let failed = Grab {
                failure_reason: reason.into(),
                error_message: Some("The host does not exist.".to_owned()),
                error_cause: cause.into(),
                ..grab(GrabStatus::Failed, 4)
            };
            with_limit_headers(GetGrabResponse { grab: Some(failed) })
        });
        let response = app.get(PATH).await;
        assert_eq!(response.status, 200);
        let shown = response.json();
        assert_eq!((&shown["status"], &shown["error_message"]), (&json!("failed"), &json!("The host does not exist.")));
        assert_eq!((&shown["error_code"], &shown["error_cause"]), (&json!(expected.0), &json!(expected.1)));
    }
}

#[tokio::test]
async fn only_failed_grabs_have_an_error_code() {
    let app = TestApp::new();
    for status in [GrabStatus::Pending, GrabStatus::Processing, GrabStatus::Done] {
        app.core.get.respond_with(move || with_limit_headers(GetGrabResponse { grab: Some(grab(status, 4)) }));
        let shown = app.get(PATH).await.json();
        assert_eq!((shown.get("error_code"), shown.get("error_cause")), (None, None), "{shown}");
        assert!(shown["error_message"].is_null(), "{shown}");
    }
}

#[tokio::test]
async fn fetch_returns_304_for_a_matching_etag() {
    let app = TestApp::new();
    app.core.get.respond_with(|| with_limit_headers(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    for (tag, status) in [("W/\"4\"", 304), ("\"4\"", 304), ("W/\"3\", W/\"4\"", 304), ("*", 304), ("W/\"3\"", 200)] {
        let response = app.send(without_body(get(PATH).header("if-none-match", tag))).await;
        assert_eq!(response.status, status, "{tag}");
        assert_eq!(response.body.is_empty(), status == 304);
        assert_eq!(response.header("etag"), "W/\"4\"");
        assert_eq!(response.header("cache-control"), "private, no-cache");
        assert_eq!(response.header("ratelimit"), STATE);
        assert_eq!(response.header("content-type").is_empty(), status == 304);
    }
}

#[tokio::test]
async fn ids_are_forwarded_to_the_core_unchanged() {
    let app = TestApp::new();
    app.core.get.respond_with(|| Err(error_status(ErrorCode::NotFound, "No grab with that id for this key.", None)));
    for (path, id) in [
        ("/v1/grabs/x", "x"),
        ("/v1/grabs/%2e%2e", ".."),
        ("/v1/grabs/a%2Fb", "a/b"),
        ("/v1/grabs/%C3%A9", "é"),
        ("/v1/grabs/%FF", ""),
    ] {
        let message = app.get(path).await.assert_error(404, "not_found");
        assert_eq!(message, "No grab with that id for this key.");
        assert_eq!(app.core.get.take_request().1.id, id, "{path}");
    }
}

/// Sends a request that waits, with `seen` as its `If-None-Match`.
async fn wait(app: &TestApp, prefer: &str, seen: Option<&str>) -> crate::support::TestResponse {
    let request = get(PATH).header("prefer", prefer);
    let request = match seen {
        Some(seen) => request.header("if-none-match", seen),
        None => request,
    };
    app.send(without_body(request)).await
}

#[tokio::test]
async fn wait_ends_when_the_grab_ends() {
    for app in TestApp::both().await {
        app.core.watch.respond_with(|| {
            let steps = [(GrabStatus::Pending, 1), (GrabStatus::Processing, 2), (GrabStatus::Done, 4)];
            with_limit_headers(watch_stream(
                steps.map(|(status, revision)| grab(status, revision)).to_vec(),
                stream::pending(),
            ))
        });
        let response = wait(&app, "wait=10", None).await;
        assert_eq!((response.status.as_u16(), response.json()["status"].as_str()), (200, Some("done")));
        assert_eq!((response.header("preference-applied"), response.header("etag")), ("wait=10", "W/\"4\""));
        assert_eq!(response.header("ratelimit"), STATE);
        let (metadata, request) = app.core.watch.take_request();
        let id = PATH["/v1/grabs/".len()..].to_owned();
        assert_eq!(request, WatchGrabRequest { id, after_revision: 0, with_stages: false });
        assert_eq!(metadata["grpc-timeout"], "15000000u");
    }
}

#[tokio::test(start_paused = true)]
async fn wait_ends_after_its_timeout() {
    let app = TestApp::new();
    for (prefer, seconds) in [("wait=3", 3), ("wait=25", 25), ("wait=1000", 25)] {
        app.core
            .watch
            .respond_with(|| with_limit_headers(watch_stream(vec![grab(GrabStatus::Pending, 1)], stream::pending())));
        let started = Instant::now();
        let response = wait(&app, prefer, None).await;
        assert_eq!(started.elapsed().as_secs(), seconds);
        assert_eq!((response.status.as_u16(), response.json()["status"].as_str()), (200, Some("pending")));
        assert_eq!(response.header("preference-applied"), format!("wait={seconds}"));

        app.core.watch.respond_with(|| with_limit_headers(watch_stream(vec![], stream::pending())));
        let response = wait(&app, prefer, Some("W/\"1\"")).await;
        assert_eq!((response.status.as_u16(), response.header("etag")), (304, "W/\"1\""));
        assert_eq!(response.header("preference-applied"), format!("wait={seconds}"));
    }
}

#[tokio::test(start_paused = true)]
async fn wait_with_a_known_revision_ends_at_the_next_revision() {
    let app = TestApp::new();
    app.core
        .watch
        .respond_with(|| with_limit_headers(watch_stream(vec![grab(GrabStatus::Processing, 2)], stream::pending())));
    let started = Instant::now();
    let response = wait(&app, "wait=20", Some("W/\"1\"")).await;
    assert_eq!(started.elapsed().as_secs(), 0);
    assert_eq!((response.status.as_u16(), response.json()["status"].as_str()), (200, Some("processing")));
    assert_eq!(app.core.watch.take_request().1.after_revision, 1);

    // The caller has the last revision: the stream is empty.
    app.core.watch.respond_with(|| with_limit_headers(watch_stream(vec![], stream::empty())));
    assert_eq!(wait(&app, "wait=20", Some("W/\"4\"")).await.status, 304);
}

#[tokio::test]
async fn wait_returns_the_latest_state_when_the_core_drains() {
    let app = TestApp::new();
    let drained = || stream::iter([Status::unavailable("draining")]);
    app.core
        .watch
        .respond_with(move || with_limit_headers(watch_stream(vec![grab(GrabStatus::Pending, 1)], drained())));
    let response = wait(&app, "wait=20", None).await;
    assert_eq!((response.status.as_u16(), response.json()["status"].as_str()), (200, Some("pending")));

    app.core.watch.respond_with(move || with_limit_headers(watch_stream(vec![], drained())));
    assert_eq!(wait(&app, "wait=20", Some("W/\"1\"")).await.status, 304);
    wait(&app, "wait=20", None).await.assert_error(500, "internal_error");
}

#[tokio::test]
async fn wait_for_an_unknown_grab_returns_404() {
    for app in TestApp::both().await {
        app.core
            .watch
            .respond_with(|| Err(error_status(ErrorCode::NotFound, "No grab with that id for this key.", None)));
        wait(&app, "wait=20", None).await.assert_error(404, "not_found");
        app.core.watch.respond_with(|| {
            let unknown = error_status(ErrorCode::NotFound, "No grab with that id for this key.", None);
            with_limit_headers(watch_stream(vec![], stream::iter([unknown])))
        });
        wait(&app, "wait=20", None).await.assert_error(404, "not_found");
    }
}

#[tokio::test]
async fn zero_or_invalid_wait_returns_at_once() {
    let app = TestApp::new();
    app.core.get.respond_with(|| with_limit_headers(GetGrabResponse { grab: Some(grab(GrabStatus::Pending, 1)) }));
    for prefer in ["wait=0", "wait=x", "respond-async"] {
        let response = wait(&app, prefer, None).await;
        assert_eq!((response.status.as_u16(), response.header("preference-applied")), (200, ""));
        app.core.get.take_request();
    }
}
