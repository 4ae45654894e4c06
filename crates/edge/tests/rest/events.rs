//! `GET /v1/grabs/{id}/events`.

use std::time::Duration;

use axum::body::Body;
use futures::stream;
use grabd_proto::v1::{ErrorCode, Grab, GrabStatus, RenderStage, StageReached};
use http::request::Builder;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::Instant;
use tonic::Status;
use tower::ServiceExt;

use crate::support::{
    PEER, STATE, TestApp, error_status, get, grab, peer, watch_stream, with_limit_headers, without_body,
};

const PATH: &str = "/v1/grabs/01990000-0000-7000-8000-000000000001/events";

#[tokio::test]
async fn every_revision_is_sent_until_the_grab_has_ended() {
    for app in TestApp::both().await {
        app.core.watch.respond_with(|| {
            let steps = [(GrabStatus::Pending, 1), (GrabStatus::Processing, 2), (GrabStatus::Done, 4)];
            with_limit_headers(watch_stream(
                steps.map(|(status, revision)| grab(status, revision)).to_vec(),
                stream::pending(),
            ))
        });
        let response = app.get(PATH).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("content-type"), "text/event-stream");
        assert_eq!(response.header("cache-control"), "private, no-store");
        assert_eq!(response.header("x-accel-buffering"), "no");
        assert_eq!(response.header("ratelimit"), STATE);
        let events: Vec<_> = response.text().split_terminator("\n\n").collect();
        assert_eq!(events.len(), 3, "{}", response.text());
        for (event, (status, revision)) in events.iter().zip([("pending", 1), ("processing", 2), ("done", 4)]) {
            let lines: Vec<_> = event.lines().collect();
            assert_eq!(lines[..2], ["event: grab".to_owned(), format!("id: {revision}")]);
            let data: serde_json::Value = serde_json::from_str(lines[2].strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!((lines.len(), data["status"].as_str()), (3, Some(status)));
            assert_eq!(data["target_url"], "https://example.com/");
        }
        assert_eq!(app.core.watch.take_request().1.after_revision, 0);
    }
}

#[tokio::test]
async fn stages_are_events_of_their_own_with_the_id_of_their_revision() {
    let app = TestApp::new();
    let reached = |stages: &[RenderStage]| {
        let stages = stages.iter().map(|stage| StageReached { stage: (*stage).into(), ms: 7 }).collect();
        Grab { stages, ..grab(GrabStatus::Processing, 2) }
    };
    app.core.watch.respond_with(move || {
        let steps = vec![
            reached(&[]),
            reached(&[RenderStage::Navigating]),
            reached(&[RenderStage::Navigating, RenderStage::Settling]),
            grab(GrabStatus::Done, 4),
        ];
        with_limit_headers(watch_stream(steps, stream::pending()))
    });
    let seen = |text: &str| {
        let events = text.split_terminator("\n\n").map(|event| {
            let lines: Vec<_> = event.lines().collect();
            let data: serde_json::Value = serde_json::from_str(lines[2].strip_prefix("data: ").unwrap()).unwrap();
            (lines[0].to_owned(), lines[1].to_owned(), data["stages"].clone())
        });
        events.collect::<Vec<_>>()
    };
    let event =
        |name: &str, id: u32, stages: serde_json::Value| (format!("event: {name}"), format!("id: {id}"), stages);
    let (navigating, settling) = (json!({"stage": "navigating", "ms": 7}), json!({"stage": "settling", "ms": 7}));
    let stages = [event("stage", 2, json!([navigating])), event("stage", 2, json!([navigating, settling]))];
    let (processing, done) = (event("grab", 2, json!(null)), event("grab", 4, json!(null)));
    let all = [&[processing][..], &stages, std::slice::from_ref(&done)].concat();
    assert_eq!(seen(app.get(PATH).await.text()), all);
    assert!(app.core.watch.take_request().1.with_stages);
    // A reader that has seen the revision gets only what is new.
    app.core.watch.respond_with(move || {
        let steps = vec![reached(&[RenderStage::Navigating]), grab(GrabStatus::Done, 4)];
        with_limit_headers(watch_stream(steps, stream::pending()))
    });
    let resumed = app.send(without_body(get(PATH).header("last-event-id", "2"))).await;
    assert_eq!(seen(resumed.text()), [stages[0].clone(), done]);
}

