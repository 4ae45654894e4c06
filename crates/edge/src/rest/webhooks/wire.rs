//! What endpoints and deliveries look like in JSON.

use grabd_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{Object, ObjectBuilder, Type};

use super::super::wire::Moment;

/// An endpoint that is told when asynchronous live grabs have ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub(in super::super) struct Webhook<'a> {
    /// Id of the webhook.
    #[schema(format = "uuid")]
    id: &'a str,
    /// Where messages go.
    #[schema(format = "uri")]
    url: &'a str,
    /// What it is told: `grab.done`, `grab.failed`, or `*` for all.
    events: &'a [String],
    /// For people.
    description: &'a str,
    /// Does it get messages?
    #[schema(schema_with = webhook_statuses)]
    status: &'static str,
    /// When it was registered.
    #[schema(value_type = String, format = DateTime)]
    created_at: Moment,
    /// Why it gets none: `requested`, `gone` because it answered 410, or `failing` because it failed for five days.
    disabled_reason: Option<&'a str>,
    /// What signs its messages. Only in the answers that create the webhook or rotate its secret.
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
    /// What the message is about.
    #[serde(rename = "type")]
    kind: &'a str,
    /// Attempts so far.
    #[schema(minimum = 0)]
    attempt: i32,
    /// How it stands. After `delivered` and `exhausted` nothing more is sent.
    #[schema(schema_with = delivery_statuses)]
    status: &'static str,
    /// HTTP status of the last attempt; null when there was no answer.
    status_code: Option<i32>,
    /// When the last attempt was made.
    #[schema(value_type = Option<String>, format = DateTime)]
    attempted_at: Option<Moment>,
    /// When the next one will be.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_attempt_at: Option<Moment>,
}

/// What was sent to a webhook within 30 days, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct DeliveryList<'a> {
    /// The deliveries.
    pub(super) data: Vec<Delivery<'a>>,
    /// Are there older ones?
    pub(super) has_more: bool,
}

/// An endpoint; none when the core left out what it must tell.
pub(super) fn webhook(webhook: &v1::Webhook) -> Option<Webhook<'_>> {
    let v1::Webhook { id, url, events, description, status: _, created_at, secret, disabled_reason } = webhook;
    Some(Webhook {
        id,
        url,
        events,
        description,
        status: webhook_word(webhook.status())?,
        created_at: Moment::of(created_at.as_ref()?)?,
        disabled_reason: disabled_reason.as_deref(),
        secret: secret.as_deref(),
    })
}

/// A delivery; none when the core left out what it must tell.
pub(super) fn delivery(delivery: &v1::Delivery) -> Option<Delivery<'_>> {
    let v1::Delivery { id, message_id, r#type, attempt, status: _, status_code, attempted_at, next_attempt_at } =
        delivery;
    Some(Delivery {
        id,
        message_id,
        kind: r#type,
        attempt: *attempt,
        status: delivery_word(delivery.status())?,
        status_code: *status_code,
        attempted_at: attempted_at.as_ref().and_then(Moment::of),
        next_attempt_at: next_attempt_at.as_ref().and_then(Moment::of),
    })
}

/// The status behind a word.
pub(super) fn parse_status(word: &str) -> Option<v1::WebhookStatus> {
    [v1::WebhookStatus::Enabled, v1::WebhookStatus::Disabled]
        .into_iter()
        .find(|status| webhook_word(*status) == Some(word))
}

fn webhook_word(status: v1::WebhookStatus) -> Option<&'static str> {
    match status {
        v1::WebhookStatus::Unspecified => None,
        v1::WebhookStatus::Enabled => Some("enabled"),
        v1::WebhookStatus::Disabled => Some("disabled"),
    }
}

fn delivery_word(status: v1::DeliveryStatus) -> Option<&'static str> {
    match status {
        v1::DeliveryStatus::Unspecified => None,
        v1::DeliveryStatus::Pending => Some("pending"),
        v1::DeliveryStatus::Delivered => Some("delivered"),
        v1::DeliveryStatus::Failed => Some("failed"),
        v1::DeliveryStatus::Exhausted => Some("exhausted"),
    }
}

fn webhook_statuses() -> Object {
    words(&["enabled", "disabled"])
}

fn delivery_statuses() -> Object {
    words(&["pending", "delivered", "failed", "exhausted"])
}

fn words(words: &[&str]) -> Object {
    ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).enum_values(Some(words.iter().copied())).build()
}
