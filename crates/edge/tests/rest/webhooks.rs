//! `/v1/webhooks`.

use axum::body::Body;
use grabd_proto::v1::{
    CreateWebhookRequest, CreateWebhookResponse, DeleteWebhookRequest, DeleteWebhookResponse, Delivery, DeliveryStatus,
    ErrorCode, ListDeliveriesRequest, ListDeliveriesResponse, ListWebhooksResponse, RedeliverWebhookRequest,
    RedeliverWebhookResponse, RotateWebhookSecretResponse, TestWebhookResponse, Unparsed, UpdateWebhookResponse,
    Webhook, WebhookStatus,
};
use http::Request;

use crate::support::{KEY, STATE, TestApp, error_status, post, with_limit_headers, without_body};

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
        error: Some("timed_out".to_owned()),
    }
}

fn unparsed_field(field: &str, seen: &str) -> Unparsed {
    Unparsed { field: field.to_owned(), seen: seen.to_owned() }
}

fn patch(body: &str) -> Request<Body> {
    let request = Request::patch(format!("/v1/webhooks/{ID}")).header("authorization", KEY);
    request.header("content-type", "application/json").body(Body::from(body.to_owned())).expect("a request")
}

const WEBHOOK_JSON: &str = r#"{"id":"01990000-0000-7000-8000-000000000001","url":"https://example.com/hook","events":["grab.done"],"description":"prod","status":"enabled","created_at":"2026-11-20T20:32:54.120Z","disabled_reason":null"#;

#[tokio::test]
async fn create_registers_an_endpoint_and_returns_its_secret() {
    for app in TestApp::both().await {
        let script = || with_limit_headers(CreateWebhookResponse { webhook: Some(webhook(Some("whsec_x"))) });
        app.core.webhooks.create.respond_with(script);
        for (body, url, events, description, unparsed) in [
            (
                r#"{"url":"https://example.com/hook","events":["grab.done"],"description":"prod","status":1,"x":[]}"#,
                Some("https://example.com/hook"),
                vec!["grab.done"],
                Some("prod"),
                vec![],
            ),
            (
                r#"{"url":5,"events":"*"}"#,
                None,
                vec![],
                None,
                vec![unparsed_field("url", "5"), unparsed_field("events", "\"*\"")],
            ),
            ("[]", None, vec![], None, vec![unparsed_field("body", "[]")]),
        ] {
            let request = post("/v1/webhooks").body(Body::from(body)).expect("a request");
            let response = app.send(request).await;
            assert_eq!(response.status, 201, "{}", response.text());
            assert_eq!(response.text(), format!("{WEBHOOK_JSON},\"secret\":\"whsec_x\"}}"));
            assert_eq!(response.header("location"), format!("/v1/webhooks/{ID}"));
            assert_eq!((response.header("cache-control"), response.header("ratelimit")), ("private, no-store", STATE));
            let received = app.core.webhooks.create.take_request().1;
            let events = events.into_iter().map(str::to_owned).collect();
            let (url, description) = (url.map(str::to_owned), description.map(str::to_owned));
            assert_eq!(received, CreateWebhookRequest { url, events, description, unparsed });
        }
        app.core.webhooks.create.respond_with(|| Err(error_status(ErrorCode::SsrfDetected, "No.", None)));
        let request = post("/v1/webhooks").body(Body::from("{}")).expect("a request");
        assert_eq!(app.send(request).await.assert_error(400, "ssrf_detected"), "No.");
    }
}

#[tokio::test]
async fn update_only_changes_members_in_the_body() {
    let app = TestApp::new();
    app.core
        .webhooks
        .update
        .respond_with(|| with_limit_headers(UpdateWebhookResponse { webhook: Some(webhook(None)) }));
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
            vec![unparsed_field("description", "null"), unparsed_field("status", "\"paused\"")],
        ),
    ] {
        let response = app.send(patch(body)).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, format!("{WEBHOOK_JSON}}}").as_str()));
        let received = app.core.webhooks.update.take_request().1;
        assert_eq!(received.id, ID);
        assert_eq!(received.update_mask.expect("a mask").paths, paths);
        assert_eq!(received.unparsed, unparsed);
    }
}

