//! Adds passkeys.

use grabd_domain::Timestamp;
use grabd_domain::accounts::PASSKEYS;
use grabd_domain::ids::{PasskeyId, UserId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect};

use super::challenge::Challenge;
use crate::Result;
use crate::accounts::passwords::EndSessions;
use crate::accounts::second_factor::codes::insert_codes;
use crate::accounts::second_factor::factor::is_on;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{passkey, second_factor, user};

/// A passkey to add.
#[derive(Clone)]
pub struct NewPasskey {
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
    /// The challenge that the device answered.
    pub challenge: Challenge,
    /// SHA-256 of the user and each recovery code, if the second factor is turned on with this passkey. `None` if it
    /// was on when the user confirmed that they want to add a passkey.
    pub recovery_codes: Option<Vec<[u8; 32]>>,
    /// The session to keep if the second factor is turned on.
    pub keep: [u8; 32],
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of adding a passkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPasskeyOutcome {
    /// It was added.
    Added,
    /// Nothing was changed: the challenge was answered before, or the second factor was turned on or off since the user
    /// confirmed.
    Obsolete,
    /// Nothing was changed: the user has [`PASSKEYS`].
    TooMany,
    /// Nothing was changed: the passkey was added before.
    AlreadyAdded,
}

impl Accounts<'_> {
    /// Adds a passkey. If the second factor was off, it is turned on, and all other sessions of the user end.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the user does not exist.
    pub async fn add_passkey(self, new: NewPasskey) -> Result<AddPasskeyOutcome> {
        let event = AuditEvent::new("passkey.add", &new.user, None).with(&new.id);
        self.store.write_audited(new, event, |outcome| *outcome == AddPasskeyOutcome::Added).await
    }
}

impl Transaction for NewPasskey {
    type Outcome = AddPasskeyOutcome;

    async fn apply(&self, tx: &Tx) -> Result<AddPasskeyOutcome> {
        // Serializes with sign-ins, which open no session without the second factor once this is committed, and with
        // other changes of the second factor.
        user::Entity::find_by_id(self.user.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        if is_on(tx, self.user).await? != self.recovery_codes.is_none() {
            return Ok(AddPasskeyOutcome::Obsolete);
        }
        let own = passkey::Entity::find().filter(passkey::Column::UserId.eq(self.user.0));
        if own.count(tx).await? >= PASSKEYS {
            return Ok(AddPasskeyOutcome::TooMany);
        }
        let same = passkey::Entity::find().filter(passkey::Column::CredentialId.eq(self.credential_id.clone()));
        if same.count(tx).await? > 0 {
            return Ok(AddPasskeyOutcome::AlreadyAdded);
        }
        if !self.challenge.answer(tx).await? {
            return Ok(AddPasskeyOutcome::Obsolete);
        }
        if let Some(recovery_codes) = &self.recovery_codes {
            self.turn_on(tx, recovery_codes).await?;
        }
        let row = passkey::ActiveModel {
            id: Set(self.id.0),
            user_id: Set(self.user.0),
            credential_id: Set(self.credential_id.clone()),
            credential: Set(self.credential.clone()),
            counter: Set(i64::from(self.counter)),
            name: Set(self.name.clone()),
            created_at: Set(self.now.as_ms()),
            last_used_at: Set(None),
        };
        passkey::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(AddPasskeyOutcome::Added)
    }
}

impl NewPasskey {
    /// Turns the second factor on, without an authenticator app.
    async fn turn_on(&self, tx: &Tx, recovery_codes: &[[u8; 32]]) -> Result<()> {
        let row = second_factor::ActiveModel {
            user_id: Set(self.user.0),
            secret: Set(Vec::new()),
            last_step: Set(0),
            created_at: Set(self.now.as_ms()),
        };
        second_factor::Entity::insert(row).exec_without_returning(tx).await?;
        insert_codes(tx, self.user, recovery_codes).await?;
        EndSessions { user: self.user, keep: self.keep }.apply(tx).await?;
        Ok(())
    }
}
