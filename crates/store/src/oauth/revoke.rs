//! Revokes grants and tokens and records the use of grants.

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrantId, UserId};
use grabd_domain::oauth::ClientId;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::{delete_grant, lock_grant};
use crate::Result;
use crate::areas::OAuth;
use crate::codes::REFRESH;
use crate::database::{Transaction, Tx};
use crate::entities::{oauth_grant, oauth_token};
use crate::padded::padded;

/// Outcome of a token revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokeOutcome {
    /// A refresh token: its grant was revoked.
    Grant(GrantId),
    /// An access token: it was revoked.
    Token,
    /// The token does not exist.
    Unknown,
    /// The token belongs to another client. Nothing changed.
    Foreign,
}

struct RevokeToken {
    token: [u8; 32],
    client: ClientId,
}

struct EndGrant {
    user: UserId,
    grant: GrantId,
}

struct TouchGrants {
    grants: Vec<GrantId>,
    now: Timestamp,
}

impl OAuth<'_> {
    /// Revokes a token. A refresh token revokes its whole grant.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn revoke_token(self, token: [u8; 32], client: ClientId) -> Result<RevokeOutcome> {
        self.store.database.write(RevokeToken { token, client }).await
    }

    /// Revokes a grant of this user. `false` when the user has no grant with that id.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn end_grant(self, user: UserId, grant: GrantId) -> Result<bool> {
        self.store.database.write(EndGrant { user, grant }).await
    }

    /// Records the use of these grants. Callers batch uses and call this periodically.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn touch_grants(self, grants: Vec<GrantId>, now: Timestamp) -> Result<()> {
        if grants.is_empty() {
            return Ok(());
        }
        self.store.database.write(TouchGrants { grants, now }).await
    }
}

impl Transaction for RevokeToken {
    type Outcome = RevokeOutcome;

    async fn apply(&self, tx: &Tx) -> Result<RevokeOutcome> {
        let Some(token) = oauth_token::Entity::find_by_id(self.token.to_vec()).one(tx).await? else {
            return Ok(RevokeOutcome::Unknown);
        };
        let Some(grant) = lock_grant(tx, token.grant_id).await? else { return Ok(RevokeOutcome::Unknown) };
        if grant.client_id != self.client.as_str() {
            return Ok(RevokeOutcome::Foreign);
        }
        if token.kind == REFRESH {
            delete_grant(tx, grant.id).await?;
            return Ok(RevokeOutcome::Grant(GrantId(grant.id)));
        }
        oauth_token::Entity::delete_by_id(token.hash).exec(tx).await?;
        Ok(RevokeOutcome::Token)
    }
}

impl Transaction for EndGrant {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let deleted = oauth_grant::Entity::delete_many()
            .filter(oauth_grant::Column::Id.eq(self.grant.0))
            .filter(oauth_grant::Column::UserId.eq(self.user.0))
            .exec(tx)
            .await?;
        Ok(deleted.rows_affected > 0)
    }
}

impl Transaction for TouchGrants {
    type Outcome = ();
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<()> {
        // Processes may report uses out of order; the latest time wins.
        let earlier = Expr::col(oauth_grant::Column::LastUsedAt)
            .is_null()
            .or(Expr::col(oauth_grant::Column::LastUsedAt).lt(self.now.as_ms()));
        for grants in self.grants.chunks(1024) {
            oauth_grant::Entity::update_many()
                .col_expr(oauth_grant::Column::LastUsedAt, Expr::value(self.now.as_ms()))
                .filter(oauth_grant::Column::Id.is_in(padded(grants.iter().map(|grant| grant.0))))
                .filter(earlier.clone())
                .exec(tx)
                .await?;
        }
        Ok(())
    }
}
