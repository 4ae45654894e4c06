//! Operators come and go, and grant credits by hand.

use grabd_domain::credits::LotKind;
use grabd_domain::ids::{LotId, UserId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::grant::{Grant, Granted};
use crate::codes;
use crate::database::{Transaction, Tx};
use crate::entities::{lot, user};
use crate::{Error, Result, Store};

/// Credits that an operator grants.
#[derive(Clone, Debug)]
pub struct OperatorGrant {
    /// The credits. Its `source_ref` stands for one form: it grants once.
    pub grant: Grant,
    /// What the ledger says they are for.
    pub reason: String,
}

/// What an operator's grant came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorGranted {
    /// A new lot.
    New(LotId),
    /// The lot that the same grant made before.
    Repeated(LotId),
    /// Nothing was granted: the same `source_ref` has made another grant.
    Otherwise,
}

struct Appointment {
    person: UserId,
    operator: bool,
}

impl Store {
    /// Makes a person an operator, or an operator a person like others; `false` when there is no such person.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn set_operator(&self, person: UserId, operator: bool) -> Result<bool> {
        self.database.write(Appointment { person, operator }).await
    }

    /// Grants credits by hand, once for each `source_ref`.
    ///
    /// # Errors
    /// [`Error::Constraint`] when there is no such team.
    pub async fn grant_by_operator(&self, grant: OperatorGrant) -> Result<OperatorGranted> {
        self.database.write(grant).await
    }
}

impl Transaction for Appointment {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let updated = user::Entity::update_many()
            .col_expr(user::Column::Operator, Expr::value(self.operator))
            .filter(user::Column::Id.eq(self.person.0))
            .exec(tx)
            .await?;
        Ok(updated.rows_affected > 0)
    }
}

impl Transaction for OperatorGrant {
    type Outcome = OperatorGranted;

    async fn apply(&self, tx: &Tx) -> Result<OperatorGranted> {
        let Self { grant, reason } = self;
        let before = lot::Entity::find().filter(lot::Column::SourceRef.eq(grant.source_ref.as_str())).one(tx).await?;
        if let Some(before) = before {
            let credits =
                i32::try_from(grant.credits).map_err(|_| Error::Inconsistent("more credits than a lot holds"))?;
            let same = before.team_id == grant.team.0
                && before.kind == codes::lot_kind(LotKind::Prepaid)
                && before.granted == credits;
            return Ok(if same { OperatorGranted::Repeated(LotId(before.id)) } else { OperatorGranted::Otherwise });
        }
        match grant.apply_for(tx, reason).await? {
            Granted::New(lot) => Ok(OperatorGranted::New(lot)),
            // Somebody was quicker since we looked.
            Granted::Repeated(lot) => Ok(OperatorGranted::Repeated(lot)),
        }
    }
}
