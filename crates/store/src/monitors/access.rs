//! Whether a monitor may make captures.

use grabd_domain::Timestamp;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use crate::Result;
use crate::codes::ACTIVE;
use crate::database::Tx;
use crate::entities::{monitor, team};
use crate::webhooks::creators::Inactive;

/// Whether the team is active, and the app that has created the monitor has access, if it was one.
pub(super) async fn has_access(tx: &Tx, row: &monitor::Model, now: Timestamp) -> Result<bool> {
    let apps = Inactive::find(tx, [row.grant_id], now).await?;
    let active_team = team::Entity::find_by_id(row.team_id).filter(team::Column::Status.eq(ACTIVE));
    Ok(!apps.contains(row.grant_id) && active_team.count(tx).await? > 0)
}
