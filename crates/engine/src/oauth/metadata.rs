//! Metadata of the authorization server (RFC 8414) and of the protected resources (RFC 9728).

use grabd_domain::oauth::{AuthMethod, OauthScope};
use serde_json::{Value, json};

use super::device_code;
use crate::service::Core;

/// A protected resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The MCP endpoint.
    Mcp,
    /// The REST API.
    Api,
    /// The whole service, for clients that know its origin only.
    Service,
}

/// Authorization server metadata (RFC 8414).
pub fn metadata(core: &Core) -> Value {
    let oauth = &core.oauth.settings;
    let (issuer, web) = (&oauth.issuer, &oauth.web_base_url);
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/oauth/authorize"),
        "token_endpoint": format!("{web}/oauth/token"),
        "registration_endpoint": format!("{web}/oauth/register"),
        "revocation_endpoint": format!("{web}/oauth/revoke"),
        "device_authorization_endpoint": format!("{web}/oauth/device_authorization"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", device_code::GRANT_TYPE],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": AuthMethod::ALL.map(AuthMethod::as_str),
        "revocation_endpoint_auth_methods_supported": AuthMethod::ALL.map(AuthMethod::as_str),
        "scopes_supported": names(&OauthScope::ALL),
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
    })
}

/// Protected resource metadata (RFC 9728).
pub fn resource_metadata(core: &Core, resource: Resource) -> Value {
    let oauth = &core.oauth.settings;
    let (name, scopes) = match resource {
        // No tool needs more. Many clients ask for all scopes that are listed.
        Resource::Mcp => (&oauth.mcp_url, &[OauthScope::Grabs][..]),
        Resource::Api => (&oauth.base_url, &OauthScope::ALL[..]),
        Resource::Service => (&oauth.origin, &OauthScope::ALL[..]),
    };
    json!({
        "resource": name,
        "authorization_servers": [oauth.issuer],
        "scopes_supported": names(scopes),
        "bearer_methods_supported": ["header"],
        "resource_name": "grabd",
    })
}

fn names(scopes: &[OauthScope]) -> Vec<&'static str> {
    scopes.iter().map(|scope| scope.as_str()).collect()
}
