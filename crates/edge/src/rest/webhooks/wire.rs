//! JSON representation of endpoints and deliveries.

use grabd_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{Object, ObjectBuilder, Type};

use super::super::wire::Rfc3339;

/// A URL that receives messages when asynchronous live grabs have ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub(in super::super) struct Webhook<'a> {
    /// Id of the webhook.
    #[schema(format = "uuid")]
    id: &'a str,
    /// URL that receives the messages.
    #[schema(format = "uri")]
    url: &'a str,
    /// Event types to send: `grab.done`, `grab.failed`, `grab.changed`, `credits.low`, `monitor.changed`, `monitor.failed`,
    /// `monitor.recovered`, `site.finished`, or `*` for all.
    events: &'a [String],
    /// Free text.
    description: &'a str,
    /// Whether messages are sent.
    #[schema(schema_with = webhook_status_schema)]
    status: &'static str,
    /// Time of registration.
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    /// Why the webhook is disabled: `requested`, `gone` after a 410 response, or `failing` after five days of failures.
    disabled_reason: Option<&'a str>,
    /// Signing secret. Only in the responses that create the webhook or rotate its secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    secret: Option<&'a str>,
}

/// The webhooks of the key's team and environment, newest first; ten at most.
#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct WebhookList<'a> {
    /// The webhooks.
    pub(super) data: Vec<Webhook<'a>>,
    /// Always false.
    pub(super) has_more: bool,
}

/// One message to one webhook.
#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct Delivery<'a> {
    /// Id of the delivery.
    #[schema(format = "uuid")]
    id: &'a str,
    /// Id of the message, the same at every attempt: the `webhook-id` header.
    message_id: &'a str,
    /// Event type.
    #[serde(rename = "type")]
    kind: &'a str,
    /// Attempts so far.
    #[schema(minimum = 0)]
    attempt: i32,
    /// State of the delivery. `delivered` and `exhausted` are final.
    #[schema(schema_with = delivery_status_schema)]
    status: &'static str,
    /// HTTP status of the last attempt; null if there was no response.
    status_code: Option<i32>,
    /// Time of the last attempt.
    #[schema(value_type = Option<String>, format = DateTime)]
    attempted_at: Option<Rfc3339>,
    /// Time of the next attempt.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_attempt_at: Option<Rfc3339>,
    /// Why the last attempt got no response: `refused` (the address is not public), `unresolved`, `unreachable`, `tls`,
    /// `http` or `timed_out`. `too_many_open`: no attempt is made, because too many messages of the account wait; it can be
    /// sent again later. Null otherwise.
    error: Option<&'a str>,
}

/// The deliveries to a webhook within 30 days, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct DeliveryList<'a> {
    /// The deliveries.
    pub(super) data: Vec<Delivery<'a>>,
    /// Whether there are older ones.
    pub(super) has_more: bool,
}

/// Converts an endpoint. `None` if a required field is missing.
pub(super) fn webhook(webhook: &v1::Webhook) -> Option<Webhook<'_>> {
    let v1::Webhook { id, url, events, description, status: _, created_at, secret, disabled_reason } = webhook;
    Some(Webhook {
        id,
        url,
        events,
        description,
        status: webhook_name(webhook.status())?,
        created_at: Rfc3339::from_proto(created_at.as_ref()?)?,
        disabled_reason: disabled_reason.as_deref(),
        secret: secret.as_deref(),
    })
}

/// Converts a delivery. `None` if a required field is missing.
pub(super) fn delivery(delivery: &v1::Delivery) -> Option<Delivery<'_>> {
    let v1::Delivery { id, message_id, r#type, attempt, status: _, status_code, attempted_at, next_attempt_at, error } =
        delivery;
    Some(Delivery {
        id,
        message_id,
        kind: r#type,
        attempt: *attempt,
        status: delivery_name(delivery.status())?,
        status_code: *status_code,
        attempted_at: attempted_at.as_ref().and_then(Rfc3339::from_proto),
        next_attempt_at: next_attempt_at.as_ref().and_then(Rfc3339::from_proto),
        error: error.as_deref(),
    })
}

/// Parses the name of a status.
pub(super) fn parse_status(word: &str) -> Option<v1::WebhookStatus> {
    [v1::WebhookStatus::Enabled, v1::WebhookStatus::Disabled]
        .into_iter()
        .find(|status| webhook_name(*status) == Some(word))
}

fn webhook_name(status: v1::WebhookStatus) -> Option<&'static str> {
    match status {
        v1::WebhookStatus::Unspecified => None,
        v1::WebhookStatus::Enabled => Some("enabled"),
        v1::WebhookStatus::Disabled => Some("disabled"),
    }
}

fn delivery_name(status: v1::DeliveryStatus) -> Option<&'static str> {
    match status {
        v1::DeliveryStatus::Unspecified => None,
        v1::DeliveryStatus::Pending => Some("pending"),
        v1::DeliveryStatus::Delivered => Some("delivered"),
        v1::DeliveryStatus::Failed => Some("failed"),
        v1::DeliveryStatus::Exhausted => Some("exhausted"),
    }
}

fn webhook_status_schema() -> Object {
    string_enum(&["enabled", "disabled"])
}

fn delivery_status_schema() -> Object {
    string_enum(&["pending", "delivered", "failed", "exhausted"])
}

fn string_enum(values: &[&str]) -> Object {
    ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).enum_values(Some(values.iter().copied())).build()
}
