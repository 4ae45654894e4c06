//! Behaviour of all routes: request ids, headers, methods and paths.

use axum::body::Body;
use grabd_proto::v1::{ErrorCode, GetGrabResponse, GrabStatus, ListGrabsResponse};
use http::{Method, Request};

use crate::support::{TestApp, error_status, get, grab, with_limit_headers, without_body};

const ROUTES: [(&str, &str); 6] = [
    ("/v1/grabs", "GET, HEAD, POST, OPTIONS"),
    ("/v1/grabs/x", "GET, HEAD, DELETE, OPTIONS"),
    ("/v1/grabs/x/events", "GET, HEAD, OPTIONS"),
    ("/v1/grabs/x/read", "GET, HEAD, OPTIONS"),
    ("/v1/usage", "GET, HEAD, OPTIONS"),
    ("/v1/pricing", "GET, HEAD, OPTIONS"),
];

#[tokio::test]
async fn unknown_paths_are_not_found() {
    let app = TestApp::new();
    for path in
        ["/", "/v1", "/v1/", "/v1/grab", "/v1/grabs/", "/v1/grabs/x/", "/v1/grabs/x/y", "/v2/grabs", "//v1/grabs"]
    {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let request = get(path).method(method).body(Body::empty()).unwrap();
            app.send(request).await.assert_error(404, "not_found");
        }
    }
}

#[tokio::test]
async fn unsupported_methods_return_405_with_allow() {
    let app = TestApp::new();
    for (path, allowed) in ROUTES {
        for method in ["PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
            if allowed.split(", ").any(|one| one == method) {
                continue;
            }
            let response = app.send(without_body(get(path).method(method))).await;
            response.assert_error(405, "bad_request");
            assert_eq!(response.header("allow"), allowed, "{method} {path}");
        }
        let response = app.send(without_body(get(path).method(Method::OPTIONS))).await;
        assert_eq!((response.status.as_u16(), response.body.len(), response.header("allow")), (204, 0, allowed));
        let open = path == "/v1/pricing";
        for name in ["access-control-allow-origin", "access-control-allow-methods", "access-control-max-age"] {
            assert_eq!(!response.header(name).is_empty(), open, "{name} {path}");
        }
    }
    app.send(without_body(get("/v1/usage").method(Method::POST))).await.assert_error(405, "bad_request");
}

#[tokio::test]
async fn head_returns_the_headers_of_get() {
    let app = TestApp::new();
    app.core.get.respond_with(|| with_limit_headers(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    app.core.list.respond_with(|| with_limit_headers(ListGrabsResponse::default()));
    for path in ["/v1/grabs", "/v1/grabs/x"] {
        let whole = app.get(path).await;
        let head = app.send(without_body(get(path).method(Method::HEAD))).await;
        assert_eq!((head.status, head.body.len()), (whole.status, 0));
        assert_eq!(head.header("content-length"), whole.body.len().to_string());
        for name in ["content-type", "cache-control", "etag", "ratelimit"] {
            assert_eq!(head.header(name), whole.header(name));
        }
    }
}

#[tokio::test]
async fn every_response_has_a_request_id_and_nosniff() {
    let app = TestApp::new();
    app.core.get.respond_with(|| with_limit_headers(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    app.core.usage.respond_with(|| Err(error_status(ErrorCode::Unauthorized, "x", None)));
    for path in ["/v1/grabs/x", "/v1/usage", "/nowhere"] {
        for method in [Method::GET, Method::PUT, Method::OPTIONS] {
            let request = || get(path).method(method.clone());
            let response = app.send(without_body(request().header("x-request-id", "my.id_1-A"))).await;
            assert_eq!(response.header("x-request-id"), "my.id_1-A");
            assert_eq!(response.header("x-content-type-options"), "nosniff");
            let first = app.send(without_body(request().header("x-request-id", "not/mine"))).await;
            let second = app.send(without_body(request())).await;
            assert_eq!((first.header("x-request-id").len(), second.header("x-request-id").len()), (36, 36));
            assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
        }
    }
}

#[tokio::test]
async fn only_credential_request_id_and_trace_are_forwarded() {
    for app in TestApp::both().await {
        app.core.get.respond_with(|| with_limit_headers(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
        let request = get("/v1/grabs/x")
            .header("x-request-id", "r-1")
            .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            .header("tracestate", "vendor=1")
            .header("tracestate", "other=2")
            .header("cookie", "session=1")
            .header("x-forwarded-for", "198.51.100.1");
        let response = app.send(without_body(request)).await;
        assert_eq!(response.status, 200);
        let (metadata, _) = app.core.get.take_request();
        assert_eq!(metadata["authorization"], "Bearer sk_live_x");
        assert_eq!(metadata["x-request-id"], "r-1");
        assert_eq!(metadata["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_eq!(metadata.get_all("tracestate").iter().collect::<Vec<_>>(), ["vendor=1", "other=2"]);
        assert_eq!(metadata["grpc-timeout"], "5000000u");
        assert!(!metadata.contains_key("cookie") && !metadata.contains_key("x-forwarded-for"));

        // Several ids are replaced by a new one, which the core and the caller both get.
        let request = Request::get("/v1/grabs/x").header("x-request-id", "a b").header("x-request-id", "c d");
        let response = app.send(without_body(request)).await;
        let (metadata, _) = app.core.get.take_request();
        assert_eq!(metadata["x-request-id"], response.header("x-request-id"));
        assert_eq!(response.header("x-request-id").len(), 36);
        assert!(!metadata.contains_key("authorization"));
    }
}

#[tokio::test]
async fn only_errors_link_to_their_documentation() {
    let app = TestApp::new();
    app.core.get.respond_with(|| with_limit_headers(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    app.core.usage.respond_with(|| Err(error_status(ErrorCode::Unauthorized, "x", None)));
    for (method, path, link) in [
        (Method::GET, "/v1/grabs/x", ""),
        (Method::GET, "/v1/usage", "<https://grabd.example/docs/api#unauthorized>; rel=\"help\""),
        (Method::PUT, "/v1/usage", "<https://grabd.example/docs/api#bad_request>; rel=\"help\""),
        (Method::GET, "/nowhere", "<https://grabd.example/docs/api#not_found>; rel=\"help\""),
    ] {
        let response = app.send(without_body(get(path).method(method))).await;
        assert_eq!(response.header("link"), link, "{path}");
    }
}

#[tokio::test]
async fn malformed_trace_is_not_forwarded() {
    let app = TestApp::new();
    app.core.get.respond_with(|| with_limit_headers(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for lines in [&["00-0-0-00"][..], &[good, good]] {
        let request = get("/v1/grabs/x").header("tracestate", "vendor=1");
        let request = lines.iter().fold(request, |request, line| request.header("traceparent", *line));
        assert_eq!(app.send(without_body(request)).await.status, 200);
        let (metadata, _) = app.core.get.take_request();
        assert!(!metadata.contains_key("traceparent") && !metadata.contains_key("tracestate"), "{metadata:?}");
    }
}
