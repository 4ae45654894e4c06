//! The token endpoint: exchange of codes and refresh tokens.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use grabd_domain::credentials::{AccessToken, AuthorizationCode, ClientSecret, RefreshToken};
use grabd_domain::oauth::{AuthMethod, Challenge, ClientId, OauthScopes, Resources, ScopeError, Verifier};
use grabd_store::oauth::{Exchange, NewTokenPair, Refresh, TokenOutcome};
use serde::Serialize;

use super::form::{Fields, Form, RepeatedField};
use crate::service::Core;
use crate::digest;
use crate::error::Error;
use crate::random;

/// A token response (RFC 6749 section 5.1).
#[derive(Clone, Serialize)]
pub struct Tokens {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
    refresh_token: String,
    scope: String,
}

/// An error response of the token or revocation endpoint (RFC 6749 section 5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenError {
    /// 400, 401 with a Basic challenge, or 500.
    pub status: u16,
    /// The error code.
    pub error: &'static str,
    /// A sentence for the developer of the app.
    pub description: String,
}

impl TokenError {
    fn bad(error: &'static str, description: impl Into<String>) -> Self {
        Self { status: 400, error, description: description.into() }
    }

    pub(super) fn invalid_request(description: impl Into<String>) -> Self {
        Self::bad("invalid_request", description)
    }

    pub(super) fn invalid_grant(description: impl Into<String>) -> Self {
        Self::bad("invalid_grant", description)
    }

    fn invalid_client(description: impl Into<String>) -> Self {
        Self { status: 401, error: "invalid_client", description: description.into() }
    }
}

impl<E> From<E> for TokenError
where
    Error: From<E>,
{
    /// The token endpoint is a boundary: the cause is logged here, and hidden from the client.
    #[track_caller]
    fn from(cause: E) -> Self {
        let description = Error::from(cause).into_fault().to_string();
        Self { status: 500, error: "server_error", description }
    }
}

impl From<RepeatedField> for TokenError {
    fn from(field: RepeatedField) -> Self {
        Self::invalid_request(field.description())
    }
}

impl From<ScopeError> for TokenError {
    fn from(error: ScopeError) -> Self {
        Self::bad("invalid_scope", error.to_string())
    }
}

/// Handles a request to the token endpoint. `authorization` is the value of the `Authorization` header.
///
/// # Errors
/// The error response.
#[tracing::instrument(name = "oauth.token", skip_all)]
pub async fn token(core: &Core, form: &Fields, authorization: Option<&str>) -> Result<Tokens, TokenError> {
    let form = Form(form);
    let grant_type = form.one("grant_type")?;
    let client = authenticate(core, form, authorization).await?;
    let (pair, tokens) = generate_pair();
    let exchanged = match grant_type {
        Some("authorization_code") => exchange(core, form, client, pair).await?,
        Some("refresh_token") => refresh(core, form, client, pair).await?,
        Some(_) => {
            let known = "`grant_type` must be authorization_code or refresh_token.";
            return Err(TokenError::bad("unsupported_grant_type", known));
        }
        None => return Err(TokenError::invalid_request("`grant_type` is missing.")),
    };
    match exchanged {
        TokenOutcome::Issued { grant, scopes, expires_at } => {
            tracing::info!(grant.id = %grant, "tokens issued");
            let expires_in = expires_at.since(core.clock.now()).as_secs();
            let (access_token, refresh_token) = tokens;
            let scope = scopes.to_string();
            Ok(Tokens { access_token, token_type: "Bearer", expires_in, refresh_token, scope })
        }
        TokenOutcome::Invalid(why) => {
            tracing::info!(why, "token request refused");
            Err(unusable())
        }
        TokenOutcome::InvalidTarget => Err(TokenError::bad("invalid_target", INVALID_TARGET)),
        TokenOutcome::InvalidScope => Err(ScopeError.into()),
        TokenOutcome::Replayed(grant) => {
            tracing::warn!(grant.id = %grant, "code or refresh token reused; grant revoked");
            Err(unusable())
        }
    }
}

const INVALID_TARGET: &str = "`resource` names something that is not here or was not allowed.";

/// One error for every reason, so that a thief of a token learns nothing.
fn unusable() -> TokenError {
    TokenError::invalid_grant("The code or refresh token is unknown, used, too old, revoked, or not for this client.")
}

async fn exchange(
    core: &Core,
    form: Form<'_>,
    client: ClientId,
    pair: NewTokenPair,
) -> Result<TokenOutcome, TokenError> {
    let missing = |name: &str| TokenError::invalid_request(format!("`{name}` is missing."));
    let code = form.one("code")?.ok_or_else(|| missing("code"))?;
    // OAuth 2.1 does not require `redirect_uri`, since PKCE is stronger. If an app sends it, it must match.
    let redirect = form.one("redirect_uri")?.map(str::to_owned);
    let verifier = form.one("code_verifier")?.ok_or_else(|| missing("code_verifier"))?;
    let resources = resources(core, form)?;
    let verifier = Verifier::parse(verifier).ok_or_else(unusable)?;
    let challenge = Challenge::parse(&digest::base64url_of(verifier.expose()), Some("S256")).ok_or_else(unusable)?;
    let code = digest::of(AuthorizationCode::parse(code).ok_or_else(unusable)?.expose());
    let now = core.clock.now();
    let exchange = Exchange { code, client, redirect, challenge, resources, pair, now };
    Ok(core.store.oauth().exchange(exchange).await?)
}

