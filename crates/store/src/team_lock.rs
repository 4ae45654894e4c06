//! The lock of a team, which changes that must not happen at the same time take first.

use grabd_domain::ids::TeamId;
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use crate::Result;
use crate::codes::ACTIVE;
use crate::database::Tx;
use crate::entities::team;

/// Locks an active team against concurrent creates, so that the checks that follow are exact.
pub(crate) async fn lock_team(tx: &Tx, team: TeamId) -> Result<Option<team::Model>> {
    let active = team::Entity::find_by_id(team.0).filter(team::Column::Status.eq(ACTIVE));
    Ok(active.lock(LockType::NoKeyUpdate).one(tx).await?)
}
