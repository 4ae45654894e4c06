//! `/v1/webhooks`.

use axum::body::Body;
use grabd_proto::v1::{
    CreateWebhookRequest, CreateWebhookResponse, DeleteWebhookRequest, DeleteWebhookResponse, Delivery, DeliveryStatus,
    ErrorCode, ListDeliveriesRequest, ListDeliveriesResponse, ListWebhooksResponse, RedeliverWebhookRequest,
    RedeliverWebhookResponse, RotateWebhookSecretResponse, TestWebhookResponse, Unparsed, UpdateWebhookResponse,
    Webhook, WebhookStatus,
};
use http::Request;

use crate::support::{House, KEY, STATE, bare, fault, limited, post};

const ID: &str = "01990000-0000-7000-8000-000000000001";

fn webhook(secret: Option<&str>) -> Webhook {
    Webhook {
        id: ID.to_owned(),
        url: "https://example.com/hook".to_owned(),
        events: vec!["grab.done".to_owned()],
        description: "prod".to_owned(),
        status: WebhookStatus::Enabled.into(),
        created_at: Some(prost_types::Timestamp { seconds: 1_795_206_774, nanos: 120_000_000 }),
        secret: secret.map(str::to_owned),
        disabled_reason: None,
    }
}

fn delivery() -> Delivery {
    Delivery {
        id: ID.to_owned(),
        message_id: "msg_1".to_owned(),
        r#type: "grab.done".to_owned(),
        attempt: 2,
        status: DeliveryStatus::Failed.into(),
        status_code: Some(500),
        attempted_at: Some(prost_types::Timestamp { seconds: 1_795_206_774, nanos: 0 }),
        next_attempt_at: None,
    }
}

fn wrong(field: &str, seen: &str) -> Unparsed {
    Unparsed { field: field.to_owned(), seen: seen.to_owned() }
}

fn patch(body: &str) -> Request<Body> {
    let request = Request::patch(format!("/v1/webhooks/{ID}")).header("authorization", KEY);
    request.header("content-type", "application/json").body(Body::from(body.to_owned())).expect("a request")
}

const SHOWN: &str = r#"{"id":"01990000-0000-7000-8000-000000000001","url":"https://example.com/hook","events":["grab.done"],"description":"prod","status":"enabled","created_at":"2026-11-20T20:32:54.120Z","disabled_reason":null"#;

