//! Registers an app.

use grabd_domain::Timestamp;
use grabd_domain::oauth::{ClientId, ClientMetadata, RedirectUri};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};

use super::purge::is_unused;
use crate::areas::OAuth;
use crate::database::{Transaction, Tx};
use crate::entities::oauth_client;
use crate::{Result, codes};

/// An app to register. Contains only a hash of its secret.
#[derive(Clone, Debug)]
pub struct NewClient {
    /// Its id.
    pub id: ClientId,
    /// SHA-256 of its secret; `None` for public clients.
    pub secret_hash: Option<[u8; 32]>,
    /// Its registration metadata.
    pub metadata: ClientMetadata,
    /// Current time.
    pub now: Timestamp,
    /// Clients without a grant that may exist, including this one.
    pub max_unused: u64,
}

impl OAuth<'_> {
    /// Registers an app. If too many clients have no grant, the oldest of them are forgotten: first those that never had one.
    /// Returns their number.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the id already exists, or when the presence of a secret
    /// does not match the authentication method.
    pub async fn create_client(self, client: NewClient) -> Result<u64> {
        self.store.database.write(client).await
    }
}

impl Transaction for NewClient {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        // Concurrent registrations may exceed the limit by their number, which is small.
        let unused = oauth_client::Entity::find().filter(is_unused()).count(tx).await?;
        let excess = (unused + 1).saturating_sub(self.max_unused);
        let forgotten = if excess > 0 { forget_oldest(tx, excess).await? } else { 0 };
        let ClientMetadata { name, redirect_uris, auth_method } = &self.metadata;
        let redirect_uris: Vec<&str> = redirect_uris.iter().map(RedirectUri::as_str).collect();
        let row = oauth_client::ActiveModel {
            id: Set(self.id.to_string()),
            secret_hash: Set(self.secret_hash.map(|hash| hash.to_vec())),
            name: Set(name.clone()),
            redirect_uris: Set(redirect_uris.join("\n")),
            auth_method: Set(codes::auth_method(*auth_method)),
            created_at: Set(self.now.as_ms()),
            seen_at: Set(self.now.as_ms()),
        };
        oauth_client::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(forgotten)
    }
}

/// Deletes this many clients without a grant, the oldest first. Those that had a grant once may be used again, so they go
/// last.
async fn forget_oldest(tx: &Tx, number: u64) -> Result<u64> {
    let had_grant = Expr::col(oauth_client::Column::SeenAt).gt(Expr::col(oauth_client::Column::CreatedAt));
    let oldest: Vec<String> = oauth_client::Entity::find()
        .select_only()
        .column(oauth_client::Column::Id)
        .filter(is_unused())
        .order_by_asc(had_grant)
        .order_by_asc(oauth_client::Column::SeenAt)
        .order_by_asc(oauth_client::Column::Id)
        .limit(number)
        .into_tuple()
        .all(tx)
        .await?;
    // The number of ids is one, unless the limit was lowered.
    let deleted = oauth_client::Entity::delete_many().filter(oauth_client::Column::Id.is_in(oldest)).exec(tx).await?;
    Ok(deleted.rows_affected)
}