async fn refresh(
    core: &Core,
    form: Form<'_>,
    client: ClientId,
    pair: NewTokenPair,
) -> Result<TokenOutcome, TokenError> {
    let token = form.one("refresh_token")?;
    let token = token.ok_or_else(|| TokenError::invalid_request("`refresh_token` is missing."))?;
    let scopes = OauthScopes::of_refresh(form.one("scope")?)?;
    let resources = resources(core, form)?;
    let token = digest::of(RefreshToken::parse(token).ok_or_else(unusable)?.expose());
    let grace = Duration::from_secs(core.oauth.settings.refresh_reuse_grace_s);
    let refresh = Refresh { token, client, resources, scopes, pair, grace, now: core.clock.now() };
    Ok(core.store.oauth().refresh(refresh).await?)
}

fn resources(core: &Core, form: Form<'_>) -> Result<Resources, TokenError> {
    Resources::parse(form.all("resource"), &core.oauth.settings.resources())
        .map_err(|_| TokenError::bad("invalid_target", INVALID_TARGET))
}

/// A new pair: the hashes to store, and the texts, which are not stored.
fn generate_pair() -> (NewTokenPair, (String, String)) {
    let access = AccessToken::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let refresh = RefreshToken::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let pair = NewTokenPair { access: digest::of(access.expose()), refresh: digest::of(refresh.expose()) };
    (pair, (access.expose().to_owned(), refresh.expose().to_owned()))
}

/// Authenticates the client. One with a secret must send it, by Basic or in the form; one without must not send any.
pub(super) async fn authenticate(
    core: &Core,
    form: Form<'_>,
    authorization: Option<&str>,
) -> Result<ClientId, TokenError> {
    let named = form.one("client_id")?;
    let posted = form.one("client_secret")?;
    let (id, secret) = match authorization {
        None => (named.map(str::to_owned), posted.map(str::to_owned)),
        Some(_) if posted.is_some() => {
            return Err(TokenError::invalid_request("A client must prove who it is in one way, not in two."));
        }
        Some(field) => {
            let (id, secret) = basic(field).ok_or_else(|| {
                TokenError::invalid_client("`Authorization` must be Basic with the client's id and secret.")
            })?;
            if named.is_some_and(|named| named != id) {
                return Err(TokenError::invalid_request("`client_id` is not the client of `Authorization`."));
            }
            (Some(id), Some(secret).filter(|secret| !secret.is_empty()))
        }
    };
    let id = id.ok_or_else(|| TokenError::invalid_client("`client_id` is missing."))?;
    let unknown = || TokenError::invalid_client("The client is unknown, or its secret is wrong.");
    let id = ClientId::parse(&id).ok_or_else(unknown)?;
    let expected = match &id {
        // A client with a metadata document is always public, so the document is not fetched.
        ClientId::Document(_) => None,
        ClientId::Registered(text) => {
            let found = core.store.oauth().find_client(text).await?;
            let client = found.ok_or_else(unknown)?;
            match client.metadata.auth_method {
                AuthMethod::None => None,
                AuthMethod::Basic | AuthMethod::Post => client.secret_hash,
            }
        }
    };
    let sent = secret.map(|secret| ClientSecret::parse(&secret).map(|secret| digest::of(secret.expose())));
    match (expected, sent) {
        (None, None) => Ok(id),
        // Both are hashes of 256 random bits, so the comparison need not be constant-time.
        (Some(expected), Some(Some(sent))) if expected == sent => Ok(id),
        (None | Some(_), _) => Err(unknown()),
    }
}

/// Id and secret of `Authorization: Basic`, both form-encoded (RFC 6749 section 2.3.1).
fn basic(field: &str) -> Option<(String, String)> {
    let (scheme, encoded) = field.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = decoded.split_once(':')?;
    Some((form_decoded(id)?, form_decoded(secret)?))
}

fn form_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_decodes_form_encoded_id_and_secret() {
        let field = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let both = |id: &str, secret: &str| Some((id.to_owned(), secret.to_owned()));
        for (field, expected) in [
            (field("a:b"), both("a", "b")),
            (field("a:"), both("a", "")),
            (field("a:b:c"), both("a", "b:c")),
            (field("https%3A%2F%2Fa.example%2Fc:x+%2B"), both("https://a.example/c", "x +")),
            (field("a:b").replace("Basic", "bAsIC"), both("a", "b")),
            (field("a"), None),
            (field("a%:b"), None),
            (field("a%zz:b"), None),
            (field("a%ff:b"), None),
            (field("a:b").replace("Basic", "Bearer"), None),
            ("Basic".to_owned(), None),
            ("Basic !".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(basic(&field), expected, "{field}");
        }
    }
}
