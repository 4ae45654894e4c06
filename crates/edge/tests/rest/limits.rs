//! What is left to a caller, and the limit of addresses in whose requests no team is recognised.

use grabd_edge::Options;
use grabd_proto::v1::{ErrorCode, GetGrabResponse, GetPricingResponse, GrabStatus};
use http::Request;
use http::request::Builder;
use tonic::{Response, Status};

use crate::support::{House, Reply, bare, fault, get, grab, limited, options, peer};

fn house(requests_per_minute: u32) -> House {
    let house = House::with(Options { requests_per_minute, ..options() });
    house
        .core
        .pricing
        .answers(|| Ok(Response::new(GetPricingResponse { packet: Some(prost_types::Struct::default()) })));
    house.core.get.answers(|| Err(fault(ErrorCode::Unauthorized, "Missing or invalid Bearer token.", None)));
    house
}

async fn from(house: &House, address: &str, request: Builder) -> Reply {
    let mut request = bare(request);
    request.extensions_mut().insert(peer(address));
    house.send(request).await
}

fn now_s() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the header that is checked is about the real time")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::SystemTime::UNIX_EPOCH).expect("after 1970").as_secs()
}

#[tokio::test]
async fn a_teams_limit_is_told_in_new_and_old_headers() {
    let house = house(60);
    house.core.get.answers(|| limited(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    let before = now_s();
    let reply = house.get("/v1/grabs/x").await;
    assert_eq!(reply.header("ratelimit-policy"), "\"default\";q=60;w=60");
    assert_eq!(reply.header("ratelimit"), "\"default\";r=59;t=12");
    assert_eq!((reply.header("x-ratelimit-limit"), reply.header("x-ratelimit-remaining")), ("60", "59"));
    let reset: u64 = reply.header("x-ratelimit-reset").parse().unwrap();
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
        let house = house(3);
        for remaining in ["2", "1", "0"] {
            let reply = from(&house, "192.0.2.1:1", request()).await;
            assert_ne!(reply.status, 429);
            assert_eq!(reply.header("ratelimit-policy"), "\"default\";q=3;w=60");
            assert_eq!(reply.header("ratelimit"), format!("\"default\";r={remaining};t=20"));
            assert_eq!((reply.header("x-ratelimit-limit"), reply.header("x-ratelimit-remaining")), ("3", remaining));
        }
        let reply = from(&house, "192.0.2.1:2", request()).await;
        let message = reply.refused(429, "rate_limit_exceeded");
        let wait: u64 = reply.header("retry-after").parse().unwrap();
        assert!((19..=20).contains(&wait));
        assert_eq!(message, format!("Request rate limit exceeded: 3 requests per minute. Retry in {wait} s."));
        assert_eq!(reply.header("ratelimit"), format!("\"default\";r=0;t={wait}"));
        assert_eq!(reply.header("x-ratelimit-remaining"), "0");
        assert_eq!(reply.header("www-authenticate"), "");
        assert_eq!(reply.header("x-request-id").len(), 36);
        assert_ne!(from(&house, "192.0.2.2:1", request()).await.status, 429);
    }
}

#[tokio::test]
async fn an_empty_address_does_not_reach_the_core_without_a_credential() {
    let house = house(1);
    from(&house, "192.0.2.1:1", Request::get("/v1/grabs/x")).await.refused(401, "unauthorized");
    from(&house, "192.0.2.1:1", Request::get("/v1/grabs/x")).await.refused(429, "rate_limit_exceeded");
    assert_eq!(house.core.get.asked().len(), 1);
    let refused = from(&house, "192.0.2.1:1", Request::get("/v1/pricing")).await;
    refused.refused(429, "rate_limit_exceeded");
    assert_eq!(refused.header("access-control-allow-origin"), "*");
}

#[tokio::test]
async fn recognised_teams_are_not_counted_by_address() {
    let house = house(1);
    house.core.get.answers(|| limited(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) }));
    for _ in 0..3 {
        assert_eq!(house.get("/v1/grabs/x").await.status, 200);
    }
    house.core.get.answers(|| Err(fault(ErrorCode::NotFound, "x", None)));
    for _ in 0..3 {
        house.get("/v1/grabs/x").await.refused(404, "not_found");
    }
    from(&house, "192.0.2.1:1", Request::get("/v1/pricing")).await.json();
}

#[tokio::test]
async fn our_own_failures_are_told_even_to_an_empty_address() {
    let house = house(1);
    house.core.get.answers(|| Err(Status::unavailable("x")));
    for _ in 0..3 {
        house.get("/v1/grabs/x").await.refused(500, "internal_error");
    }
}

#[tokio::test]
async fn addresses_are_seen_through_trusted_proxies_only() {
    for (peer, forwarded, other_peer, other_forwarded, same) in [
        ("192.0.2.1:1", "198.51.100.1", "192.0.2.1:1", "198.51.100.2", true),
        ("10.0.0.1:1", "198.51.100.1", "10.0.0.1:1", "198.51.100.2", false),
        ("10.0.0.1:1", "198.51.100.1", "10.0.0.2:1", "198.51.100.1", true),
        ("10.0.0.1:1", "203.0.113.1, 198.51.100.1", "10.0.0.1:1", "203.0.113.2, 198.51.100.1", true),
        ("[2001:db8::1]:1", "", "[2001:db8::ffff:2]:1", "", true),
        ("[2001:db8::1]:1", "", "[2001:db8:0:1::1]:1", "", false),
    ] {
        let house = house(1);
        let request = |forwarded: &str| Request::get("/v1/pricing").header("x-forwarded-for", forwarded);
        assert_eq!(from(&house, peer, request(forwarded)).await.status, 200);
        let second = from(&house, other_peer, request(other_forwarded)).await;
        assert_eq!(second.status == 429, same, "{peer} {forwarded} {other_peer} {other_forwarded}");
    }
}
