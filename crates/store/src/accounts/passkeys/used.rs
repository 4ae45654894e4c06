//! Uses of passkeys.

use grabd_domain::Timestamp;
use grabd_domain::ids::{PasskeyId, UserId};
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use super::challenge::Challenge;
use crate::Result;
use crate::database::Tx;
use crate::entities::passkey;

/// The answer of a passkey to a challenge. The caller has verified its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasskeyUse {
    /// The passkey.
    pub id: PasskeyId,
    /// The challenge.
    pub challenge: Challenge,
    /// Signatures that the device says it has made; 0 if it does not count.
    pub counter: u32,
    /// Current time.
    pub now: Timestamp,
}

impl PasskeyUse {
    /// Records the use. `false`, without any change, when the challenge was answered before, the user does not have the
    /// passkey, or its counter is not above the last one, as that of a copy of the device would be.
    pub(in crate::accounts) async fn apply(self, tx: &Tx, user: UserId) -> Result<bool> {
        let found = passkey::Entity::find_by_id(self.id.0)
            .filter(passkey::Column::UserId.eq(user.0))
            .lock(LockType::NoKeyUpdate)
            .one(tx)
            .await?;
        let counter = i64::from(self.counter);
        let is_next = |row: &passkey::Model| counter > row.counter || (counter == 0 && row.counter == 0);
        if !found.as_ref().is_some_and(is_next) || !self.challenge.answer(tx).await? {
            return Ok(false);
        }
        passkey::Entity::update_many()
            .col_expr(passkey::Column::Counter, Expr::value(counter))
            .col_expr(passkey::Column::LastUsedAt, Expr::value(self.now.as_ms()))
            .filter(passkey::Column::Id.eq(self.id.0))
            .exec(tx)
            .await?;
        Ok(true)
    }
}
