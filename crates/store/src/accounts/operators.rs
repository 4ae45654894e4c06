//! Grants and removes the operator role.

use grabd_domain::ids::UserId;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::Result;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::user;

struct SetOperator {
    user: UserId,
    operator: bool,
}

impl Accounts<'_> {
    /// Grants or removes the operator role. `false` when the user does not exist.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn set_operator(self, user: UserId, operator: bool) -> Result<bool> {
        let event = AuditEvent::new("operator.set", &user, None).with(&operator);
        self.store.write_audited(SetOperator { user, operator }, event, |changed| *changed).await
    }
}

impl Transaction for SetOperator {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let updated = user::Entity::update_many()
            .col_expr(user::Column::Operator, Expr::value(self.operator))
            .filter(user::Column::Id.eq(self.user.0))
            .exec(tx)
            .await?;
        Ok(updated.rows_affected > 0)
    }
}
