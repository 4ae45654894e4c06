//! Operations on webhooks.

use grabd_proto::v1::ErrorCode;
use serde_json::{Value, json};
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::{Required, SchemaFormat};

use super::examples::EXAMPLE_ID;
use super::parts::{id, integer, json_content, managing, parameter, path, success_response, text};

const TAG: &str = "Webhooks";

/// All paths of webhooks.
pub(super) fn operations() -> Vec<(&'static str, PathItem)> {
    vec![
        path("/webhooks", [(HttpMethod::Post, create()), (HttpMethod::Get, list())]),
        path(
            "/webhooks/{id}",
            [(HttpMethod::Get, fetch()), (HttpMethod::Patch, update()), (HttpMethod::Delete, delete())],
        ),
        path("/webhooks/{id}/rotate_secret", [(HttpMethod::Post, rotate_secret())]),
        path("/webhooks/{id}/test", [(HttpMethod::Post, test())]),
        path("/webhooks/{id}/deliveries", [(HttpMethod::Get, deliveries())]),
        path("/webhooks/{id}/deliveries/{delivery_id}/redeliver", [(HttpMethod::Post, redeliver())]),
    ]
}

fn create() -> OperationBuilder {
    let about = "Registers a URL for signed messages about asynchronous live grabs that have ended. The `secret` is only \
                 returned in this response. A team may have ten webhooks in each environment.";
    let codes = [ErrorCode::BadRequest, ErrorCode::SsrfDetected];
    let example = json!({ "url": "https://example.com/hooks/grabd", "events": ["grab.done", "grab.failed"] });
    let registered = success_response("Registered, with its secret.", &["Location"])
        .content("application/json", json_content("Webhook", with_secret()).build());
    managing(TAG, "createWebhook", "Register a webhook", about, &codes)
        .request_body(Some(body("CreateWebhookRequest", example)))
        .response("201", registered)
}

fn list() -> OperationBuilder {
    let about = "The webhooks of the key's team and environment, newest first, all on one page. An app sees and changes \
                 only those that it has created, and they are deleted when its access ends.";
    let all = json!({ "data": [webhook()], "has_more": false });
    let page =
        success_response("All webhooks.", &[]).content("application/json", json_content("WebhookList", all).build());
    managing(TAG, "listWebhooks", "List webhooks", about, &[]).response("200", page)
}

fn fetch() -> OperationBuilder {
    let about = "One webhook, without its secret.";
    let response =
        success_response("The webhook.", &[]).content("application/json", json_content("Webhook", webhook()).build());
    managing(TAG, "getWebhook", "Fetch a webhook", about, &[ErrorCode::NotFound])
        .parameter(id("webhook"))
        .response("200", response)
}

fn update() -> OperationBuilder {
    let about =
        "Changes the members in the body. Disabling cancels pending deliveries; enabling clears earlier failures.";
    let codes = [ErrorCode::NotFound, ErrorCode::BadRequest, ErrorCode::SsrfDetected];
    let changed = success_response("The changed webhook.", &[])
        .content("application/json", json_content("Webhook", webhook()).build());
    managing(TAG, "updateWebhook", "Change a webhook", about, &codes)
        .parameter(id("webhook"))
        .request_body(Some(body("UpdateWebhookRequest", json!({ "status": "disabled" }))))
        .response("200", changed)
}

fn delete() -> OperationBuilder {
    let about = "Removes a webhook. Its pending deliveries are not sent.";
    managing(TAG, "deleteWebhook", "Remove a webhook", about, &[ErrorCode::NotFound])
        .parameter(id("webhook"))
        .response("204", success_response("The webhook is removed. No body.", &[]))
}

fn rotate_secret() -> OperationBuilder {
    let about = "Creates a new secret, which is only returned in this response. For 24 hours messages are also signed with \
                 the old one, so that you can switch without losing a message.";
    let rotated = success_response("The webhook with its new secret.", &[])
        .content("application/json", json_content("Webhook", with_secret()).build());
    managing(TAG, "rotateWebhookSecret", "Rotate the secret", about, &[ErrorCode::NotFound])
        .parameter(id("webhook"))
        .response("200", rotated)
}

fn test() -> OperationBuilder {
    let about = "Sends a `webhook.test` message at once. Test keys can do this too.";
    managing(TAG, "testWebhook", "Send a test", about, &[ErrorCode::NotFound, ErrorCode::BadRequest])
        .parameter(id("webhook"))
        .response("202", scheduled())
}

fn deliveries() -> OperationBuilder {
    let about = "The deliveries of the last 30 days, newest first. For the next page, send the id of the last delivery as \
                 `starting_after`, or follow the `Link` with `rel=\"next\"`.";
    let limit = integer(1, 100).default(Some(json!(25)));
    let cursor = text().format(Some(SchemaFormat::Custom("uuid".to_owned())));
    let page = json!({ "data": [delivery()], "has_more": true });
    managing(TAG, "listDeliveries", "List deliveries", about, &[ErrorCode::NotFound, ErrorCode::BadRequest])
        .parameter(id("webhook"))
        .parameter(parameter(ParameterIn::Query, "limit", "Maximum number of deliveries on the page.", limit, None))
        .parameter(parameter(
            ParameterIn::Query,
            "starting_after",
            "Only deliveries older than this one.",
            cursor,
            None,
        ))
        .response(
            "200",
            success_response("One page of deliveries.", &["Link"])
                .content("application/json", json_content("DeliveryList", page).build()),
        )
}

fn redeliver() -> OperationBuilder {
    let about = "Sends a message again at once: the same bytes with the same `webhook-id`.";
    managing(TAG, "redeliverWebhook", "Send a message again", about, &[ErrorCode::NotFound, ErrorCode::BadRequest])
        .parameter(id("webhook"))
        .parameter(delivery_id())
        .response("202", scheduled())
}

fn scheduled() -> utoipa::openapi::ResponseBuilder {
    success_response("The delivery is scheduled.", &[])
        .content("application/json", json_content("Delivery", delivery()).build())
}

fn body(schema: &str, example: Value) -> RequestBody {
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    body.content("application/json", json_content(schema, example).build()).build()
}

fn delivery_id() -> Parameter {
    ParameterBuilder::new()
        .name("delivery_id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("Id of the delivery."))
        .schema(Some(text().format(Some(SchemaFormat::Custom("uuid".to_owned())))))
        .example(Some(json!(EXAMPLE_ID)))
        .build()
}

fn webhook() -> Value {
    json!({
        "id": EXAMPLE_ID,
        "url": "https://example.com/hooks/grabd",
        "events": ["grab.done", "grab.failed"],
        "description": "",
        "status": "enabled",
        "created_at": "2026-11-21T09:30:12.480Z",
        "disabled_reason": null
    })
}

fn with_secret() -> Value {
    let mut webhook = webhook();
    webhook["secret"] = json!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=");
    webhook
}

fn delivery() -> Value {
    json!({
        "id": EXAMPLE_ID,
        "message_id": "msg_0199f3a17c527d0e9b7a3f0c5c1e2a44",
        "type": "grab.done",
        "attempt": 1,
        "status": "failed",
        "status_code": 500,
        "attempted_at": "2026-11-21T09:30:13.020Z",
        "next_attempt_at": "2026-11-21T09:30:18.110Z"
    })
}
