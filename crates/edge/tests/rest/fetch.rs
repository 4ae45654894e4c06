//! `GET /v1/grabs/{id}`, at once and with `Prefer: wait=N`.

use futures::stream;
use grabd_proto::v1::{ErrorCode, GetGrabResponse, Grab, GrabStatus, WatchGrabRequest};
use tokio::time::Instant;
use tonic::Status;

use crate::support::{House, POLICY, STATE, bare, fault, get, grab, limited, watched};

const PATH: &str = "/v1/grabs/01990000-0000-7000-8000-000000000001";

#[tokio::test]
async fn a_grab_is_shown_with_its_revision() {
    for house in House::both().await {
        house.core.get.answers(|| limited(GetGrabResponse { grab: Some(grab(GrabStatus::Processing, 2)) }));
        let reply = house.get(PATH).await;
        assert_eq!(reply.status, 200);
        assert_eq!(
            reply.text(),
            concat!(
                r#"{"id":"01990000-0000-7000-8000-000000000001","status":"processing","#,
                r#""created_at":"2026-11-20T20:32:54.120Z","target_url":"https://example.com/","image_url":null,"#,
                r#""width":1280,"height":720,"format":"png","bytes":null,"execution_ms":null,"error_message":null,"#,
                r#""final_url":null,"http_status":null,"settled_by":null,"blocked_requests":null,"#,
                r#""image_width":null,"image_height":null,"truncated":null}"#
            )
        );
        assert_eq!(reply.header("etag"), "W/\"2\"");
        assert_eq!(reply.header("cache-control"), "private, no-cache");
        assert_eq!((reply.header("ratelimit-policy"), reply.header("ratelimit")), (POLICY, STATE));
        assert_eq!(house.core.get.asked_once().1.id, &PATH["/v1/grabs/".len()..]);
    }
}

#[tokio::test]
async fn a_failed_grab_is_a_grab_like_any_other() {
    let house = House::new();
    house.core.get.answers(|| {
        let failed = Grab {
            failure_reason: ErrorCode::RenderFailed.into(),
            error_message: Some("The host does not exist.".to_owned()),
            ..grab(GrabStatus::Failed, 4)
        };
        limited(GetGrabResponse { grab: Some(failed) })
    });
    let reply = house.get(PATH).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["status"], "failed");
    assert_eq!(reply.json()["error_message"], "The host does not exist.");
}

