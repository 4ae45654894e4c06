//! An app gives back what it has (RFC 7009).

use grabd_domain::credentials::{AccessToken, RefreshToken};
use grabd_store::Revoked;

use super::form::{Fields, Form};
use super::token::{TokenError, authenticate};
use crate::core::Core;
use crate::digest;

/// Ends what a token stands for, at once: a refresh token the whole grant, an access token itself. What is no token of
/// ours, or not any more, is as good as revoked.
///
/// # Errors
/// What the app is told.
pub async fn revoke(core: &Core, form: &Fields, authorization: Option<&str>) -> Result<(), TokenError> {
    let form = Form(form);
    let token = form.one("token")?;
    // A hint at what kind it is would only save a look-up, and tokens say it themselves.
    form.one("token_type_hint")?;
    let client = authenticate(core, form, authorization).await?;
    let token = token.ok_or_else(|| TokenError::invalid_request("`token` is missing."))?;
    if AccessToken::parse(token).is_none() && RefreshToken::parse(token).is_none() {
        return Ok(());
    }
    let revoked = core.store.revoke_token(digest::of(token), client).await;
    match revoked.map_err(TokenError::inside("oauth.revoke"))? {
        Revoked::Grant(grant) => {
            tracing::info!(grant.id = %grant, "an app ended its grant");
            Ok(())
        }
        Revoked::Token | Revoked::Unknown => Ok(()),
        Revoked::Foreign => Err(TokenError::invalid_grant("The token is not this client's.")),
    }
}
