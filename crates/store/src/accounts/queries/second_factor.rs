//! The second factors of users.

use grabd_domain::Timestamp;
use grabd_domain::ids::UserId;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use crate::Result;
use crate::areas::Accounts;
use crate::entities::{recovery_code, second_factor};

/// A second factor that is on.
#[derive(Clone, PartialEq, Eq)]
pub struct SecondFactor {
    /// The encrypted secret of the authenticator app. `None` if the user has only passkeys.
    pub secret: Option<Vec<u8>>,
    /// The time step (RFC 6238) of the last accepted code.
    pub last_step: i64,
    /// When it was turned on.
    pub created_at: Timestamp,
    /// Unused recovery codes.
    pub recovery_codes: u64,
}

impl Accounts<'_> {
    /// The second factor of a user; `None` when it is off.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_second_factor(self, user: UserId) -> Result<Option<SecondFactor>> {
        let found = second_factor::Entity::find_by_id(user.0).one(self.store.database.reader()).await?;
        let Some(row) = found else { return Ok(None) };
        let codes = recovery_code::Entity::find().filter(recovery_code::Column::UserId.eq(user.0));
        Ok(Some(SecondFactor {
            secret: Some(row.secret).filter(|secret| !secret.is_empty()),
            last_step: row.last_step,
            created_at: Timestamp::from_ms(row.created_at),
            recovery_codes: codes.count(self.store.database.reader()).await?,
        }))
    }

    /// Whether a user has a second factor.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn has_second_factor(self, user: UserId) -> Result<bool> {
        Ok(second_factor::Entity::find_by_id(user.0).one(self.store.database.reader()).await?.is_some())
    }
}
