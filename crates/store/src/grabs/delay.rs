//! Delays the waiting jobs of a payer whose renders failed for too long.

use grabd_domain::Timestamp;
use grabd_domain::ids::PayerId;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::Result;
use crate::areas::Grabs;
use crate::database::{Transaction, Tx};
use crate::entities::job;

struct Delay {
    payer: PayerId,
    until: Timestamp,
}

impl Grabs<'_> {
    /// Keeps the waiting jobs of a payer from being leased before `until`, and returns their number. Their deadlines
    /// stay.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn delay_jobs(self, payer: PayerId, until: Timestamp) -> Result<u64> {
        self.store.database.write(Delay { payer, until }).await
    }
}

impl Transaction for Delay {
    type Outcome = u64;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let delayed = job::Entity::update_many()
            .col_expr(job::Column::NotBefore, Expr::value(self.until.as_ms()))
            .filter(job::Column::AccountId.eq(self.payer.0))
            .filter(job::Column::LeaseUntil.is_null())
            .filter(job::Column::NotBefore.lt(self.until.as_ms()))
            .exec(tx)
            .await?;
        Ok(delayed.rows_affected)
    }
}
