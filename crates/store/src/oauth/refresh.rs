//! Exchanges a refresh token for the next token pair (rotation).

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::ids::GrantId;
use grabd_domain::oauth::{
    ACCESS_TOKENS, ClientId, OauthScopes, PreviousUse, RefreshUse, Resources, USED_REFRESH_TOKENS, classify_refresh,
};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::{NewTokenPair, TokenOutcome, delete_grant, issue_tokens, lock_grant, unusable_reason};
use crate::Result;
use crate::areas::OAuth;
use crate::codes::{self, ACCESS, REFRESH, read_count};
use crate::database::{Transaction, Tx};
use crate::entities::oauth_token;

/// A presented refresh token.
#[derive(Clone, Debug)]
pub struct Refresh {
    /// SHA-256 of the token.
    pub token: [u8; 32],
    /// The client that presents it.
    pub client: ClientId,
    /// The requested resources.
    pub resources: Resources,
    /// The scopes that the access token is to have. `None`: those of the grant, which the refresh token always keeps.
    pub scopes: Option<OauthScopes>,
    /// The tokens to issue.
    pub pair: NewTokenPair,
    /// How long after the first use another use is accepted.
    pub grace: Duration,
    /// Current time.
    pub now: Timestamp,
}

impl OAuth<'_> {
    /// Exchanges a refresh token. Reuse outside the grace period revokes the grant.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn refresh(self, refresh: Refresh) -> Result<TokenOutcome> {
        self.store.database.write(refresh).await
    }
}

impl Transaction for Refresh {
    type Outcome = TokenOutcome;

    async fn apply(&self, tx: &Tx) -> Result<TokenOutcome> {
        let find = || {
            oauth_token::Entity::find_by_id(self.token.to_vec()).filter(oauth_token::Column::Kind.eq(REFRESH)).one(tx)
        };
        let Some(known) = find().await? else { return Ok(TokenOutcome::Invalid("unknown refresh token")) };
        // Read the token again under the lock: a concurrent exchange has committed by now.
        let (Some(grant), Some(token)) = (lock_grant(tx, known.grant_id).await?, find().await?) else {
            return Ok(TokenOutcome::Invalid("grant was revoked"));
        };
        if grant.client_id != self.client.as_str() {
            return Ok(TokenOutcome::Invalid("refresh token of another client"));
        }
        let presented = classify_refresh(self.retired(tx, &token).await?, self.now, self.grace);
        if presented == RefreshUse::Reuse {
            delete_grant(tx, grant.id).await?;
            return Ok(TokenOutcome::Replayed(GrantId(grant.id)));
        }
        if token.expires_at <= self.now.as_ms() {
            return Ok(TokenOutcome::Invalid("refresh token expired"));
        }
        if let Some(reason) = unusable_reason(tx, &grant, self.now).await? {
            return Ok(TokenOutcome::Invalid(reason));
        }
        if Resources::from_text(&grant.resources).check(&self.resources).is_err() {
            return Ok(TokenOutcome::InvalidTarget);
        }
        let granted = codes::read_oauth_scopes(grant.scopes)?;
        let scopes = self.scopes.unwrap_or(granted);
        if !granted.includes_all(scopes) {
            return Ok(TokenOutcome::InvalidScope);
        }
        let change = oauth_token::Entity::update_many().filter(oauth_token::Column::Hash.eq(token.hash));
        let change = match presented {
            RefreshUse::Retry => {
                let one_more = Expr::col(oauth_token::Column::Siblings).add(1);
                change.col_expr(oauth_token::Column::Siblings, one_more)
            }
            RefreshUse::First | RefreshUse::Reuse => {
                change.col_expr(oauth_token::Column::RotatedAt, Expr::value(self.now.as_ms()))
            }
        };
        change.exec(tx).await?;
        let expires_at = issue_tokens(tx, &grant, &self.pair, scopes, Some(&self.token), self.now).await?;
        forget_oldest(tx, grant.id).await?;
        Ok(TokenOutcome::Issued { grant: GrantId(grant.id), scopes, expires_at })
    }
}

impl Refresh {
    async fn retired(&self, tx: &Tx, token: &oauth_token::Model) -> Result<Option<PreviousUse>> {
        let Some(at) = token.rotated_at else { return Ok(None) };
        let successors = oauth_token::Entity::find()
            .filter(oauth_token::Column::Parent.eq(self.token.to_vec()))
            .filter(oauth_token::Column::RotatedAt.is_not_null())
            .count(tx)
            .await?;
        let siblings = read_count(token.siblings)?;
        Ok(Some(PreviousUse { at: Timestamp::from_ms(at), retries: siblings, succeeded: successors > 0 }))
    }
}

/// Deletes the used refresh tokens of a grant beyond [`USED_REFRESH_TOKENS`], and its access tokens beyond [`ACCESS_TOKENS`]: an
/// app that refreshes all the time could otherwise fill the table within the hour in which those are valid.
async fn forget_oldest(tx: &Tx, grant: Uuid) -> Result<()> {
    let of_grant = |kept| {
        oauth_token::Entity::find()
            .select_only()
            .column(oauth_token::Column::Hash)
            .filter(oauth_token::Column::GrantId.eq(grant))
            .offset(kept)
            .limit(kept)
    };
    let used = of_grant(USED_REFRESH_TOKENS).filter(oauth_token::Column::RotatedAt.is_not_null());
    let access = of_grant(ACCESS_TOKENS).filter(oauth_token::Column::Kind.eq(ACCESS));
    for (tokens, age) in [(used, oauth_token::Column::RotatedAt), (access, oauth_token::Column::CreatedAt)] {
        let oldest = tokens.order_by_desc(age).order_by_asc(oauth_token::Column::Hash);
        let oldest: Vec<Vec<u8>> = oldest.into_tuple().all(tx).await?;
        if !oldest.is_empty() {
            oauth_token::Entity::delete_many().filter(oauth_token::Column::Hash.is_in(oldest)).exec(tx).await?;
        }
    }
    Ok(())
}
