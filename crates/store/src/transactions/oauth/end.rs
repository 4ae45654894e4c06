//! Grants and tokens end, and grants are used.

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrantId, UserId};
use grabd_domain::oauth::ClientId;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::{end, lock};
use crate::codes::REFRESH;
use crate::database::{Transaction, Tx};
use crate::entities::{oauth_grant, oauth_token};
use crate::queries::padded;
use crate::{Result, Store};

/// What revoking a token came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// It was a refresh token: its grant has ended.
    Grant(GrantId),
    /// It was an access token, and opens nothing any more.
    Token,
    /// There is no such token, or no longer.
    Unknown,
    /// It is another client's, and nothing happened.
    Foreign,
}

struct Revocation {
    token: [u8; 32],
    client: ClientId,
}

struct Disconnection {
    user: UserId,
    grant: GrantId,
}

struct Use {
    grants: Vec<GrantId>,
    now: Timestamp,
}

impl Store {
    /// Ends what a token stands for: a refresh token its whole grant, an access token itself.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn revoke_token(&self, token: [u8; 32], client: ClientId) -> Result<Revoked> {
        self.database.write(Revocation { token, client }).await
    }

    /// Ends a grant of this person; `false` when they have none with that id.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn end_grant(&self, user: UserId, grant: GrantId) -> Result<bool> {
        self.database.write(Disconnection { user, grant }).await
    }

    /// Notes that these grants were used. Meant to be called for many uses at once, now and then.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn touch_grants(&self, grants: Vec<GrantId>, now: Timestamp) -> Result<()> {
        if grants.is_empty() {
            return Ok(());
        }
        self.database.write(Use { grants, now }).await
    }
}

impl Transaction for Revocation {
    type Outcome = Revoked;

    async fn apply(&self, tx: &Tx) -> Result<Revoked> {
        let Some(token) = oauth_token::Entity::find_by_id(self.token.to_vec()).one(tx).await? else {
            return Ok(Revoked::Unknown);
        };
        let Some(grant) = lock(tx, token.grant_id).await? else { return Ok(Revoked::Unknown) };
        if grant.client_id != self.client.as_str() {
            return Ok(Revoked::Foreign);
        }
        if token.kind == REFRESH {
            end(tx, grant.id).await?;
            return Ok(Revoked::Grant(GrantId(grant.id)));
        }
        oauth_token::Entity::delete_by_id(token.hash).exec(tx).await?;
        Ok(Revoked::Token)
    }
}

impl Transaction for Disconnection {
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

impl Transaction for Use {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        // Two processes may note uses out of order; the latest stays.
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
