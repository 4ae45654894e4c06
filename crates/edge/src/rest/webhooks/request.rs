//! Request bodies of create and update.

use axum::body::Body;
use grabd_proto::v1::{Unparsed, Webhook, WebhookStatus};
use http::HeaderMap;
use serde_json::value::RawValue;

use super::super::body;
use super::super::call::unparsed;
use super::super::fields::Fields;
use super::super::json;
use super::wire;

/// The parsed body. Malformed input is forwarded as `unparsed` instead of being rejected here, so that an invalid
/// credential and an exceeded limit are reported first.
#[derive(Debug, Default)]
pub(super) struct EndpointRequest {
    pub(super) url: Option<String>,
    pub(super) events: Option<Vec<String>>,
    pub(super) description: Option<String>,
    pub(super) status: Option<WebhookStatus>,
    pub(super) unparsed: Vec<Unparsed>,
}

impl EndpointRequest {
    /// Reads a body.
    pub(super) async fn read(headers: &HeaderMap, body: Body) -> Self {
        match body::read(headers, body, body::MAX_BODY_BYTES).await {
            Ok(bytes) => Self::parse(&bytes),
            Err(error) => Self::unparsed_body(&error.seen),
        }
    }

    fn parse(body: &[u8]) -> Self {
        let mut fields = match Fields::parse(body) {
            Ok(fields) => fields,
            Err(seen) => return Self::unparsed_body(&seen),
        };
        let status = |value: &RawValue| wire::parse_status(&json::string(value)?);
        Self {
            url: fields.read("url", json::string),
            events: fields.read("events", json::strings),
            description: fields.read("description", json::string),
            status: fields.read("status", status),
            unparsed: fields.unparsed,
        }
    }

    fn unparsed_body(seen: &str) -> Self {
        Self { unparsed: vec![unparsed("body", seen)], ..Self::default() }
    }

    /// Converts to an update: the new values, the field mask paths and the unparsed fields.
    pub(super) fn into_change(self) -> (Webhook, Vec<String>, Vec<Unparsed>) {
        let Self { url, events, description, status, unparsed } = self;
        let named = [
            ("url", url.is_some()),
            ("events", events.is_some()),
            ("description", description.is_some()),
            ("status", status.is_some()),
        ];
        let paths = named.iter().filter(|(_, present)| *present).map(|(name, _)| (*name).to_owned()).collect();
        let webhook = Webhook {
            url: url.unwrap_or_default(),
            events: events.unwrap_or_default(),
            description: description.unwrap_or_default(),
            status: status.unwrap_or_default().into(),
            ..Webhook::default()
        };
        (webhook, paths, unparsed)
    }
}
