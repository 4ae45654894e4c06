//! Opens sessions of users with a second factor.

use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use super::factor::FactorUse;
use crate::Result;
use crate::accounts::users::NewSession;
use crate::areas::Accounts;
use crate::database::{Transaction, Tx};
use crate::entities::user;

/// A session to open with a code.
#[derive(Clone)]
pub struct SecondFactorSignIn {
    /// The session.
    pub session: NewSession,
    /// The hash that the password was verified against. `None` for a sign-in with a passkey alone.
    pub password_hash: Option<String>,
    /// The code, or the answer of a passkey.
    pub factor: FactorUse,
}

/// Outcome of a sign-in with a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondFactorSignInOutcome {
    /// The session is open, and the code is used up.
    SignedIn,
    /// Nothing was changed: the code, or the challenge of the passkey, was used before.
    CodeRefused,
    /// Nothing was changed: the password that was verified was changed meanwhile, or the account was suspended or deleted.
    PasswordObsolete,
}

impl Accounts<'_> {
    /// Uses up a code and opens a session. The use of a recovery code is recorded in the audit trail.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn sign_in_with_second_factor(self, sign_in: SecondFactorSignIn) -> Result<SecondFactorSignInOutcome> {
        let event = sign_in.factor.event(sign_in.session.user);
        let describe = move |outcome: &SecondFactorSignInOutcome| {
            event.clone().filter(|_| *outcome == SecondFactorSignInOutcome::SignedIn)
        };
        self.store.write_described(sign_in, describe).await
    }
}

impl Transaction for SecondFactorSignIn {
    type Outcome = SecondFactorSignInOutcome;

    async fn apply(&self, tx: &Tx) -> Result<Self::Outcome> {
        // A password change ends all sessions; this one is opened before it, or not at all.
        let user = user::Entity::find_by_id(self.session.user.0)
            .filter(user::Column::SuspendedAt.is_null())
            .lock(LockType::NoKeyUpdate)
            .one(tx)
            .await?;
        let is_proved = |user: &user::Model| self.password_hash.as_ref().is_none_or(|hash| *hash == user.password_hash);
        if !user.as_ref().is_some_and(is_proved) {
            return Ok(SecondFactorSignInOutcome::PasswordObsolete);
        }
        if !self.factor.apply(tx, self.session.user).await? {
            return Ok(SecondFactorSignInOutcome::CodeRefused);
        }
        self.session.insert(tx).await?;
        Ok(SecondFactorSignInOutcome::SignedIn)
    }
}
