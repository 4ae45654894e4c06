//! Sets the authenticator app of a second factor that is on: the first one of a user with passkeys, or another one.

use grabd_domain::ids::UserId;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use super::factor::FactorUse;
use crate::Result;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{second_factor, user};

/// An authenticator app that replaces the former one, if there is one.
#[derive(Clone)]
pub struct NewAuthenticatorApp {
    /// The user.
    pub user: UserId,
    /// The encrypted secret of the app.
    pub secret: Vec<u8>,
    /// The time step (RFC 6238) of the code that confirmed it.
    pub step: i64,
    /// The code, or the answer of a passkey, that confirms the change.
    pub factor: FactorUse,
}

impl Accounts<'_> {
    /// Uses up a code, and sets the authenticator app. The recovery codes and the passkeys stay. `false`, without any
    /// change, when the code was used before or the user has no second factor.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn set_authenticator_app(self, new: NewAuthenticatorApp) -> Result<bool> {
        let event = AuditEvent::new("second_factor.app", &new.user, None);
        self.store.write_audited(new, event, |is_set| *is_set).await
    }
}

impl Transaction for NewAuthenticatorApp {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        // Serializes with other changes of the second factor.
        user::Entity::find_by_id(self.user.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        if !self.factor.apply(tx, self.user).await? {
            return Ok(false);
        }
        // The step is that of the new secret: codes of the former one are refused in any case.
        let set = second_factor::Entity::update_many()
            .col_expr(second_factor::Column::Secret, Expr::value(self.secret.clone()))
            .col_expr(second_factor::Column::LastStep, Expr::value(self.step))
            .filter(second_factor::Column::UserId.eq(self.user.0))
            .exec(tx)
            .await?;
        Ok(set.rows_affected > 0)
    }
}