#[tokio::test]
async fn other_webhook_operations_translate_requests_and_responses() {
    let app = TestApp::new();
    let hooks = &app.core.webhooks;
    hooks
        .list
        .respond_with(|| with_limit_headers(ListWebhooksResponse { webhooks: vec![webhook(None)], has_more: false }));
    assert_eq!(app.get("/v1/webhooks").await.text(), format!("{{\"data\":[{WEBHOOK_JSON}}}],\"has_more\":false}}"));

    hooks.get.respond_with(|| Err(error_status(ErrorCode::NotFound, "No webhook.", None)));
    app.get("/v1/webhooks/not-an-id").await.assert_error(404, "not_found");
    assert_eq!(hooks.get.take_request().1.id, "not-an-id");
    app.get("/v1/webhooks/%FF").await.assert_error(404, "not_found");
    assert_eq!(hooks.get.take_request().1.id, "");

    hooks.delete.respond_with(|| with_limit_headers(DeleteWebhookResponse {}));
    let request = Request::delete(format!("/v1/webhooks/{ID}")).header("authorization", KEY);
    let response = app.send(without_body(request)).await;
    assert_eq!((response.status.as_u16(), response.text(), response.header("content-type")), (204, "", ""));
    assert_eq!(hooks.delete.take_request().1, DeleteWebhookRequest { id: ID.to_owned() });

    hooks
        .rotate
        .respond_with(|| with_limit_headers(RotateWebhookSecretResponse { webhook: Some(webhook(Some("whsec_y"))) }));
    let response = app.send(without_body(post(&format!("/v1/webhooks/{ID}/rotate_secret")))).await;
    assert_eq!((response.status.as_u16(), response.json()["secret"].as_str()), (200, Some("whsec_y")));

    let delivery_json = r#"{"id":"01990000-0000-7000-8000-000000000001","message_id":"msg_1","type":"grab.done","attempt":2,"status":"failed","status_code":500,"attempted_at":"2026-11-20T20:32:54.000Z","next_attempt_at":null,"error":"timed_out"}"#;
    hooks.test.respond_with(|| with_limit_headers(TestWebhookResponse { delivery: Some(delivery()) }));
    let response = app.send(without_body(post(&format!("/v1/webhooks/{ID}/test")))).await;
    assert_eq!((response.status.as_u16(), response.text()), (202, delivery_json));

    hooks.redeliver.respond_with(|| with_limit_headers(RedeliverWebhookResponse { delivery: Some(delivery()) }));
    let response = app.send(without_body(post(&format!("/v1/webhooks/{ID}/deliveries/d/redeliver")))).await;
    assert_eq!((response.status.as_u16(), response.text()), (202, delivery_json));
    let received = hooks.redeliver.take_request().1;
    assert_eq!(received, RedeliverWebhookRequest { id: ID.to_owned(), delivery_id: "d".to_owned() });

    hooks
        .deliveries
        .respond_with(|| with_limit_headers(ListDeliveriesResponse { deliveries: vec![delivery()], has_more: true }));
    let response = app.get(&format!("/v1/webhooks/{ID}/deliveries?limit=1&starting_after=d&limit2=x")).await;
    assert_eq!(response.text(), format!("{{\"data\":[{delivery_json}],\"has_more\":true}}"));
    let next = format!("<https://grabd.example/v1/webhooks/{ID}/deliveries?limit=1&starting_after={ID}>; rel=\"next\"");
    assert_eq!(response.header("link"), next);
    let received = hooks.deliveries.take_request().1;
    let starting_after = Some("d".to_owned());
    assert_eq!(received, ListDeliveriesRequest { id: ID.to_owned(), limit: Some(1), starting_after, unparsed: vec![] });
    app.get(&format!("/v1/webhooks/{ID}/deliveries?limit=x")).await;
    assert_eq!(hooks.deliveries.take_request().1.unparsed, [unparsed_field("limit", "\"x\"")]);

    let response =
        app.send(without_body(Request::get(format!("/v1/webhooks/{ID}/test")).header("authorization", KEY))).await;
    assert_eq!((response.status.as_u16(), response.header("allow")), (405, "POST, OPTIONS"));
}
