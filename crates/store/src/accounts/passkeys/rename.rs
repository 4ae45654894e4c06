//! Renames passkeys.

use grabd_domain::ids::{PasskeyId, UserId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::Result;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::passkey;

struct RenamePasskey {
    user: UserId,
    id: PasskeyId,
    name: String,
}

impl Accounts<'_> {
    /// Renames a passkey. `false` when the user has no such passkey.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn rename_passkey(self, user: UserId, id: PasskeyId, name: String) -> Result<bool> {
        let event = AuditEvent::new("passkey.rename", &user, None).with(&id);
        self.store.write_audited(RenamePasskey { user, id, name }, event, |renamed| *renamed).await
    }
}

impl Transaction for RenamePasskey {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let renamed = passkey::Entity::update_many()
            .col_expr(passkey::Column::Name, Expr::value(self.name.clone()))
            .filter(passkey::Column::Id.eq(self.id.0))
            .filter(passkey::Column::UserId.eq(self.user.0))
            .exec(tx)
            .await?;
        Ok(renamed.rows_affected > 0)
    }
}