#[tokio::test]
async fn what_the_caller_has_is_not_sent_again() {
    let house = House::new();
    house.core.get.answers(|| limited(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    for (tag, status) in [("W/\"4\"", 304), ("\"4\"", 304), ("W/\"3\", W/\"4\"", 304), ("*", 304), ("W/\"3\"", 200)] {
        let reply = house.send(bare(get(PATH).header("if-none-match", tag))).await;
        assert_eq!(reply.status, status, "{tag}");
        assert_eq!(reply.body.is_empty(), status == 304);
        assert_eq!(reply.header("etag"), "W/\"4\"");
        assert_eq!(reply.header("cache-control"), "private, no-cache");
        assert_eq!(reply.header("ratelimit"), STATE);
        assert_eq!(reply.header("content-type").is_empty(), status == 304);
    }
}

#[tokio::test]
async fn ids_go_to_the_core_as_they_are() {
    let house = House::new();
    house.core.get.answers(|| Err(fault(ErrorCode::NotFound, "No grab with that id for this key.", None)));
    for (path, id) in [
        ("/v1/grabs/x", "x"),
        ("/v1/grabs/%2e%2e", ".."),
        ("/v1/grabs/a%2Fb", "a/b"),
        ("/v1/grabs/%C3%A9", "é"),
        ("/v1/grabs/%FF", ""),
    ] {
        let message = house.get(path).await.refused(404, "not_found");
        assert_eq!(message, "No grab with that id for this key.");
        assert_eq!(house.core.get.asked_once().1.id, id, "{path}");
    }
}

/// Asks to wait, for a revision later than `seen` if there is one.
async fn wait(house: &House, prefer: &str, seen: Option<&str>) -> crate::support::Reply {
    let request = get(PATH).header("prefer", prefer);
    let request = match seen {
        Some(seen) => request.header("if-none-match", seen),
        None => request,
    };
    house.send(bare(request)).await
}

#[tokio::test]
async fn waiting_ends_with_the_grab() {
    for house in House::both().await {
        house.core.watch.answers(|| {
            let steps = [(GrabStatus::Pending, 1), (GrabStatus::Processing, 2), (GrabStatus::Done, 4)];
            limited(watched(steps.map(|(status, revision)| grab(status, revision)).to_vec(), stream::pending()))
        });
        let reply = wait(&house, "wait=10", None).await;
        assert_eq!((reply.status.as_u16(), reply.json()["status"].as_str()), (200, Some("done")));
        assert_eq!((reply.header("preference-applied"), reply.header("etag")), ("wait=10", "W/\"4\""));
        assert_eq!(reply.header("ratelimit"), STATE);
        let (metadata, asked) = house.core.watch.asked_once();
        assert_eq!(asked, WatchGrabRequest { id: PATH["/v1/grabs/".len()..].to_owned(), after_revision: 0 });
        assert_eq!(metadata["grpc-timeout"], "15000000u");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_its_time() {
    let house = House::new();
    for (prefer, seconds) in [("wait=3", 3), ("wait=25", 25), ("wait=1000", 25)] {
        house.core.watch.answers(|| limited(watched(vec![grab(GrabStatus::Pending, 1)], stream::pending())));
        let started = Instant::now();
        let reply = wait(&house, prefer, None).await;
        assert_eq!(started.elapsed().as_secs(), seconds);
        assert_eq!((reply.status.as_u16(), reply.json()["status"].as_str()), (200, Some("pending")));
        assert_eq!(reply.header("preference-applied"), format!("wait={seconds}"));

        house.core.watch.answers(|| limited(watched(vec![], stream::pending())));
        let reply = wait(&house, prefer, Some("W/\"1\"")).await;
        assert_eq!((reply.status.as_u16(), reply.header("etag")), (304, "W/\"1\""));
        assert_eq!(reply.header("preference-applied"), format!("wait={seconds}"));
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_from_a_known_revision_ends_with_the_next_one() {
    let house = House::new();
    house.core.watch.answers(|| limited(watched(vec![grab(GrabStatus::Processing, 2)], stream::pending())));
    let started = Instant::now();
    let reply = wait(&house, "wait=20", Some("W/\"1\"")).await;
    assert_eq!(started.elapsed().as_secs(), 0);
    assert_eq!((reply.status.as_u16(), reply.json()["status"].as_str()), (200, Some("processing")));
    assert_eq!(house.core.watch.asked_once().1.after_revision, 1);

    // Ended and seen: the stream is empty.
    house.core.watch.answers(|| limited(watched(vec![], stream::empty())));
    assert_eq!(wait(&house, "wait=20", Some("W/\"4\"")).await.status, 304);
}

#[tokio::test]
async fn waiting_survives_a_core_that_drains() {
    let house = House::new();
    let drained = || stream::iter([Status::unavailable("draining")]);
    house.core.watch.answers(move || limited(watched(vec![grab(GrabStatus::Pending, 1)], drained())));
    let reply = wait(&house, "wait=20", None).await;
    assert_eq!((reply.status.as_u16(), reply.json()["status"].as_str()), (200, Some("pending")));

    house.core.watch.answers(move || limited(watched(vec![], drained())));
    assert_eq!(wait(&house, "wait=20", Some("W/\"1\"")).await.status, 304);
    wait(&house, "wait=20", None).await.refused(500, "internal_error");
}

#[tokio::test]
async fn waiting_for_nothing_is_refused_like_fetching_it() {
    for house in House::both().await {
        house.core.watch.answers(|| Err(fault(ErrorCode::NotFound, "No grab with that id for this key.", None)));
        wait(&house, "wait=20", None).await.refused(404, "not_found");
        house.core.watch.answers(|| {
            let unknown = fault(ErrorCode::NotFound, "No grab with that id for this key.", None);
            limited(watched(vec![], stream::iter([unknown])))
        });
        wait(&house, "wait=20", None).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn not_waiting_is_fetching() {
    let house = House::new();
    house.core.get.answers(|| limited(GetGrabResponse { grab: Some(grab(GrabStatus::Pending, 1)) }));
    for prefer in ["wait=0", "wait=x", "respond-async"] {
        let reply = wait(&house, prefer, None).await;
        assert_eq!((reply.status.as_u16(), reply.header("preference-applied")), (200, ""));
        house.core.get.asked_once();
    }
}
