//! What is over is forgotten.

use grabd_domain::Timestamp;
use grabd_domain::oauth::{UNUSED_CLIENT_LIFE, USED_CODE_LIFE};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use crate::database::{Transaction, Tx};
use crate::entities::{oauth_client, oauth_code, oauth_grant, oauth_ticket, oauth_token};
use crate::{Result, Store};

struct Purge {
    now: Timestamp,
    limit: u32,
}

impl Store {
    /// Forgets tickets, codes, tokens and grants that are over and clients that nobody uses, at most `limit` of each; how
    /// many those were.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn purge_oauth(&self, now: Timestamp, limit: u32) -> Result<u64> {
        self.database.write(Purge { now, limit }).await
    }
}

/// Deletes the oldest rows of a table, by a column of time, until a time.
macro_rules! forget {
    ($tx:expr, $table:ident, $id:ident, $at:ident <= $until:expr, $limit:expr $(, $only:expr)?) => {{
        let over = $table::Entity::find()
            .select_only()
            .column($table::Column::$id)
            .filter($table::Column::$at.lte(Timestamp::as_ms($until)))
            $(.filter($only))?
            .order_by_asc($table::Column::$at)
            .limit(u64::from($limit))
            .into_query();
        let deleted = $table::Entity::delete_many().filter($table::Column::$id.in_subquery(over)).exec($tx).await?;
        deleted.rows_affected
    }};
}

impl Transaction for Purge {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let &Self { now, limit } = self;
        let mut forgotten = forget!(tx, oauth_ticket, Hash, ExpiresAt <= now, limit);
        // A retired refresh token is kept as long as it would have lived, so that its reuse is noticed.
        forgotten += forget!(tx, oauth_token, Hash, ExpiresAt <= now, limit);
        forgotten += forget!(tx, oauth_code, Hash, ExpiresAt <= now - USED_CODE_LIFE, limit);
        forgotten += forget!(tx, oauth_grant, Id, ExpiresAt <= now, limit);
        // The code of those that were never connected is long over.
        let waiting = oauth_grant::Column::ConnectedAt.is_null();
        forgotten += forget!(tx, oauth_grant, Id, CreatedAt <= now - USED_CODE_LIFE, limit, waiting);
        let grants = Query::select()
            .expr(Expr::val(1))
            .from(oauth_grant::Entity)
            .and_where(
                Expr::col((oauth_grant::Entity, oauth_grant::Column::ClientId))
                    .equals((oauth_client::Entity, oauth_client::Column::Id)),
            )
            .take();
        let unused = Expr::exists(grants).not();
        forgotten += forget!(tx, oauth_client, Id, SeenAt <= now - UNUSED_CLIENT_LIFE, limit, unused);
        Ok(forgotten)
    }
}