#[tokio::test(start_paused = true)]
async fn stream_resumes_after_the_last_event_id() {
    let app = TestApp::new();
    for (id, after) in [("2", 2), ("x", 0), ("", 0)] {
        app.core
            .watch
            .respond_with(|| with_limit_headers(watch_stream(vec![grab(GrabStatus::Done, 4)], stream::empty())));
        let response = app.send(without_body(get(PATH).header("last-event-id", id))).await;
        assert_eq!(response.text().matches("event: grab").count(), 1);
        assert_eq!(app.core.watch.take_request().1.after_revision, after, "{id}");
    }
    // The reader has the last revision: 204 tells browsers not to reconnect.
    app.core.watch.respond_with(|| with_limit_headers(watch_stream(vec![], stream::empty())));
    let response = app.send(without_body(get(PATH).header("last-event-id", "4"))).await;
    assert_eq!((response.status.as_u16(), response.body.len()), (204, 0));
    assert_eq!(response.header("ratelimit"), STATE);
}

/// The response body as a stream.
async fn body(app: &TestApp, request: Builder) -> Body {
    let mut request = without_body(request);
    request.extensions_mut().insert(peer(PEER));
    let response = app.router.clone().oneshot(request).await.expect("a router does not fail");
    assert_eq!(response.status(), 200);
    response.into_body()
}

#[tokio::test(start_paused = true)]
async fn idle_stream_sends_keep_alive_comments() {
    let app = TestApp::new();
    app.core.watch.respond_with(|| with_limit_headers(watch_stream(vec![], stream::pending())));
    let mut body = body(&app, get(PATH).header("last-event-id", "1")).await;
    let started = Instant::now();
    for count in 1..=3 {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(frame.starts_with(b":"), "{frame:?}");
        assert_eq!(started.elapsed().as_secs(), 15 * count);
    }
}

#[tokio::test(start_paused = true)]
async fn stream_ends_after_31_minutes() {
    let app = TestApp::new();
    app.core
        .watch
        .respond_with(|| with_limit_headers(watch_stream(vec![grab(GrabStatus::Pending, 1)], stream::pending())));
    let started = Instant::now();
    let whole = body(&app, get(PATH)).await.collect().await.unwrap().to_bytes();
    assert_eq!(String::from_utf8_lossy(&whole).matches("event: grab").count(), 1);
    assert_eq!(started.elapsed(), Duration::from_secs(31 * 60));
}

#[tokio::test]
async fn stream_ends_when_the_core_stream_fails() {
    let app = TestApp::new();
    app.core.watch.respond_with(|| {
        with_limit_headers(watch_stream(
            vec![grab(GrabStatus::Pending, 1)],
            stream::iter([Status::unavailable("draining")]),
        ))
    });
    let response = app.get(PATH).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.text().matches("event: grab").count(), 1);
    assert!(!response.text().contains("draining"));
}

#[tokio::test]
async fn errors_before_the_first_event_have_an_envelope() {
    for app in TestApp::both().await {
        app.core
            .watch
            .respond_with(|| Err(error_status(ErrorCode::NotFound, "No grab with that id for this key.", None)));
        app.get(PATH).await.assert_error(404, "not_found");
        app.core.watch.respond_with(|| {
            let unknown = error_status(ErrorCode::NotFound, "No grab with that id for this key.", None);
            with_limit_headers(watch_stream(vec![], stream::iter([unknown])))
        });
        app.get(PATH).await.assert_error(404, "not_found");
        app.core
            .watch
            .respond_with(|| Err(error_status(ErrorCode::Unauthorized, "Missing or invalid Bearer token.", None)));
        app.get(PATH).await.assert_error(401, "unauthorized");
    }
}
