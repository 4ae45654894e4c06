//! Removes passkeys.

use grabd_domain::ids::{PasskeyId, UserId};
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect};

use crate::Result;
use crate::accounts::second_factor::factor::FactorUse;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{passkey, second_factor, user};

struct RemovePasskey {
    user: UserId,
    id: PasskeyId,
    factor: FactorUse,
}

/// Outcome of removing a passkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovePasskeyOutcome {
    /// It was removed.
    Removed {
        /// Whether the second factor was turned off, because the user has no authenticator app and no other passkey.
        turned_off: bool,
    },
    /// Nothing was changed: the user has no such passkey.
    Unknown,
    /// Nothing was changed: the code was used before.
    CodeRefused,
}

impl Accounts<'_> {
    /// Uses up a code, and removes a passkey. The second factor is turned off with the last passkey of a user without
    /// an authenticator app.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn remove_passkey(self, user: UserId, id: PasskeyId, factor: FactorUse) -> Result<RemovePasskeyOutcome> {
        let event = AuditEvent::new("passkey.remove", &user, None).with(&id);
        let happened = |outcome: &RemovePasskeyOutcome| matches!(outcome, RemovePasskeyOutcome::Removed { .. });
        self.store.write_audited(RemovePasskey { user, id, factor }, event, happened).await
    }
}

impl Transaction for RemovePasskey {
    type Outcome = RemovePasskeyOutcome;

    async fn apply(&self, tx: &Tx) -> Result<RemovePasskeyOutcome> {
        // Serializes with other changes of the second factor, so that the last one is known to be the last one.
        user::Entity::find_by_id(self.user.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        let own = passkey::Entity::find().filter(passkey::Column::UserId.eq(self.user.0));
        if own.clone().filter(passkey::Column::Id.eq(self.id.0)).count(tx).await? == 0 {
            return Ok(RemovePasskeyOutcome::Unknown);
        }
        if !self.factor.apply(tx, self.user).await? {
            return Ok(RemovePasskeyOutcome::CodeRefused);
        }
        passkey::Entity::delete_by_id(self.id.0).exec(tx).await?;
        let turned_off = match own.count(tx).await? {
            // The recovery codes are deleted by cascade.
            0 => {
                second_factor::Entity::delete_by_id(self.user.0)
                    .filter(second_factor::Column::Secret.eq(Vec::<u8>::new()))
                    .exec(tx)
                    .await?
                    .rows_affected
                    > 0
            }
            1.. => false,
        };
        Ok(RemovePasskeyOutcome::Removed { turned_off })
    }
}
