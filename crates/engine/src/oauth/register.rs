//! Dynamic client registration (RFC 7591). It is open to everybody: a client id grants nothing by itself, and the
//! metadata is shown to users as untrusted text.

use grabd_domain::credentials::ClientSecret;
use grabd_domain::oauth::{AuthMethod, ClientId, ClientMetadata, MetadataError, OauthScopes, RawMetadata, RedirectUri};
use grabd_store::oauth::NewClient;
use serde::Deserialize;
use serde_json::{Value, json};

use super::device_code::GRANT_TYPE;
use super::endpoint_error::EndpointError;
use crate::digest;
use crate::random;
use crate::service::Core;

/// Supported client metadata. Other members are ignored and not in the response.
#[derive(Deserialize)]
struct Body {
    client_name: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
    token_endpoint_auth_method: Option<String>,
}

/// Registers a client and returns the body of the 201 response. A secret is returned only here.
///
/// # Errors
/// The error response.
#[tracing::instrument(name = "oauth.register", skip_all)]
pub async fn register(core: &Core, body: &[u8]) -> Result<Value, EndpointError> {
    let bad = |error, description: String| EndpointError::bad(error, description);
    let body: Body = serde_json::from_slice(body).map_err(|error| {
        bad("invalid_client_metadata", format!("The body is not a client's metadata as JSON: {error}."))
    })?;
    let Body { client_name, redirect_uris, grant_types, response_types, token_endpoint_auth_method } = body;
    let raw = RawMetadata { client_name, redirect_uris, grant_types, response_types, token_endpoint_auth_method };
    let metadata = ClientMetadata::parse(&raw).map_err(|error| match error {
        MetadataError::RedirectUri(description) => bad("invalid_redirect_uri", description),
        MetadataError::Other(description) => bad("invalid_client_metadata", description),
    })?;
    let id = ClientId::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let secret = match metadata.auth_method {
        AuthMethod::None => None,
        AuthMethod::Basic | AuthMethod::Post => ClientSecret::new(&random::secret_text()),
    };
    let secret_hash = secret.as_ref().map(|secret| digest::of(secret.expose()));
    let now = core.clock.now();
    let response = response(&id, secret.as_ref(), &metadata, now.as_ms() / 1000);
    let max_unused = u64::from(core.oauth.settings.unused_clients);
    let forgotten = core.store.oauth().create_client(NewClient { id, secret_hash, metadata, now, max_unused }).await;
    let forgotten = forgotten?;
    if forgotten > 0 {
        tracing::warn!(max_unused, forgotten, "the oldest clients without a grant made room for a new one");
    }
    Ok(response)
}

/// The registered metadata, which may differ from the request.
fn response(id: &ClientId, secret: Option<&ClientSecret>, metadata: &ClientMetadata, issued_at: i64) -> Value {
    let ClientMetadata { name, redirect_uris, auth_method } = metadata;
    let redirect_uris: Vec<&str> = redirect_uris.iter().map(RedirectUri::as_str).collect();
    let mut response = json!({
        "client_id": id.as_str(),
        "client_id_issued_at": issued_at,
        "client_name": name,
        "redirect_uris": redirect_uris,
        "grant_types": ["authorization_code", "refresh_token", GRANT_TYPE],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth_method.as_str(),
        // What it may ask for. Whether it gets that is the decision of each user.
        "scope": OauthScopes::ALL.to_string(),
    });
    if let Some(secret) = secret {
        response["client_secret"] = secret.expose().into();
        // 0: it does not expire (RFC 7591 section 3.2.1).
        response["client_secret_expires_at"] = 0.into();
    }
    response
}
