//! Exchanges an authorization code for the first token pair, once.

use grabd_domain::Timestamp;
use grabd_domain::ids::GrantId;
use grabd_domain::oauth::{Challenge, ClientId, Resources};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::{NewTokenPair, TokenOutcome, delete_grant, issue_tokens, lock_grant, unusable_reason};
use crate::areas::OAuth;
use crate::database::{Transaction, Tx};
use crate::entities::{oauth_code, oauth_grant};
use crate::{Result, codes};

/// A presented code with the parameters that must match the authorization request.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// SHA-256 of the code.
    pub code: [u8; 32],
    /// The client that presents it.
    pub client: ClientId,
    /// The `redirect_uri` parameter, if present.
    pub redirect: Option<String>,
    /// The PKCE challenge computed from the presented verifier.
    pub challenge: Challenge,
    /// The requested resources.
    pub resources: Resources,
    /// The tokens to issue.
    pub pair: NewTokenPair,
    /// Current time.
    pub now: Timestamp,
}

impl OAuth<'_> {
    /// Exchanges a code. A second use revokes the grant and all its tokens.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn exchange(self, exchange: Exchange) -> Result<TokenOutcome> {
        self.store.database.write(exchange).await
    }
}

impl Transaction for Exchange {
    type Outcome = TokenOutcome;

    async fn apply(&self, tx: &Tx) -> Result<TokenOutcome> {
        let find = || oauth_code::Entity::find_by_id(self.code.to_vec());
        let Some(known) = find().one(tx).await? else { return Ok(TokenOutcome::Invalid("unknown code")) };
        // Read the code again under the lock: a concurrent exchange has committed by now.
        let (Some(grant), Some(code)) = (lock_grant(tx, known.grant_id).await?, find().one(tx).await?) else {
            return Ok(TokenOutcome::Invalid("grant was revoked"));
        };
        if code.used_at.is_some() {
            delete_grant(tx, grant.id).await?;
            return Ok(TokenOutcome::Replayed(GrantId(grant.id)));
        }
        if let Some(reason) = self.mismatch(&code, &grant) {
            return Ok(TokenOutcome::Invalid(reason));
        }
        if let Some(reason) = unusable_reason(tx, &grant, self.now).await? {
            return Ok(TokenOutcome::Invalid(reason));
        }
        if Resources::from_text(&grant.resources).check(&self.resources).is_err() {
            return Ok(TokenOutcome::InvalidTarget);
        }
        oauth_code::Entity::update_many()
            .col_expr(oauth_code::Column::UsedAt, Expr::value(self.now.as_ms()))
            .filter(oauth_code::Column::Hash.eq(code.hash))
            .exec(tx)
            .await?;
        oauth_grant::Entity::update_many()
            .col_expr(oauth_grant::Column::ConnectedAt, Expr::value(self.now.as_ms()))
            .filter(oauth_grant::Column::Id.eq(grant.id))
            .exec(tx)
            .await?;
        let scopes = codes::read_oauth_scopes(grant.scopes)?;
        let expires_at = issue_tokens(tx, &grant, &self.pair, scopes, None, self.now).await?;
        Ok(TokenOutcome::Issued { grant: GrantId(grant.id), scopes, expires_at })
    }
}

impl Exchange {
    /// Why the request does not match the code. A mismatch does not use up the code: the rightful client may still
    /// present it.
    fn mismatch(&self, code: &oauth_code::Model, grant: &oauth_grant::Model) -> Option<&'static str> {
        if code.expires_at <= self.now.as_ms() {
            Some("code expired")
        } else if grant.client_id != self.client.as_str() {
            Some("code of another client")
        } else if self.redirect.as_ref().is_some_and(|redirect| *redirect != code.redirect_uri) {
            Some("redirect_uri mismatch")
        } else if code.challenge != self.challenge.as_str() {
            Some("code_verifier mismatch")
        } else {
            None
        }
    }
}
