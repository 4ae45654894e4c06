//! Token revocation (RFC 7009).

use grabd_domain::credentials::{AccessToken, RefreshToken};
use grabd_store::oauth::RevokeOutcome;

use super::client_auth::authenticate;
use super::endpoint_error::EndpointError;
use super::form::{Fields, Form};
use crate::digest;
use crate::service::Core;

/// Revokes a token at once: a refresh token with its whole grant, an access token alone. Unknown and expired tokens
/// count as revoked.
///
/// # Errors
/// The error response.
#[tracing::instrument(name = "oauth.revoke", skip_all)]
pub async fn revoke(core: &Core, form: &Fields, authorization: Option<&str>) -> Result<(), EndpointError> {
    let form = Form(form);
    let token = form.one("token")?;
    // The hint is not needed: the prefix of a token shows its type.
    form.one("token_type_hint")?;
    let client = authenticate(core, form, authorization).await?;
    let token = token.ok_or_else(|| EndpointError::invalid_request("`token` is missing."))?;
    if AccessToken::parse(token).is_none() && RefreshToken::parse(token).is_none() {
        return Ok(());
    }
    let revoked = core.store.oauth().revoke_token(digest::of(token), client).await;
    match revoked? {
        RevokeOutcome::Grant(grant) => {
            tracing::info!(grant.id = %grant, "grant revoked by the app");
            Ok(())
        }
        RevokeOutcome::Token | RevokeOutcome::Unknown => Ok(()),
        RevokeOutcome::Foreign => Err(EndpointError::invalid_grant("The token is not this client's.")),
    }
}
