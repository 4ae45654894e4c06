//! Whether a monitor may make captures, and its feed can be read.

use grabd_domain::Timestamp;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter};

use crate::Result;
use crate::codes::ACTIVE;
use crate::entities::{monitor, team};
use crate::webhooks::creators::Inactive;

/// Whether the team is active, and the app that has created the monitor has access, if it was one.
pub(super) async fn has_access<C: ConnectionTrait>(db: &C, row: &monitor::Model, now: Timestamp) -> Result<bool> {
    let apps = Inactive::find(db, [row.grant_id], now).await?;
    let active_team = team::Entity::find_by_id(row.team_id).filter(team::Column::Status.eq(ACTIVE));
    Ok(!apps.contains(row.grant_id) && active_team.count(db).await? > 0)
}
