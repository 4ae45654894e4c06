//! The bytes that each team stores. Triggers count them, in the transaction that changes a row or an image.

use std::collections::BTreeSet;

use grabd_domain::grabs::RenderMetadata;
use grabd_domain::ids::{GrabId, TeamId};
use grabd_domain::storage::StorageCeiling;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, Func, LockType, OnConflict, Query, SelectStatement};
use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::codes::size;
use crate::database::Tx;
use crate::entities::grab;
use crate::entities::team_storage::{self, counted};
use crate::padded::padded;

/// What a row of `grab` counts beside its texts: the other columns, the index entries, and a ledger entry or an idempotency
/// key.
pub(crate) const ROW: i64 = 2000;
/// What a row of `grab_file` counts, with its index entries.
const FILE: i64 = 400;
/// What a webhook message counts beside its body: the other columns and the index entries.
const DELIVERY: i64 = 1000;
/// The longest body of a webhook message, as the engine limits it.
const BODY: usize = 20_000;

/// What the row of an ended grab counts, as far as it is known to the program.
pub(super) fn ended_bytes(facts: &str, message: &str, metadata: &RenderMetadata) -> i64 {
    let files = i64::try_from(metadata.file_count()).unwrap_or(i64::MAX).saturating_mul(FILE);
    ROW + length(facts) + length(message) + files
}

/// What a webhook message about this grab counts: its body has the texts of the grab.
pub(super) fn message_bytes(row: &grab::Model) -> i64 {
    let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let texts = row.request.len() + of(&row.facts) + of(&row.error_message);
    DELIVERY + i64::try_from(texts.min(BODY)).unwrap_or(i64::MAX)
}

/// Counts the webhook messages about a failed grab. Those about done grabs are paid for.
pub(super) async fn count_deliveries(tx: &Tx, grab: GrabId, deliveries: usize, each: i64) -> Result<()> {
    let Some(deliveries) = i64::try_from(deliveries).ok().filter(|deliveries| *deliveries > 0) else { return Ok(()) };
    grab::Entity::update_many()
        .col_expr(grab::Column::StoredBytes, Expr::col(grab::Column::StoredBytes).add(deliveries.saturating_mul(each)))
        .filter(grab::Column::Id.eq(grab.0))
        .exec(tx)
        .await?;
    Ok(())
}

pub(crate) fn length(text: &str) -> i64 {
    size(u64::try_from(text.len()).unwrap_or(u64::MAX))
}

/// The length of the stored options.
pub(crate) fn request_bytes() -> Expr {
    Func::cust("octet_length").arg(Expr::col((grab::Entity, grab::Column::Request))).into()
}

/// Selects 1 if the team has reached the ceiling. One index lookup.
pub(crate) fn is_reached(team: TeamId, ceiling: StorageCeiling) -> SelectStatement {
    Query::select()
        .expr(Expr::value(1))
        .from(team_storage::Entity)
        .and_where(team_storage::Column::TeamId.eq(team.0))
        .and_where(counted(ceiling.counted).gte(ceiling.bytes))
        .take()
}

/// Locks the numbers of several teams in the order of the teams' ids, before rows or images of these teams are changed.
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

/// Locks the numbers of one or more teams, whether they exist or not, before the lots of these teams: triggers lock them when
/// rows that count are inserted.
pub(crate) async fn lock_stored_bytes_of(tx: &Tx, teams: impl Iterator<Item = TeamId>) -> Result<()> {
    let teams: BTreeSet<Uuid> = teams.map(|team| team.0).collect();
    if teams.is_empty() || tx.get_database_backend() == DbBackend::Sqlite {
        return Ok(());
    }
    let rows = teams.into_iter().map(|team| team_storage::ActiveModel {
        team_id: Set(team),
        bytes: Set(0),
        ..Default::default()
    });
    // An update that changes nothing locks the row.
    let lock = OnConflict::column(team_storage::Column::TeamId)
        .value(team_storage::Column::Bytes, Expr::cust("team_storage.bytes"))
        .to_owned();
    team_storage::Entity::insert_many(rows).on_conflict(lock).exec_without_returning(tx).await?;
    Ok(())
}
