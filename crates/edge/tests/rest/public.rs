//! `GET /v1/usage` and `GET /v1/pricing`.

use std::collections::BTreeMap;

use grabd_proto::v1::{Credits, ErrorCode, GetPricingRequest, GetPricingResponse, GetUsageResponse, Plan};
use http::Request;
use prost_types::value::Kind;
use prost_types::{Struct, Timestamp, Value};
use tonic::Response;

use crate::support::{STATE, TestApp, error_status, with_limit_headers, without_body};

#[tokio::test]
async fn usage_has_the_members_of_the_contract_in_order() {
    for app in TestApp::both().await {
        for (live, environment, expires_at, shown) in [
            (true, "live", Some(Timestamp { seconds: 1_795_206_774, nanos: 0 }), "\"2026-11-20T20:32:54.000Z\""),
            (false, "test", None, "null"),
        ] {
            app.core.usage.respond_with(move || {
                with_limit_headers(GetUsageResponse {
                    credits: Some(Credits { subscription: 7, prepaid: 5, total: 12, held: 1 }),
                    plan: Some(Plan { name: "annual".to_owned(), status: "active".to_owned(), expires_at }),
                    grabs_last_30d: 9,
                    live_grabs_last_30d: 4,
                    live,
                    top_up: "https://grabd.example/credits".to_owned(),
                })
            });
            let response = app.get("/v1/usage").await;
            assert_eq!(response.status, 200);
            let expected = format!(
                concat!(
                    r#"{{"credits":{{"subscription":7,"prepaid":5,"total":12,"held":1}},"#,
                    r#""plan":{{"name":"annual","status":"active","expires_at":{}}},"#,
                    r#""usage":{{"grabs_last_30d":9,"live_grabs_last_30d":4}},"environment":"{}","#,
                    r#""top_up":"https://grabd.example/credits"}}"#
                ),
                shown, environment
            );
            assert_eq!(response.text(), expected);
            assert_eq!((response.header("cache-control"), response.header("ratelimit")), ("private, no-store", STATE));
        }
    }
}

fn packet(price: f64) -> GetPricingResponse {
    let number = Value { kind: Some(Kind::NumberValue(price)) };
    let pricing = Struct { fields: BTreeMap::from([("per_grab_usd".to_owned(), number)]) };
    let fields = ["links", "comparison", "pricing"]
        .map(|name| (name.to_owned(), Value { kind: Some(Kind::StructValue(pricing.clone())) }));
    GetPricingResponse { packet: Some(Struct { fields: BTreeMap::from(fields) }) }
}

#[tokio::test]
async fn pricing_is_public_and_has_a_content_etag() {
    for app in TestApp::both().await {
        app.core.pricing.respond_with(|| Ok(Response::new(packet(0.002))));
        let response = app.send(without_body(Request::get("/v1/pricing"))).await;
        assert_eq!(response.status, 200);
        assert_eq!(
            response.text(),
            r#"{"pricing":{"per_grab_usd":0.002},"comparison":{"per_grab_usd":0.002},"links":{"per_grab_usd":0.002}}"#
        );
        assert_eq!(response.header("cache-control"), "public, max-age=300");
        assert_eq!(response.header("access-control-allow-origin"), "*");
        assert_eq!(response.header("access-control-allow-credentials"), "");
        let tag = response.header("etag");
        assert!(tag.len() == 66 && tag.starts_with('"') && tag.ends_with('"'), "{tag}");

        let again = app.send(without_body(Request::get("/v1/pricing").header("if-none-match", tag))).await;
        assert_eq!((again.status.as_u16(), again.body.len(), again.header("etag")), (304, 0, tag));
        assert_eq!(again.header("cache-control"), "public, max-age=300");
        assert_eq!(again.header("access-control-allow-origin"), "*");

        app.core.pricing.respond_with(|| Ok(Response::new(packet(0.003))));
        let kept = app.send(without_body(Request::get("/v1/pricing"))).await;
        assert_eq!((kept.status.as_u16(), kept.header("etag")), (200, tag), "the core is asked once a minute");
        let other = app.send(without_body(Request::get("/v1/pricing?detail=full").header("if-none-match", tag))).await;
        assert_eq!(other.status, 200);
        assert_ne!(other.header("etag"), tag);
    }
}

#[tokio::test]
async fn pricing_parameters_are_forwarded_to_the_core() {
    let app = TestApp::new();
    app.core.pricing.respond_with(|| Err(error_status(ErrorCode::BadRequest, "`detail` must be known.", None)));
    for (query, provider, detail) in [
        ("", None, None),
        ("?provider=provider_a&detail=summary", Some("provider_a"), Some("summary")),
        ("?provider=&detail=x&other=1", Some(""), Some("x")),
        ("?detail=full&detail=summary", None, Some("summary")),
    ] {
        let response = app.send(without_body(Request::get(format!("/v1/pricing{query}")))).await;
        assert_eq!(response.assert_error(400, "bad_request"), "`detail` must be known.");
        assert_eq!(response.header("access-control-allow-origin"), "*");
        let expected = GetPricingRequest { provider: provider.map(str::to_owned), detail: detail.map(str::to_owned) };
        assert_eq!(app.core.pricing.take_request().1, expected, "{query}");
    }
}
