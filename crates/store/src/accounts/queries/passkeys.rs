//! The passkeys of users.

use grabd_domain::Timestamp;
use grabd_domain::ids::{PasskeyId, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::Result;
use crate::areas::Accounts;
use crate::entities::passkey;

/// A passkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passkey {
    /// Its id.
    pub id: PasskeyId,
    /// The user.
    pub user: UserId,
    /// Its name.
    pub name: String,
    /// The id that the device chose.
    pub credential_id: Vec<u8>,
    /// The public key and what is known about the device, as JSON.
    pub credential: String,
    /// Signatures that the device says it has made; 0 if it does not count.
    pub counter: u32,
    /// When it was added.
    pub created_at: Timestamp,
    /// Its last use.
    pub last_used_at: Option<Timestamp>,
}

impl Accounts<'_> {
    /// The passkeys of a user, oldest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_passkeys(self, user: UserId) -> Result<Vec<Passkey>> {
        let rows = passkey::Entity::find()
            .filter(passkey::Column::UserId.eq(user.0))
            .order_by_asc(passkey::Column::Id)
            .all(self.store.database.reader())
            .await?;
        Ok(rows.into_iter().map(read).collect())
    }

    /// The passkey with the id that its device chose.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_passkey(self, credential_id: &[u8]) -> Result<Option<Passkey>> {
        let found = passkey::Entity::find()
            .filter(passkey::Column::CredentialId.eq(credential_id.to_vec()))
            .one(self.store.database.reader())
            .await?;
        Ok(found.map(read))
    }
}

fn read(row: passkey::Model) -> Passkey {
    Passkey {
        id: PasskeyId(row.id),
        user: UserId(row.user_id),
        name: row.name,
        credential_id: row.credential_id,
        credential: row.credential,
        // A device counts with 32 bits. A row that was edited by hand is refused by every later use.
        counter: u32::try_from(row.counter).unwrap_or(u32::MAX),
        created_at: Timestamp::from_ms(row.created_at),
        last_used_at: row.last_used_at.map(Timestamp::from_ms),
    }
}
