//! Registers an app.

use grabd_domain::Timestamp;
use grabd_domain::oauth::{ClientId, ClientMetadata, RedirectUri, UNUSED_CLIENT_LIFE};
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use super::purge::is_unused;
use crate::database::{Transaction, Tx};
use crate::entities::oauth_client;
use crate::{Result, Store, codes};

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

impl Store {
    /// Registers an app. `false`, without any change, when too many clients have no grant.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the id already exists, or when the presence of a secret
    /// does not match the authentication method.
    pub async fn create_client(&self, client: NewClient) -> Result<bool> {
        self.database.write(client).await
    }
}

impl Transaction for NewClient {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        // Clients that were not seen for longer are about to be purged. Concurrent registrations may exceed the limit
        // by their number, which is small.
        let unused = oauth_client::Entity::find()
            .filter(oauth_client::Column::SeenAt.gt((self.now - UNUSED_CLIENT_LIFE).as_ms()))
            .filter(is_unused());
        if unused.count(tx).await? >= self.max_unused {
            return Ok(false);
        }
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
        Ok(true)
    }
}
