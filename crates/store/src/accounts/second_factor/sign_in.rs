//! Opens sessions of people with a second factor.

use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use super::factor::FactorUse;
use crate::accounts::people::NewSession;
use crate::database::{Transaction, Tx};
use crate::entities::user;
use crate::operations::audit::AuditEvent;
use crate::{Result, Store};

/// A session to open with a code.
#[derive(Clone)]
pub struct SecondFactorSignIn {
    /// The session.
    pub session: NewSession,
    /// The hash that the password was verified against.
    pub password_hash: String,
    /// The code.
    pub factor: FactorUse,
}

/// Outcome of a sign-in with a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondFactorSignInOutcome {
    /// The session is open, and the code is used up.
    SignedIn,
    /// Nothing was changed: the code was used before.
    CodeRefused,
    /// Nothing was changed: the password was changed meanwhile, or the account was suspended or deleted.
    PasswordObsolete,
}

impl Store {
    /// Uses up a code and opens a session. The use of a recovery code is recorded in the audit trail.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn sign_in_with_second_factor(&self, sign_in: SecondFactorSignIn) -> Result<SecondFactorSignInOutcome> {
        let event = match sign_in.factor {
            FactorUse::Step(_) => None,
            FactorUse::RecoveryCode(_) => {
                Some(AuditEvent::new("second_factor.recovery_code_use", &sign_in.session.user, None))
            }
        };
        let describe = move |outcome: &SecondFactorSignInOutcome| {
            event.clone().filter(|_| *outcome == SecondFactorSignInOutcome::SignedIn)
        };
        self.write_described(sign_in, describe).await
    }
}

impl Transaction for SecondFactorSignIn {
    type Outcome = SecondFactorSignInOutcome;

    async fn apply(&self, tx: &Tx) -> Result<Self::Outcome> {
        // A password change ends all sessions; this one is opened before it, or not at all.
        let person = user::Entity::find_by_id(self.session.user.0)
            .filter(user::Column::PasswordHash.eq(self.password_hash.as_str()))
            .filter(user::Column::SuspendedAt.is_null())
            .lock(LockType::NoKeyUpdate)
            .one(tx)
            .await?;
        if person.is_none() {
            return Ok(SecondFactorSignInOutcome::PasswordObsolete);
        }
        if !self.factor.apply(tx, self.session.user).await? {
            return Ok(SecondFactorSignInOutcome::CodeRefused);
        }
        self.session.insert(tx).await?;
        Ok(SecondFactorSignInOutcome::SignedIn)
    }
}
