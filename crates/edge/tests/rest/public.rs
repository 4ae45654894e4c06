//! `GET /v1/usage` and `GET /v1/pricing`.

use std::collections::BTreeMap;

use grabd_proto::v1::{Credits, ErrorCode, GetPricingRequest, GetPricingResponse, GetUsageResponse, Plan};
use http::Request;
use prost_types::value::Kind;
use prost_types::{Struct, Timestamp, Value};
use tonic::Response;

use crate::support::{House, STATE, bare, fault, limited};

#[tokio::test]
async fn usage_is_shown_as_the_contract_says() {
    for house in House::both().await {
        for (live, environment, expires_at, shown) in [
            (true, "live", Some(Timestamp { seconds: 1_795_206_774, nanos: 0 }), "\"2026-11-20T20:32:54.000Z\""),
            (false, "test", None, "null"),
        ] {
            house.core.usage.answers(move || {
                limited(GetUsageResponse {
                    credits: Some(Credits { subscription: 7, prepaid: 5, total: 12, held: 1 }),
                    plan: Some(Plan { name: "annual".to_owned(), status: "active".to_owned(), expires_at }),
                    grabs_last_30d: 9,
                    live_grabs_last_30d: 4,
                    live,
                    top_up: "https://grabd.example/credits".to_owned(),
                })
            });
            let reply = house.get("/v1/usage").await;
            assert_eq!(reply.status, 200);
            let expected = format!(
                concat!(
                    r#"{{"credits":{{"subscription":7,"prepaid":5,"total":12,"held":1}},"#,
                    r#""plan":{{"name":"annual","status":"active","expires_at":{}}},"#,
                    r#""usage":{{"grabs_last_30d":9,"live_grabs_last_30d":4}},"environment":"{}","#,
                    r#""top_up":"https://grabd.example/credits"}}"#
                ),
                shown, environment
            );
            assert_eq!(reply.text(), expected);
            assert_eq!((reply.header("cache-control"), reply.header("ratelimit")), ("private, no-store", STATE));
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
async fn pricing_is_public_and_cached_by_its_bytes() {
    for house in House::both().await {
        house.core.pricing.answers(|| Ok(Response::new(packet(0.002))));
        let reply = house.send(bare(Request::get("/v1/pricing"))).await;
        assert_eq!(reply.status, 200);
        assert_eq!(
            reply.text(),
            r#"{"pricing":{"per_grab_usd":0.002},"comparison":{"per_grab_usd":0.002},"links":{"per_grab_usd":0.002}}"#
        );
        assert_eq!(reply.header("cache-control"), "public, max-age=300");
        assert_eq!(reply.header("access-control-allow-origin"), "*");
        assert_eq!(reply.header("access-control-allow-credentials"), "");
        let tag = reply.header("etag");
        assert!(tag.len() == 66 && tag.starts_with('"') && tag.ends_with('"'), "{tag}");

        let again = house.send(bare(Request::get("/v1/pricing").header("if-none-match", tag))).await;
        assert_eq!((again.status.as_u16(), again.body.len(), again.header("etag")), (304, 0, tag));
        assert_eq!(again.header("cache-control"), "public, max-age=300");
        assert_eq!(again.header("access-control-allow-origin"), "*");

        house.core.pricing.answers(|| Ok(Response::new(packet(0.003))));
        let changed = house.send(bare(Request::get("/v1/pricing").header("if-none-match", tag))).await;
        assert_eq!(changed.status, 200);
        assert_ne!(changed.header("etag"), tag);
    }
}

#[tokio::test]
async fn pricing_parameters_are_for_the_core_to_judge() {
    let house = House::new();
    house.core.pricing.answers(|| Err(fault(ErrorCode::BadRequest, "`detail` must be known.", None)));
    for (query, provider, detail) in [
        ("", None, None),
        ("?provider=provider_a&detail=summary", Some("provider_a"), Some("summary")),
        ("?provider=&detail=x&other=1", Some(""), Some("x")),
        ("?detail=full&detail=summary", None, Some("summary")),
    ] {
        let reply = house.send(bare(Request::get(format!("/v1/pricing{query}")))).await;
        assert_eq!(reply.refused(400, "bad_request"), "`detail` must be known.");
        assert_eq!(reply.header("access-control-allow-origin"), "*");
        let expected = GetPricingRequest { provider: provider.map(str::to_owned), detail: detail.map(str::to_owned) };
        assert_eq!(house.core.pricing.asked_once().1, expected, "{query}");
    }
}
