//! The bytes that each team stores. Triggers count them, in the transaction that adds or deletes images.

use std::collections::BTreeSet;

use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::database::{Tx, padded};
use crate::entities::team_storage;

/// Locks the numbers of several teams in the order of the teams' ids, before images of these teams are added or deleted.
/// Triggers lock them in any order, so that two transactions could wait for each other. SQLite has one writer.
pub(crate) async fn lock_stored_bytes(tx: &Tx, teams: impl Iterator<Item = Uuid>) -> Result<()> {
    let teams: BTreeSet<Uuid> = teams.collect();
    if teams.len() < 2 || tx.get_database_backend() == DbBackend::Sqlite {
        return Ok(());
    }
    team_storage::Entity::find()
        .select_only()
        .column(team_storage::Column::TeamId)
        .filter(team_storage::Column::TeamId.is_in(padded(teams)))
        .order_by_asc(team_storage::Column::TeamId)
        .lock(LockType::Update)
        .into_tuple::<Uuid>()
        .all(tx)
        .await?;
    Ok(())
}
