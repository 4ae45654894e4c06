//! Deletes a grab's image on request, with the lines of its text that runs of monitors have kept. The grab row stays as a record of
//! the spent credit.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QuerySelect, QueryTrait};
use uuid::Uuid;

use crate::Result;
use crate::areas::Grabs;
use crate::database::{Transaction, Tx};
use crate::entities::{grab, monitor, monitor_run};
use crate::grabs::idempotency::release_key;
use crate::grabs::images::schedule_deletion;

struct DeleteGrab {
    team: TeamId,
    environment: Environment,
    grab: GrabId,
    now: Timestamp,
}

impl Grabs<'_> {
    /// Deletes a grab's image. `false` when the caller has no such grab. A repeated call keeps the first deletion time.
    ///
    /// An open grab continues, and its image is scheduled for deletion as soon as it is done.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn delete_grab(
        self,
        team: TeamId,
        environment: Environment,
        grab: GrabId,
        now: Timestamp,
    ) -> Result<bool> {
        self.store.database.write(DeleteGrab { team, environment, grab, now }).await
    }
}

impl Transaction for DeleteGrab {
    type Outcome = bool;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let query = grab::scoped(self.team, self.environment).filter(grab::Column::Id.eq(self.grab.0));
        let Some(row) = query.lock(LockType::NoKeyUpdate).one(tx).await? else { return Ok(false) };
        if row.deleted_at.is_some() {
            return Ok(true);
        }
        grab::Entity::update_many()
            .col_expr(grab::Column::DeletedAt, Expr::value(self.now.as_ms()))
            .col_expr(grab::Column::ImageKey, Expr::value(Option::<String>::None))
            .filter(grab::Column::Id.eq(row.id))
            .exec(tx)
            .await?;
        erase_changes(tx, self.team, row.id).await?;
        release_key(tx, self.grab).await?;
        if let Some(key) = row.image_key {
            schedule_deletion(tx, &key, self.now).await?;
        }
        Ok(true)
    }
}

/// Erases the lines of text and the elements of a grab that runs of the team's monitors have kept.
async fn erase_changes(tx: &Tx, team: TeamId, grab: Uuid) -> Result<()> {
    let of_team = monitor::Entity::find()
        .select_only()
        .column(monitor::Column::Id)
        .filter(monitor::Column::TeamId.eq(team.0))
        .into_query();
    let of_grab =
        Condition::any().add(monitor_run::Column::GrabId.eq(grab)).add(monitor_run::Column::ComparedTo.eq(grab));
    let has_changes = Condition::any()
        .add(monitor_run::Column::TextChanges.is_not_null())
        .add(monitor_run::Column::ElementChanges.is_not_null());
    monitor_run::Entity::update_many()
        .col_expr(monitor_run::Column::TextChanges, Expr::value(Option::<String>::None))
        .col_expr(monitor_run::Column::ElementChanges, Expr::value(Option::<String>::None))
        .filter(monitor_run::Column::MonitorId.in_subquery(of_team))
        .filter(has_changes)
        .filter(of_grab)
        .exec(tx)
        .await?;
    Ok(())
}
