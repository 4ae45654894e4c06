//! Suspends and restores accounts. The user's sessions and apps are refused from the next request on. Keys belong to
//! teams and stay valid.

use grabd_domain::Timestamp;
use grabd_domain::ids::UserId;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::Result;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{session, user};

/// `reason` is `None` to restore the account.
struct SetUserSuspended {
    user: UserId,
    reason: Option<String>,
    now: Timestamp,
}

impl Accounts<'_> {
    /// Suspends an account and ends its sessions. The reason is for operators. `false` when the account is suspended
    /// already or does not exist.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn suspend_user(self, user: UserId, reason: &str, now: Timestamp) -> Result<bool> {
        let event = AuditEvent::new("user.suspend", &user, None).with(&reason);
        let change = SetUserSuspended { user, reason: Some(reason.to_owned()), now };
        self.store.write_audited(change, event, |changed| *changed).await
    }

    /// Restores a suspended account. `false` when it is not suspended or does not exist.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn restore_user(self, user: UserId, now: Timestamp) -> Result<bool> {
        let event = AuditEvent::new("user.restore", &user, None);
        let change = SetUserSuspended { user, reason: None, now };
        self.store.write_audited(change, event, |changed| *changed).await
    }
}

impl Transaction for SetUserSuspended {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let at = self.reason.is_some().then(|| self.now.as_ms());
        let change = user::Entity::update_many()
            .col_expr(user::Column::SuspendedAt, Expr::value(at))
            .col_expr(user::Column::SuspendedReason, Expr::value(self.reason.clone()))
            .filter(user::Column::Id.eq(self.user.0));
        let change = match self.reason {
            Some(_) => change.filter(user::Column::SuspendedAt.is_null()),
            None => change.filter(user::Column::SuspendedAt.is_not_null()),
        };
        let changed = change.exec(tx).await?.rows_affected > 0;
        if changed && self.reason.is_some() {
            session::Entity::delete_many().filter(session::Column::UserId.eq(self.user.0)).exec(tx).await?;
        }
        Ok(changed)
    }
}
