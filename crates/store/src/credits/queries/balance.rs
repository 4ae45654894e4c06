//! The balance of a team at an entry of its ledger.

use grabd_domain::ids::TeamId;
use sea_orm::sea_query::{Expr, Func, Query};
use sea_orm::{ColumnTrait, ConnectionTrait};

use crate::areas::Credits;
use crate::entities::{ledger, lot};
use crate::{Error, Result};

impl Credits<'_> {
    /// The credits that a team had after the entry with this id, including held ones.
    ///
    /// They are what its lots have now without the later entries, in one statement. So the newest pages of a ledger
    /// cost the least.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn balance_after(self, team: TeamId, entry: i64) -> Result<i64> {
        let sum = |column: Expr| {
            let sum: Expr = Func::sum(column).into();
            Func::cast_as(Func::coalesce([sum, Expr::val(0)]), "bigint")
        };
        let remaining = Query::select()
            .expr(sum(Expr::col(lot::Column::Remaining)))
            .from(lot::Entity)
            .and_where(lot::Column::TeamId.eq(team.0))
            .take();
        let later = Query::select()
            .expr(sum(Expr::col(ledger::Column::Amount)))
            .from(ledger::Entity)
            .and_where(ledger::Column::TeamId.eq(team.0))
            .and_where(ledger::Column::Id.gt(entry))
            .take();
        let both =
            Query::select().expr_as(Expr::from(remaining), "remaining").expr_as(Expr::from(later), "later").take();
        let row = self.store.database.reader().query_one(&both).await?;
        let row = row.ok_or(Error::Inconsistent("a sum without a row"))?;
        let (remaining, later): (i64, i64) = (row.try_get("", "remaining")?, row.try_get("", "later")?);
        Ok(remaining - later)
    }
}
