//! Request bodies of create and update.

use axum::body::Body;
use grabd_proto::v1::Unparsed;
use http::HeaderMap;

use super::super::body;
use super::super::call::unparsed;
use super::super::fields::Fields;
use super::super::json;

/// The parsed body. Malformed input is forwarded as `unparsed` instead of being rejected here, so that an invalid
/// credential and an exceeded limit are reported first.
#[derive(Default)]
pub(super) struct ProxyMembers {
    pub(super) name: Option<String>,
    pub(super) url: Option<String>,
    pub(super) username: Option<String>,
    pub(super) password: Option<String>,
    pub(super) unparsed: Vec<Unparsed>,
}

impl ProxyMembers {
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
        Self {
            name: fields.read("name", json::string),
            url: fields.read("url", json::string),
            username: fields.read("username", json::string),
            password: fields.read("password", json::string),
            unparsed: fields.unparsed,
        }
    }

    fn unparsed_body(seen: &str) -> Self {
        Self { unparsed: vec![unparsed("body", seen)], ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_read_member_by_member() {
        let members = ProxyMembers::parse(br#"{"name": "Office", "url": null, "username": 5, "more": true}"#);
        assert_eq!((members.name.as_deref(), members.url, members.password), (Some("Office"), None, None));
        let unparsed: Vec<&str> = members.unparsed.iter().map(|of| of.field.as_str()).collect();
        assert_eq!(unparsed, ["url", "username"]);
        assert_eq!(ProxyMembers::parse(b"[]").unparsed[0].field, "body");
    }
}
