//! An app registers.

use grabd_domain::Timestamp;
use grabd_domain::oauth::{ClientId, ClientMetadata, RedirectUri};
use sea_orm::ActiveValue::Set;
use sea_orm::EntityTrait;

use crate::database::{Transaction, Tx};
use crate::entities::oauth_client;
use crate::{Result, Store, codes};

/// An app to register. Its secret itself is never seen here.
#[derive(Clone, Debug)]
pub struct NewClient {
    /// Its id.
    pub id: ClientId,
    /// SHA-256 of its secret, if it can keep one.
    pub secret_hash: Option<[u8; 32]>,
    /// What it says of itself.
    pub metadata: ClientMetadata,
    /// When.
    pub now: Timestamp,
}

impl Store {
    /// Registers an app.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the id is taken, or when a secret is there and none is
    /// needed, or the other way round.
    pub async fn create_client(&self, client: NewClient) -> Result<()> {
        self.database.write(client).await
    }
}

impl Transaction for NewClient {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
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
        Ok(())
    }
}
