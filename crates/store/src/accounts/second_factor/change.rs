//! Turns a second factor on and off, and replaces recovery codes.

use grabd_domain::Timestamp;
use grabd_domain::ids::UserId;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use super::codes::insert_codes;
use super::factor::{FactorUse, is_on};
use crate::Result;
use crate::accounts::passwords::EndSessions;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{recovery_code, second_factor, user};

/// A second factor to turn on. Contains only an encrypted secret, and hashes.
#[derive(Clone)]
pub struct NewSecondFactor {
    /// The user.
    pub user: UserId,
    /// The encrypted secret of the authenticator app.
    pub secret: Vec<u8>,
    /// The time step (RFC 6238) of the code that confirmed it.
    pub step: i64,
    /// SHA-256 of the user and each recovery code.
    pub recovery_codes: Vec<[u8; 32]>,
    /// The session to keep.
    pub keep: [u8; 32],
    /// Current time.
    pub now: Timestamp,
}

struct TurnOff {
    user: UserId,
    factor: FactorUse,
}

struct ReplaceCodes {
    user: UserId,
    factor: FactorUse,
    recovery_codes: Vec<[u8; 32]>,
}

struct UseUp {
    user: UserId,
    factor: FactorUse,
}

struct RemoveSecondFactor(UserId);

impl Accounts<'_> {
    /// Turns on a second factor, and ends all other sessions of the user. `false`, without any change, when the user
    /// has one already.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the user does not exist.
    pub async fn turn_on_second_factor(self, new: NewSecondFactor) -> Result<bool> {
        let event = AuditEvent::new("second_factor.on", &new.user, None);
        self.store.write_audited(new, event, |is_new| *is_new).await
    }

    /// Uses up a code, and turns off the second factor, which removes its passkeys. `false`, without any change, when the code was used before.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn turn_off_second_factor(self, user: UserId, factor: FactorUse) -> Result<bool> {
        let event = AuditEvent::new("second_factor.off", &user, None);
        self.store.write_audited(TurnOff { user, factor }, event, |is_off| *is_off).await
    }

    /// Uses up a code that confirms a change with several steps. The use of a recovery code is recorded in the audit trail.
    /// `false`, without any change, when the code was used before.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn use_second_factor(self, user: UserId, factor: FactorUse) -> Result<bool> {
        let event = factor.event(user);
        self.store.write_described(UseUp { user, factor }, move |used| event.clone().filter(|_| *used)).await
    }

    /// Uses up a code, and replaces all recovery codes. `false`, without any change, when the code was used before.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn replace_recovery_codes(
        self,
        user: UserId,
        factor: FactorUse,
        recovery_codes: Vec<[u8; 32]>,
    ) -> Result<bool> {
        let event = AuditEvent::new("second_factor.recovery_codes", &user, None);
        self.store.write_audited(ReplaceCodes { user, factor, recovery_codes }, event, |replaced| *replaced).await
    }

    /// Removes the second factor, with its passkeys, on behalf of an operator. `false` when the user has none.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn remove_second_factor(self, user: UserId) -> Result<bool> {
        let event = AuditEvent::new("second_factor.remove", &user, None);
        self.store.write_audited(RemoveSecondFactor(user), event, |removed| *removed).await
    }
}

impl Transaction for NewSecondFactor {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        // Serializes with sign-ins, which open no session without a code once this is committed.
        user::Entity::find_by_id(self.user.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        if is_on(tx, self.user).await? {
            return Ok(false);
        }
        let row = second_factor::ActiveModel {
            user_id: Set(self.user.0),
            secret: Set(self.secret.clone()),
            last_step: Set(self.step),
            created_at: Set(self.now.as_ms()),
        };
        second_factor::Entity::insert(row).exec_without_returning(tx).await?;
        insert_codes(tx, self.user, &self.recovery_codes).await?;
        EndSessions { user: self.user, keep: self.keep }.apply(tx).await?;
        Ok(true)
    }
}

impl Transaction for TurnOff {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        Ok(self.factor.apply(tx, self.user).await? && RemoveSecondFactor(self.user).apply(tx).await?)
    }
}

impl Transaction for UseUp {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        self.factor.apply(tx, self.user).await
    }
}

impl Transaction for ReplaceCodes {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        // Serializes concurrent replacements, so that the number of codes is exact.
        user::Entity::find_by_id(self.user.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        if !self.factor.apply(tx, self.user).await? {
            return Ok(false);
        }
        recovery_code::Entity::delete_many().filter(recovery_code::Column::UserId.eq(self.user.0)).exec(tx).await?;
        insert_codes(tx, self.user, &self.recovery_codes).await?;
        Ok(true)
    }
}

impl Transaction for RemoveSecondFactor {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        // The recovery codes and the passkeys are deleted by cascade.
        Ok(second_factor::Entity::delete_by_id(self.0.0).exec(tx).await?.rows_affected > 0)
    }
}
