//! Deletes expired OAuth rows.

use std::collections::HashSet;

use grabd_domain::Timestamp;
use grabd_domain::oauth::{UNUSED_CLIENT_LIFE, USED_CODE_LIFE};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use uuid::Uuid;

use crate::Result;
use crate::areas::OAuth;
use crate::database::{Transaction, Tx};
use crate::entities::{oauth_client, oauth_code, oauth_device, oauth_grant, oauth_ticket, oauth_token};
use crate::padded::padded;

struct PurgeOauth {
    now: Timestamp,
    limit: u32,
}

impl OAuth<'_> {
    /// Deletes expired consent requests, codes, tokens and grants, and unused clients, up to `limit` of each. Returns
    /// the number of deleted rows.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_oauth(self, now: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeOauth { now, limit }).await
    }
}

/// Deletes the oldest rows of a table up to a time.
macro_rules! purge {
    ($tx:expr, $table:ident, $id:ident, $at:ident <= $until:expr, $limit:expr $(, $only:expr)?) => {{
        let expired = $table::Entity::find()
            .select_only()
            .column($table::Column::$id)
            .filter($table::Column::$at.lte(Timestamp::as_ms($until)))
            $(.filter($only))?
            .order_by_asc($table::Column::$at)
            .limit(u64::from($limit))
            .into_query();
        let deleted = $table::Entity::delete_many().filter($table::Column::$id.in_subquery(expired)).exec($tx).await?;
        deleted.rows_affected
    }};
}

impl Transaction for PurgeOauth {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let &Self { now, limit } = self;
        let mut deleted_rows = purge!(tx, oauth_ticket, Hash, ExpiresAt <= now, limit);
        deleted_rows += purge!(tx, oauth_device, Hash, ExpiresAt <= now, limit);
        deleted_rows += purge_tokens(tx, now, limit).await?;
        deleted_rows += purge!(tx, oauth_code, Hash, ExpiresAt <= now - USED_CODE_LIFE, limit);
        deleted_rows += purge!(tx, oauth_grant, Id, ExpiresAt <= now, limit);
        // Grants that were never connected: their codes have long expired.
        let not_connected = oauth_grant::Column::ConnectedAt.is_null();
        deleted_rows += purge!(tx, oauth_grant, Id, CreatedAt <= now - USED_CODE_LIFE, limit, not_connected);
        deleted_rows += purge!(tx, oauth_client, Id, SeenAt <= now - UNUSED_CLIENT_LIFE, limit, is_unused());
        Ok(deleted_rows)
    }
}

/// Deletes up to `limit` expired tokens, and the grants whose last tokens they were: their apps can never have access
/// again. A rotated refresh token is kept until its expiry, so that its reuse is detected.
async fn purge_tokens(tx: &Tx, now: Timestamp, limit: u32) -> Result<u64> {
    let expired: Vec<(Vec<u8>, Uuid)> = oauth_token::Entity::find()
        .select_only()
        .columns([oauth_token::Column::Hash, oauth_token::Column::GrantId])
        .filter(oauth_token::Column::ExpiresAt.lte(now.as_ms()))
        .order_by_asc(oauth_token::Column::ExpiresAt)
        .limit(u64::from(limit))
        .into_tuple()
        .all(tx)
        .await?;
    if expired.is_empty() {
        return Ok(0);
    }
    let (tokens, grants): (Vec<_>, HashSet<_>) = expired.into_iter().unzip();
    // The number of tokens varies, but a purge is rare.
    let tokens = oauth_token::Entity::delete_many().filter(oauth_token::Column::Hash.is_in(tokens)).exec(tx).await?;
    let left = Query::select()
        .expr(Expr::val(1))
        .from(oauth_token::Entity)
        .and_where(
            Expr::col((oauth_token::Entity, oauth_token::Column::GrantId))
                .equals((oauth_grant::Entity, oauth_grant::Column::Id)),
        )
        .take();
    let grants = oauth_grant::Entity::delete_many()
        .filter(oauth_grant::Column::Id.is_in(padded(grants)))
        .filter(oauth_grant::Column::ConnectedAt.is_not_null())
        .filter(Expr::exists(left).not());
    Ok(tokens.rows_affected + grants.exec(tx).await?.rows_affected)
}

/// Whether a client has no grant.
pub(super) fn is_unused() -> Expr {
    let grants = Query::select()
        .expr(Expr::val(1))
        .from(oauth_grant::Entity)
        .and_where(
            Expr::col((oauth_grant::Entity, oauth_grant::Column::ClientId))
                .equals((oauth_client::Entity, oauth_client::Column::Id)),
        )
        .take();
    Expr::exists(grants).not()
}
