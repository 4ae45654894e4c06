//! Rate limit headers, and the limit by address of requests without a recognised team.

use grabd_edge::Options;
use grabd_proto::v1::{ErrorCode, GetGrabResponse, GetPricingResponse, GrabStatus};
use http::Request;
use http::request::Builder;
use tonic::{Response, Status};

use crate::support::{TestApp, TestResponse, error_status, get, grab, options, peer, with_limit_headers, without_body};

fn app_with_limit(requests_per_minute: u32) -> TestApp {
    let app = TestApp::with(Options { requests_per_minute, ..options() });
    app.core
        .pricing
        .respond_with(|| Ok(Response::new(GetPricingResponse { packet: Some(prost_types::Struct::default()) })));
    app.core.get.respond_with(|| Err(error_status(ErrorCode::Unauthorized, "Missing or invalid Bearer token.", None)));
    app
}

async fn send_from(app: &TestApp, address: &str, request: Builder) -> TestResponse {
    let mut request = without_body(request);
    request.extensions_mut().insert(peer(address));
    app.send(request).await
}

fn now_s() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the checked header contains the real time")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::SystemTime::UNIX_EPOCH).expect("after 1970").as_secs()
}

#[tokio::test]
async fn team_limit_is_sent_in_current_and_legacy_headers() {
    let app = app_with_limit(60);
    app.core.get.respond_with(|| with_limit_headers(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    let before = now_s();
    let response = app.get("/v1/grabs/x").await;
    assert_eq!(response.header("ratelimit-policy"), "\"default\";q=60;w=60");
    assert_eq!(response.header("ratelimit"), "\"default\";r=59;t=12");
    assert_eq!((response.header("x-ratelimit-limit"), response.header("x-ratelimit-remaining")), ("60", "59"));
    let reset: u64 = response.header("x-ratelimit-reset").parse().unwrap();
    assert!((before + 12..=now_s() + 12).contains(&reset));
}

#[tokio::test]
async fn requests_without_a_team_are_counted_by_address() {
    let requests: [fn() -> Builder; 6] = [
        || Request::get("/v1/pricing"),
        || Request::get("/v1/grabs/x"),
        || get("/v1/grabs/x"),
        || Request::get("/nowhere"),
        || get("/nowhere"),
        || get("/v1/pricing").method("OPTIONS"),
    ];
    for request in requests {
        let app = app_with_limit(3);
        for remaining in ["2", "1", "0"] {
            let response = send_from(&app, "192.0.2.1:1", request()).await;
            assert_ne!(response.status, 429);
            assert_eq!(response.header("ratelimit-policy"), "\"default\";q=3;w=60");
            assert_eq!(response.header("ratelimit"), format!("\"default\";r={remaining};t=20"));
            assert_eq!(
                (response.header("x-ratelimit-limit"), response.header("x-ratelimit-remaining")),
                ("3", remaining)
            );
        }
        let response = send_from(&app, "192.0.2.1:2", request()).await;
        let message = response.assert_error(429, "rate_limit_exceeded");
        let wait: u64 = response.header("retry-after").parse().unwrap();
        assert!((19..=20).contains(&wait));
        assert_eq!(message, format!("Request rate limit exceeded: 3 requests per minute. Retry in {wait} s."));
        assert_eq!(response.header("ratelimit"), format!("\"default\";r=0;t={wait}"));
        assert_eq!(response.header("x-ratelimit-remaining"), "0");
        assert_eq!(response.header("www-authenticate"), "");
        assert_eq!(response.header("x-request-id").len(), 36);
        assert_ne!(send_from(&app, "192.0.2.2:1", request()).await.status, 429);
    }
}

#[tokio::test]
async fn exceeded_address_limit_is_enforced_before_the_core_is_called() {
    let app = app_with_limit(1);
    send_from(&app, "192.0.2.1:1", Request::get("/v1/grabs/x")).await.assert_error(401, "unauthorized");
    send_from(&app, "192.0.2.1:1", Request::get("/v1/grabs/x")).await.assert_error(429, "rate_limit_exceeded");
    assert_eq!(app.core.get.take_requests().len(), 1);
    let response = send_from(&app, "192.0.2.1:1", Request::get("/v1/pricing")).await;
    response.assert_error(429, "rate_limit_exceeded");
    assert_eq!(response.header("access-control-allow-origin"), "*");
}

#[tokio::test]
async fn requests_with_a_team_are_not_counted_by_address() {
    let app = app_with_limit(1);
    app.core.get.respond_with(|| with_limit_headers(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    for _ in 0..3 {
        assert_eq!(app.get("/v1/grabs/x").await.status, 200);
    }
    app.core.get.respond_with(|| Err(error_status(ErrorCode::NotFound, "x", None)));
    for _ in 0..3 {
        app.get("/v1/grabs/x").await.assert_error(404, "not_found");
    }
    send_from(&app, "192.0.2.1:1", Request::get("/v1/pricing")).await.json();
}

#[tokio::test]
async fn internal_errors_are_returned_despite_an_exceeded_address_limit() {
    let app = app_with_limit(1);
    app.core.get.respond_with(|| Err(Status::unavailable("x")));
    for _ in 0..3 {
        app.get("/v1/grabs/x").await.assert_error(500, "internal_error");
    }
}

#[tokio::test]
async fn forwarded_addresses_are_only_trusted_from_trusted_proxies() {
    for (peer, forwarded, other_peer, other_forwarded, same) in [
        ("192.0.2.1:1", "198.51.100.1", "192.0.2.1:1", "198.51.100.2", true),
        ("10.0.0.1:1", "198.51.100.1", "10.0.0.1:1", "198.51.100.2", false),
        ("10.0.0.1:1", "198.51.100.1", "10.0.0.2:1", "198.51.100.1", true),
        ("10.0.0.1:1", "203.0.113.1, 198.51.100.1", "10.0.0.1:1", "203.0.113.2, 198.51.100.1", true),
        ("[2001:db8::1]:1", "", "[2001:db8::ffff:2]:1", "", true),
        ("[2001:db8::1]:1", "", "[2001:db8:0:1::1]:1", "", false),
    ] {
        let app = app_with_limit(1);
        let request = |forwarded: &str| Request::get("/v1/pricing").header("x-forwarded-for", forwarded);
        assert_eq!(send_from(&app, peer, request(forwarded)).await.status, 200);
        let second = send_from(&app, other_peer, request(other_forwarded)).await;
        assert_eq!(second.status == 429, same, "{peer} {forwarded} {other_peer} {other_forwarded}");
    }
}
