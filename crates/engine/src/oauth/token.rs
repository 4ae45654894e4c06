//! The token endpoint: exchange of authorization codes, refresh tokens and device codes.

use std::time::Duration;

use grabd_domain::credentials::{AccessToken, AuthorizationCode, RefreshToken};
use grabd_domain::oauth::{Challenge, ClientId, OauthScopes, Resources, ScopeError, Verifier};
use grabd_store::oauth::{Exchange, NewTokenPair, Refresh, TokenOutcome};
use serde::Serialize;

use super::client_auth::authenticate;
use super::endpoint_error::EndpointError;
use super::form::{Fields, Form};
use super::{device, device_code};
use crate::digest;
use crate::random;
use crate::service::Core;

/// A token response (RFC 6749 section 5.1).
#[derive(Clone, Serialize)]
pub struct Tokens {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
    refresh_token: String,
    scope: String,
}

/// Handles a request to the token endpoint. `authorization` is the value of the `Authorization` header.
///
/// # Errors
/// The error response.
#[tracing::instrument(name = "oauth.token", skip_all)]
pub async fn token(core: &Core, form: &Fields, authorization: Option<&str>) -> Result<Tokens, EndpointError> {
    let form = Form(form);
    let grant_type = form.one("grant_type")?;
    let client = authenticate(core, form, authorization).await?;
    let (pair, tokens) = generate_pair();
    let exchanged = match grant_type {
        Some("authorization_code") => exchange(core, form, client, pair).await?,
        Some("refresh_token") => refresh(core, form, client, pair).await?,
        Some(device_code::GRANT_TYPE) => device::exchange(core, form, client, pair).await?,
        Some(_) => {
            let known = "`grant_type` must be authorization_code, refresh_token or that of device codes.";
            return Err(EndpointError::bad("unsupported_grant_type", known));
        }
        None => return Err(EndpointError::invalid_request("`grant_type` is missing.")),
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
        TokenOutcome::InvalidTarget => Err(EndpointError::bad("invalid_target", INVALID_TARGET)),
        TokenOutcome::InvalidScope => Err(ScopeError.into()),
        TokenOutcome::Replayed(grant) => {
            tracing::warn!(grant.id = %grant, "code or refresh token reused; grant revoked");
            Err(unusable())
        }
    }
}

const INVALID_TARGET: &str = "`resource` names something that is not here or was not allowed.";

/// One error for every reason, so that a thief of a token learns nothing.
fn unusable() -> EndpointError {
    EndpointError::invalid_grant(
        "The code or refresh token is unknown, used, too old, revoked, or not for this client.",
    )
}

async fn exchange(
    core: &Core,
    form: Form<'_>,
    client: ClientId,
    pair: NewTokenPair,
) -> Result<TokenOutcome, EndpointError> {
    let missing = |name: &str| EndpointError::invalid_request(format!("`{name}` is missing."));
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
) -> Result<TokenOutcome, EndpointError> {
    let token = form.one("refresh_token")?;
    let token = token.ok_or_else(|| EndpointError::invalid_request("`refresh_token` is missing."))?;
    let scopes = OauthScopes::of_refresh(form.one("scope")?)?;
    let resources = resources(core, form)?;
    let token = digest::of(RefreshToken::parse(token).ok_or_else(unusable)?.expose());
    let grace = Duration::from_secs(core.oauth.settings.refresh_reuse_grace_s);
    let refresh = Refresh { token, client, resources, scopes, pair, grace, now: core.clock.now() };
    Ok(core.store.oauth().refresh(refresh).await?)
}

fn resources(core: &Core, form: Form<'_>) -> Result<Resources, EndpointError> {
    Resources::parse(form.all("resource"), &core.oauth.settings.resources())
        .map_err(|_| EndpointError::bad("invalid_target", INVALID_TARGET))
}

/// A new pair: the hashes to store, and the texts, which are not stored.
fn generate_pair() -> (NewTokenPair, (String, String)) {
    let access = AccessToken::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let refresh = RefreshToken::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let pair = NewTokenPair { access: digest::of(access.expose()), refresh: digest::of(refresh.expose()) };
    (pair, (access.expose().to_owned(), refresh.expose().to_owned()))
}
