//! What holds for every request: ids, headers, methods, paths.

use axum::body::Body;
use grabd_proto::v1::{ErrorCode, GetGrabResponse, GrabStatus, ListGrabsResponse};
use http::{Method, Request};

use crate::support::{House, bare, fault, get, grab, limited};

const ROUTES: [(&str, &str); 5] = [
    ("/v1/grabs", "GET, HEAD, POST, OPTIONS"),
    ("/v1/grabs/x", "GET, HEAD, DELETE, OPTIONS"),
    ("/v1/grabs/x/events", "GET, HEAD, OPTIONS"),
    ("/v1/usage", "GET, HEAD, OPTIONS"),
    ("/v1/pricing", "GET, HEAD, OPTIONS"),
];

#[tokio::test]
async fn unknown_paths_are_not_found() {
    let house = House::new();
    for path in
        ["/", "/v1", "/v1/", "/v1/grab", "/v1/grabs/", "/v1/grabs/x/", "/v1/grabs/x/y", "/v2/grabs", "//v1/grabs"]
    {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let request = get(path).method(method).body(Body::empty()).unwrap();
            house.send(request).await.refused(404, "not_found");
        }
    }
}

#[tokio::test]
async fn other_methods_are_refused_and_told_which_there_are() {
    let house = House::new();
    for (path, allowed) in ROUTES {
        for method in ["PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
            if allowed.split(", ").any(|one| one == method) {
                continue;
            }
            let reply = house.send(bare(get(path).method(method))).await;
            reply.refused(405, "bad_request");
            assert_eq!(reply.header("allow"), allowed, "{method} {path}");
        }
        let reply = house.send(bare(get(path).method(Method::OPTIONS))).await;
        assert_eq!((reply.status.as_u16(), reply.body.len(), reply.header("allow")), (204, 0, allowed));
        let open = path == "/v1/pricing";
        for name in ["access-control-allow-origin", "access-control-allow-methods", "access-control-max-age"] {
            assert_eq!(!reply.header(name).is_empty(), open, "{name} {path}");
        }
    }
    house.send(bare(get("/v1/usage").method(Method::POST))).await.refused(405, "bad_request");
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let house = House::new();
    house.core.get.answers(|| limited(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    house.core.list.answers(|| limited(ListGrabsResponse::default()));
    for path in ["/v1/grabs", "/v1/grabs/x"] {
        let whole = house.get(path).await;
        let head = house.send(bare(get(path).method(Method::HEAD))).await;
        assert_eq!((head.status, head.body.len()), (whole.status, 0));
        assert_eq!(head.header("content-length"), whole.body.len().to_string());
        for name in ["content-type", "cache-control", "etag", "ratelimit"] {
            assert_eq!(head.header(name), whole.header(name));
        }
    }
}

#[tokio::test]
async fn every_answer_has_an_id_and_is_not_sniffed() {
    let house = House::new();
    house.core.get.answers(|| limited(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    house.core.usage.answers(|| Err(fault(ErrorCode::Unauthorized, "x", None)));
    for path in ["/v1/grabs/x", "/v1/usage", "/nowhere"] {
        for method in [Method::GET, Method::PUT, Method::OPTIONS] {
            let request = || get(path).method(method.clone());
            let reply = house.send(bare(request().header("x-request-id", "my.id_1-A"))).await;
            assert_eq!(reply.header("x-request-id"), "my.id_1-A");
            assert_eq!(reply.header("x-content-type-options"), "nosniff");
            let first = house.send(bare(request().header("x-request-id", "not/mine"))).await;
            let second = house.send(bare(request())).await;
            assert_eq!((first.header("x-request-id").len(), second.header("x-request-id").len()), (36, 36));
            assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
        }
    }
}

#[tokio::test]
async fn the_core_is_told_who_asks_and_nothing_else() {
    for house in House::both().await {
        house.core.get.answers(|| limited(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
        let request = get("/v1/grabs/x")
            .header("x-request-id", "r-1")
            .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            .header("tracestate", "vendor=1")
            .header("tracestate", "other=2")
            .header("cookie", "session=1")
            .header("x-forwarded-for", "198.51.100.1");
        let reply = house.send(bare(request)).await;
        assert_eq!(reply.status, 200);
        let (metadata, _) = house.core.get.asked_once();
        assert_eq!(metadata["authorization"], "Bearer sk_live_x");
        assert_eq!(metadata["x-request-id"], "r-1");
        assert_eq!(metadata["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_eq!(metadata.get_all("tracestate").iter().collect::<Vec<_>>(), ["vendor=1", "other=2"]);
        assert_eq!(metadata["grpc-timeout"], "5000000u");
        assert!(!metadata.contains_key("cookie") && !metadata.contains_key("x-forwarded-for"));

        // Two ids are none: the core and the caller are told the same fresh one.
        let request = Request::get("/v1/grabs/x").header("x-request-id", "a b").header("x-request-id", "c d");
        let reply = house.send(bare(request)).await;
        let (metadata, _) = house.core.get.asked_once();
        assert_eq!(metadata["x-request-id"], reply.header("x-request-id"));
        assert_eq!(reply.header("x-request-id").len(), 36);
        assert!(!metadata.contains_key("authorization"));
    }
}

#[tokio::test]
async fn every_error_links_to_its_meaning_and_nothing_else_does() {
    let house = House::new();
    house.core.get.answers(|| limited(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    house.core.usage.answers(|| Err(fault(ErrorCode::Unauthorized, "x", None)));
    for (method, path, link) in [
        (Method::GET, "/v1/grabs/x", ""),
        (Method::GET, "/v1/usage", "<https://grabd.example/docs#unauthorized>; rel=\"help\""),
        (Method::PUT, "/v1/usage", "<https://grabd.example/docs#bad_request>; rel=\"help\""),
        (Method::GET, "/nowhere", "<https://grabd.example/docs#not_found>; rel=\"help\""),
    ] {
        let reply = house.send(bare(get(path).method(method))).await;
        assert_eq!(reply.header("link"), link, "{path}");
    }
}

#[tokio::test]
async fn a_malformed_trace_is_not_continued() {
    let house = House::new();
    house.core.get.answers(|| limited(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for lines in [&["00-0-0-00"][..], &[good, good]] {
        let request = get("/v1/grabs/x").header("tracestate", "vendor=1");
        let request = lines.iter().fold(request, |request, line| request.header("traceparent", *line));
        assert_eq!(house.send(bare(request)).await.status, 200);
        let (metadata, _) = house.core.get.asked_once();
        assert!(!metadata.contains_key("traceparent") && !metadata.contains_key("tracestate"), "{metadata:?}");
    }
}