#[tokio::test]
async fn an_endpoint_is_registered() {
    for house in House::both().await {
        let answer = || limited(CreateWebhookResponse { webhook: Some(webhook(Some("whsec_x"))) });
        house.core.webhooks.create.answers(answer);
        for (body, url, events, description, unparsed) in [
            (
                r#"{"url":"https://example.com/hook","events":["grab.done"],"description":"prod","status":1,"x":[]}"#,
                Some("https://example.com/hook"),
                vec!["grab.done"],
                Some("prod"),
                vec![],
            ),
            (r#"{"url":5,"events":"*"}"#, None, vec![], None, vec![wrong("url", "5"), wrong("events", "\"*\"")]),
            ("[]", None, vec![], None, vec![wrong("body", "[]")]),
        ] {
            let request = post("/v1/webhooks").body(Body::from(body)).expect("a request");
            let reply = house.send(request).await;
            assert_eq!(reply.status, 201, "{}", reply.text());
            assert_eq!(reply.text(), format!("{SHOWN},\"secret\":\"whsec_x\"}}"));
            assert_eq!(reply.header("location"), format!("/v1/webhooks/{ID}"));
            assert_eq!((reply.header("cache-control"), reply.header("ratelimit")), ("private, no-store", STATE));
            let asked = house.core.webhooks.create.asked_once().1;
            let events = events.into_iter().map(str::to_owned).collect();
            let (url, description) = (url.map(str::to_owned), description.map(str::to_owned));
            assert_eq!(asked, CreateWebhookRequest { url, events, description, unparsed });
        }
        house.core.webhooks.create.answers(|| Err(fault(ErrorCode::SsrfDetected, "No.", None)));
        let request = post("/v1/webhooks").body(Body::from("{}")).expect("a request");
        assert_eq!(house.send(request).await.refused(400, "ssrf_detected"), "No.");
    }
}

#[tokio::test]
async fn only_what_is_there_is_changed() {
    let house = House::new();
    house.core.webhooks.update.answers(|| limited(UpdateWebhookResponse { webhook: Some(webhook(None)) }));
    for (body, paths, unparsed) in [
        ("{}", vec![], vec![]),
        (r#"{"status":"disabled"}"#, vec!["status"], vec![]),
        (
            r#"{"description":"","events":[],"url":"https://a.example/","status":"enabled"}"#,
            vec!["url", "events", "description", "status"],
            vec![],
        ),
        (
            r#"{"status":"paused","description":null}"#,
            vec![],
            vec![wrong("description", "null"), wrong("status", "\"paused\"")],
        ),
    ] {
        let reply = house.send(patch(body)).await;
        assert_eq!((reply.status.as_u16(), reply.text()), (200, format!("{SHOWN}}}").as_str()));
        let asked = house.core.webhooks.update.asked_once().1;
        assert_eq!(asked.id, ID);
        assert_eq!(asked.update_mask.expect("a mask").paths, paths);
        assert_eq!(asked.unparsed, unparsed);
    }
}

#[tokio::test]
async fn the_rest_of_the_verbs() {
    let house = House::new();
    let hooks = &house.core.webhooks;
    hooks.list.answers(|| limited(ListWebhooksResponse { webhooks: vec![webhook(None)], has_more: false }));
    assert_eq!(house.get("/v1/webhooks").await.text(), format!("{{\"data\":[{SHOWN}}}],\"has_more\":false}}"));

    hooks.get.answers(|| Err(fault(ErrorCode::NotFound, "No webhook.", None)));
    house.get("/v1/webhooks/not-an-id").await.refused(404, "not_found");
    assert_eq!(hooks.get.asked_once().1.id, "not-an-id");
    house.get("/v1/webhooks/%FF").await.refused(404, "not_found");
    assert_eq!(hooks.get.asked_once().1.id, "");

    hooks.delete.answers(|| limited(DeleteWebhookResponse {}));
    let request = Request::delete(format!("/v1/webhooks/{ID}")).header("authorization", KEY);
    let reply = house.send(bare(request)).await;
    assert_eq!((reply.status.as_u16(), reply.text(), reply.header("content-type")), (204, "", ""));
    assert_eq!(hooks.delete.asked_once().1, DeleteWebhookRequest { id: ID.to_owned() });

    hooks.rotate.answers(|| limited(RotateWebhookSecretResponse { webhook: Some(webhook(Some("whsec_y"))) }));
    let reply = house.send(bare(post(&format!("/v1/webhooks/{ID}/rotate_secret")))).await;
    assert_eq!((reply.status.as_u16(), reply.json()["secret"].as_str()), (200, Some("whsec_y")));

    let shown = r#"{"id":"01990000-0000-7000-8000-000000000001","message_id":"msg_1","type":"grab.done","attempt":2,"status":"failed","status_code":500,"attempted_at":"2026-11-20T20:32:54.000Z","next_attempt_at":null}"#;
    hooks.test.answers(|| limited(TestWebhookResponse { delivery: Some(delivery()) }));
    let reply = house.send(bare(post(&format!("/v1/webhooks/{ID}/test")))).await;
    assert_eq!((reply.status.as_u16(), reply.text()), (202, shown));

    hooks.redeliver.answers(|| limited(RedeliverWebhookResponse { delivery: Some(delivery()) }));
    let reply = house.send(bare(post(&format!("/v1/webhooks/{ID}/deliveries/d/redeliver")))).await;
    assert_eq!((reply.status.as_u16(), reply.text()), (202, shown));
    let asked = hooks.redeliver.asked_once().1;
    assert_eq!(asked, RedeliverWebhookRequest { id: ID.to_owned(), delivery_id: "d".to_owned() });

    hooks.deliveries.answers(|| limited(ListDeliveriesResponse { deliveries: vec![delivery()], has_more: true }));
    let reply = house.get(&format!("/v1/webhooks/{ID}/deliveries?limit=1&starting_after=d&limit2=x")).await;
    assert_eq!(reply.text(), format!("{{\"data\":[{shown}],\"has_more\":true}}"));
    let next = format!("<https://grabd.example/v1/webhooks/{ID}/deliveries?limit=1&starting_after={ID}>; rel=\"next\"");
    assert_eq!(reply.header("link"), next);
    let asked = hooks.deliveries.asked_once().1;
    let starting_after = Some("d".to_owned());
    assert_eq!(asked, ListDeliveriesRequest { id: ID.to_owned(), limit: Some(1), starting_after, unparsed: vec![] });
    house.get(&format!("/v1/webhooks/{ID}/deliveries?limit=x")).await;
    assert_eq!(hooks.deliveries.asked_once().1.unparsed, [wrong("limit", "\"x\"")]);

    let reply = house.send(bare(Request::get(format!("/v1/webhooks/{ID}/test")).header("authorization", KEY))).await;
    assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, "POST, OPTIONS"));
}
