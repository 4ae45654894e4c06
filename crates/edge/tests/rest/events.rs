//! `GET /v1/grabs/{id}/events`.

use std::time::Duration;

use axum::body::Body;
use futures::stream;
use grabd_proto::v1::{ErrorCode, GrabStatus};
use http::request::Builder;
use http_body_util::BodyExt;
use tokio::time::Instant;
use tonic::Status;
use tower::ServiceExt;

use crate::support::{House, PEER, STATE, bare, fault, get, grab, limited, peer, watched};

const PATH: &str = "/v1/grabs/01990000-0000-7000-8000-000000000001/events";

#[tokio::test]
async fn every_revision_is_told_until_the_grab_has_ended() {
    for house in House::both().await {
        house.core.watch.answers(|| {
            let steps = [(GrabStatus::Pending, 1), (GrabStatus::Processing, 2), (GrabStatus::Done, 4)];
            limited(watched(steps.map(|(status, revision)| grab(status, revision)).to_vec(), stream::pending()))
        });
        let reply = house.get(PATH).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), "text/event-stream");
        assert_eq!(reply.header("cache-control"), "private, no-store");
        assert_eq!(reply.header("x-accel-buffering"), "no");
        assert_eq!(reply.header("ratelimit"), STATE);
        let events: Vec<_> = reply.text().split_terminator("\n\n").collect();
        assert_eq!(events.len(), 3, "{}", reply.text());
        for (event, (status, revision)) in events.iter().zip([("pending", 1), ("processing", 2), ("done", 4)]) {
            let lines: Vec<_> = event.lines().collect();
            assert_eq!(lines[..2], ["event: grab".to_owned(), format!("id: {revision}")]);
            let data: serde_json::Value = serde_json::from_str(lines[2].strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!((lines.len(), data["status"].as_str()), (3, Some(status)));
            assert_eq!(data["target_url"], "https://example.com/");
        }
        assert_eq!(house.core.watch.asked_once().1.after_revision, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn readers_resume_where_they_were() {
    let house = House::new();
    for (id, after) in [("2", 2), ("x", 0), ("", 0)] {
        house.core.watch.answers(|| limited(watched(vec![grab(GrabStatus::Done, 4)], stream::empty())));
        let reply = house.send(bare(get(PATH).header("last-event-id", id))).await;
        assert_eq!(reply.text().matches("event: grab").count(), 1);
        assert_eq!(house.core.watch.asked_once().1.after_revision, after, "{id}");
    }
    // Ended and seen: 204 tells a browser not to come back.
    house.core.watch.answers(|| limited(watched(vec![], stream::empty())));
    let reply = house.send(bare(get(PATH).header("last-event-id", "4"))).await;
    assert_eq!((reply.status.as_u16(), reply.body.len()), (204, 0));
    assert_eq!(reply.header("ratelimit"), STATE);
}

/// A stream as it comes.
async fn body(house: &House, request: Builder) -> Body {
    let mut request = bare(request);
    request.extensions_mut().insert(peer(PEER));
    let response = house.router.clone().oneshot(request).await.expect("a router does not fail");
    assert_eq!(response.status(), 200);
    response.into_body()
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_is_kept_alive() {
    let house = House::new();
    house.core.watch.answers(|| limited(watched(vec![], stream::pending())));
    let mut body = body(&house, get(PATH).header("last-event-id", "1")).await;
    let started = Instant::now();
    for beat in 1..=3 {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(frame.starts_with(b":"), "{frame:?}");
        assert_eq!(started.elapsed().as_secs(), 15 * beat);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_does_not_live_for_ever() {
    let house = House::new();
    house.core.watch.answers(|| limited(watched(vec![grab(GrabStatus::Pending, 1)], stream::pending())));
    let started = Instant::now();
    let whole = body(&house, get(PATH)).await.collect().await.unwrap().to_bytes();
    assert_eq!(String::from_utf8_lossy(&whole).matches("event: grab").count(), 1);
    assert_eq!(started.elapsed(), Duration::from_secs(31 * 60));
}

#[tokio::test]
async fn a_stream_that_breaks_just_ends() {
    let house = House::new();
    house.core.watch.answers(|| {
        limited(watched(vec![grab(GrabStatus::Pending, 1)], stream::iter([Status::unavailable("draining")])))
    });
    let reply = house.get(PATH).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.text().matches("event: grab").count(), 1);
    assert!(!reply.text().contains("draining"));
}

#[tokio::test]
async fn what_cannot_be_followed_is_refused_with_an_envelope() {
    for house in House::both().await {
        house.core.watch.answers(|| Err(fault(ErrorCode::NotFound, "No grab with that id for this key.", None)));
        house.get(PATH).await.refused(404, "not_found");
        house.core.watch.answers(|| {
            let unknown = fault(ErrorCode::NotFound, "No grab with that id for this key.", None);
            limited(watched(vec![], stream::iter([unknown])))
        });
        house.get(PATH).await.refused(404, "not_found");
        house.core.watch.answers(|| Err(fault(ErrorCode::Unauthorized, "Missing or invalid Bearer token.", None)));
        house.get(PATH).await.refused(401, "unauthorized");
    }
}
