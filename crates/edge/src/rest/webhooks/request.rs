//! The bodies of a create and of a change.

use axum::body::Body;
use grabd_proto::v1::{Unparsed, Webhook, WebhookStatus};
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Version};
use serde_json::value::RawValue;

use super::super::body::{self, Refused};
use super::super::call::unparsed;
use super::super::fields::Fields;
use super::super::json;
use super::wire;

/// What a body says of an endpoint. Nothing malformed is refused here: it goes on as "unparsed", so that a bad
/// credential and an empty limit are told first.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) url: Option<String>,
    pub(super) events: Option<Vec<String>>,
    pub(super) description: Option<String>,
    pub(super) status: Option<WebhookStatus>,
    pub(super) unparsed: Vec<Unparsed>,
}

impl Asked {
    /// Of a request's body, and whether some of that was left unread.
    pub(super) async fn read(parts: &Parts, body: Body) -> (Self, bool) {
        match body::read(&parts.headers, body, body::LIMIT_BYTES).await {
            Ok(bytes) => (Self::of(&bytes), false),
            Err(Refused { seen, unread, why: _ }) => (Self::unusable(&seen), unread),
        }
    }

    fn of(body: &[u8]) -> Self {
        let mut fields = match Fields::of(body) {
            Ok(fields) => fields,
            Err(seen) => return Self::unusable(&seen),
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

    fn unusable(seen: &str) -> Self {
        Self { unparsed: vec![unparsed("body", seen)], ..Self::default() }
    }

    /// As a change: the new values, and the names of those that are meant.
    pub(super) fn into_change(self) -> (Webhook, Vec<String>, Vec<Unparsed>) {
        let Self { url, events, description, status, unparsed } = self;
        let named = [
            ("url", url.is_some()),
            ("events", events.is_some()),
            ("description", description.is_some()),
            ("status", status.is_some()),
        ];
        let paths = named.iter().filter(|(_, there)| *there).map(|(name, _)| (*name).to_owned()).collect();
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

/// More of the body may be under way, so that the connection is of no further use.
pub(super) fn close_if(unread: bool, version: Version, headers: &mut http::HeaderMap) {
    if unread && version < Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
}
