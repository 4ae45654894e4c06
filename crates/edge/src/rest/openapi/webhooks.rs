//! The operations on webhooks.

use grabd_proto::v1::ErrorCode;
use serde_json::{Value, json};
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::{Required, SchemaFormat};

use super::parts::{EXAMPLE_ID, answer, id, integer, json_of, keyed, parameter, path, text};

const TAG: &str = "Webhooks";

/// Every path of webhooks.
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
    let about = "Registers an address for signed messages about asynchronous live grabs that have ended. The `secret` is in \
                 this answer and never again. A team may have ten in each environment.";
    let codes = [ErrorCode::BadRequest, ErrorCode::SsrfDetected];
    let example = json!({ "url": "https://example.com/hooks/grabd", "events": ["grab.done", "grab.failed"] });
    let registered = answer("Registered, with its secret.", &["Location"])
        .content("application/json", json_of("Webhook", with_secret()).build());
    keyed(TAG, "createWebhook", "Register a webhook", about, &codes)
        .request_body(Some(body("CreateWebhookRequest", example)))
        .response("201", registered)
}

fn list() -> OperationBuilder {
    let about = "The webhooks of the key's team and environment, newest first, all on one page.";
    let all = json!({ "data": [webhook()], "has_more": false });
    let page = answer("All of them.", &[]).content("application/json", json_of("WebhookList", all).build());
    keyed(TAG, "listWebhooks", "List webhooks", about, &[]).response("200", page)
}

fn fetch() -> OperationBuilder {
    let about = "One webhook, without its secret.";
    let found = answer("The webhook.", &[]).content("application/json", json_of("Webhook", webhook()).build());
    keyed(TAG, "getWebhook", "Fetch a webhook", about, &[ErrorCode::NotFound])
        .parameter(id("webhook"))
        .response("200", found)
}

fn update() -> OperationBuilder {
    let about = "Changes the members that the body has. Disabling cancels what was still to be sent; enabling forgives what \
                 has failed.";
    let codes = [ErrorCode::NotFound, ErrorCode::BadRequest, ErrorCode::SsrfDetected];
    let changed = answer("As it is now.", &[]).content("application/json", json_of("Webhook", webhook()).build());
    keyed(TAG, "updateWebhook", "Change a webhook", about, &codes)
        .parameter(id("webhook"))
        .request_body(Some(body("UpdateWebhookRequest", json!({ "status": "disabled" }))))
        .response("200", changed)
}

fn delete() -> OperationBuilder {
    let about = "Removes a webhook; what was still to be sent to it is not sent.";
    keyed(TAG, "deleteWebhook", "Remove a webhook", about, &[ErrorCode::NotFound])
        .parameter(id("webhook"))
        .response("204", answer("It is removed. No body.", &[]))
}

fn rotate_secret() -> OperationBuilder {
    let about = "Makes a new secret, which is in this answer and never again. For 24 hours the old one signs too, so that \
                 you can change over without losing a message.";
    let rotated =
        answer("With the new secret.", &[]).content("application/json", json_of("Webhook", with_secret()).build());
    keyed(TAG, "rotateWebhookSecret", "Make a new secret", about, &[ErrorCode::NotFound])
        .parameter(id("webhook"))
        .response("200", rotated)
}

fn test() -> OperationBuilder {
    let about = "Sends a `webhook.test` message at once. Test keys can do this too.";
    keyed(TAG, "testWebhook", "Send a test", about, &[ErrorCode::NotFound, ErrorCode::BadRequest])
        .parameter(id("webhook"))
        .response("202", on_its_way())
}

fn deliveries() -> OperationBuilder {
    let about = "What was sent within 30 days, newest first, with the state of each message. For the next page, send the id \
                 of the last delivery as `starting_after`, or follow the `Link` with `rel=\"next\"`.";
    let limit = integer(1, 100).default(Some(json!(25)));
    let cursor = text().format(Some(SchemaFormat::Custom("uuid".to_owned())));
    let page = json!({ "data": [delivery()], "has_more": true });
    keyed(TAG, "listDeliveries", "List deliveries", about, &[ErrorCode::NotFound, ErrorCode::BadRequest])
        .parameter(id("webhook"))
        .parameter(parameter(ParameterIn::Query, "limit", "Most deliveries on the page.", limit, None))
        .parameter(parameter(
            ParameterIn::Query,
            "starting_after",
            "Only deliveries older than this one.",
            cursor,
            None,
        ))
        .response(
            "200",
            answer("One page of deliveries.", &["Link"])
                .content("application/json", json_of("DeliveryList", page).build()),
        )
}

fn redeliver() -> OperationBuilder {
    let about = "Sends a message once more, now: the same bytes under the same `webhook-id`.";
    keyed(TAG, "redeliverWebhook", "Send a message again", about, &[ErrorCode::NotFound, ErrorCode::BadRequest])
        .parameter(id("webhook"))
        .parameter(delivery_id())
        .response("202", on_its_way())
}

fn on_its_way() -> utoipa::openapi::ResponseBuilder {
    answer("The message is on its way.", &[]).content("application/json", json_of("Delivery", delivery()).build())
}

fn body(schema: &str, example: Value) -> RequestBody {
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    body.content("application/json", json_of(schema, example).build()).build()
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
