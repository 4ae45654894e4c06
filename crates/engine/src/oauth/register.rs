//! An app registers (RFC 7591). Anybody may: what it gets is a name to ask with, and what it says is shown to people as
//! its own words.

use grabd_domain::credentials::ClientSecret;
use grabd_domain::oauth::{AuthMethod, ClientId, ClientMetadata, MetadataError, RawMetadata, RedirectUri, SCOPE};
use grabd_store::NewClient;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chance;
use crate::core::{Core, inside};
use crate::digest;

/// Why an app was not registered (RFC 7591 section 3.2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrationError {
    /// 400 or 500.
    pub status: u16,
    /// The error's word.
    pub error: &'static str,
    /// A sentence for whoever writes the app.
    pub description: String,
}

/// What an app may say. Whatever else it says is left out of the answer.
#[derive(Deserialize)]
struct Body {
    client_name: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
    token_endpoint_auth_method: Option<String>,
}

/// Registers an app; the body of the 201. A secret is in it once and never again.
///
/// # Errors
/// What the app is told.
pub async fn register(core: &Core, body: &[u8]) -> Result<Value, RegistrationError> {
    let bad = |error, description| RegistrationError { status: 400, error, description };
    let body: Body = serde_json::from_slice(body).map_err(|error| {
        bad("invalid_client_metadata", format!("The body is not a client's metadata as JSON: {error}."))
    })?;
    let Body { client_name, redirect_uris, grant_types, response_types, token_endpoint_auth_method } = body;
    let raw = RawMetadata { client_name, redirect_uris, grant_types, response_types, token_endpoint_auth_method };
    let metadata = ClientMetadata::parse(&raw).map_err(|error| match error {
        MetadataError::RedirectUri(description) => bad("invalid_redirect_uri", description),
        MetadataError::Other(description) => bad("invalid_client_metadata", description),
    })?;
    let id = ClientId::new(&chance::secret_text()).expect("32 bytes are 43 base64url characters");
    let secret = match metadata.auth_method {
        AuthMethod::None => None,
        AuthMethod::Basic | AuthMethod::Post => ClientSecret::new(&chance::secret_text()),
    };
    let secret_hash = secret.as_ref().map(|secret| digest::of(secret.expose()));
    let now = core.clock.now();
    let answer = answer(&id, secret.as_ref(), &metadata, now.as_ms() / 1000);
    core.store.create_client(NewClient { id, secret_hash, metadata, now }).await.map_err(|error| {
        let description = inside("oauth.register")(error).to_string();
        RegistrationError { status: 500, error: "server_error", description }
    })?;
    Ok(answer)
}

/// What was registered, which is not always what was asked for.
fn answer(id: &ClientId, secret: Option<&ClientSecret>, metadata: &ClientMetadata, issued_at: i64) -> Value {
    let ClientMetadata { name, redirect_uris, auth_method } = metadata;
    let redirect_uris: Vec<&str> = redirect_uris.iter().map(RedirectUri::as_str).collect();
    let mut answer = json!({
        "client_id": id.as_str(),
        "client_id_issued_at": issued_at,
        "client_name": name,
        "redirect_uris": redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth_method.as_str(),
        "scope": SCOPE,
    });
    if let Some(secret) = secret {
        answer["client_secret"] = secret.expose().into();
        // It does not expire.
        answer["client_secret_expires_at"] = 0.into();
    }
    answer
}
