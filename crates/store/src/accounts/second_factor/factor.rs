//! Uses up the codes of a second factor, and the answers of its passkeys.

use grabd_domain::ids::UserId;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::Result;
use crate::accounts::passkeys::used::PasskeyUse;
use crate::audit::AuditEvent;
use crate::database::Tx;
use crate::entities::{recovery_code, second_factor};

/// A code, or the answer of a passkey, that the caller has checked, to be used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorUse {
    /// The code of this time step (RFC 6238). It is accepted if no code of this step or a later one was accepted before.
    Step(i64),
    /// The recovery code with this hash. It is accepted if the user has it.
    RecoveryCode([u8; 32]),
    /// The answer of a passkey. It is accepted if the user has the passkey and the challenge was not answered before.
    Passkey(PasskeyUse),
}

impl FactorUse {
    /// Uses the code up. `false`, without any change, when it was used before or the user has no second factor.
    pub(in crate::accounts) async fn apply(self, tx: &Tx, user: UserId) -> Result<bool> {
        let rows_affected = match self {
            Self::Passkey(used) => return used.apply(tx, user).await,
            Self::Step(step) => {
                second_factor::Entity::update_many()
                    .col_expr(second_factor::Column::LastStep, Expr::value(step))
                    .filter(second_factor::Column::UserId.eq(user.0))
                    .filter(second_factor::Column::LastStep.lt(step))
                    .exec(tx)
                    .await?
                    .rows_affected
            }
            Self::RecoveryCode(hash) => {
                recovery_code::Entity::delete_by_id((user.0, hash.to_vec())).exec(tx).await?.rows_affected
            }
        };
        Ok(rows_affected > 0)
    }

    /// The entry of the audit trail for the use of a recovery code: other uses are part of normal life.
    pub(super) fn event(self, user: UserId) -> Option<AuditEvent> {
        match self {
            Self::Step(_) | Self::Passkey(_) => None,
            Self::RecoveryCode(_) => Some(AuditEvent::new("second_factor.recovery_code_use", &user, None)),
        }
    }
}

/// Whether the user has a second factor. The caller has locked the user.
pub(crate) async fn is_on(tx: &Tx, user: UserId) -> Result<bool> {
    Ok(second_factor::Entity::find_by_id(user.0).one(tx).await?.is_some())
}
