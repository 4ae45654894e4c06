//! Failed live grabs, latest first. Contains what is needed to find the fault; of the captured page only its host.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::FailureReason;
use grabd_domain::ids::{GrabId, SessionId, TeamId};
use grabd_domain::target::TargetHost;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use crate::areas::Operators;
use crate::codes::{self, FAILED, read_count};
use crate::entities::{grab, team};
use crate::padded::padded;
use crate::{Error, Result};

/// A failed grab, as shown to operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedGrab {
    /// Its id, also used in the logs.
    pub grab: GrabId,
    /// The owning team.
    pub team: TeamId,
    /// Name of the team.
    pub team_name: String,
    /// Why it failed.
    pub reason: FailureReason,
    /// Host of the page.
    pub host: TargetHost,
    /// Session of the renderer of the last attempt; `None` when it was never leased.
    pub session: Option<SessionId>,
    /// Attempts started.
    pub attempts: u32,
    /// When it failed.
    pub finished_at: Timestamp,
}

/// A position in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureCursor {
    /// When it failed.
    pub at: Timestamp,
    /// The failed grab.
    pub grab: GrabId,
}

#[derive(FromQueryResult)]
struct Row {
    id: Uuid,
    team_id: Uuid,
    request: String,
    error_code: Option<String>,
    session_id: Option<Uuid>,
    attempts: i16,
    finished_at: Option<i64>,
}

impl Operators<'_> {
    /// Up to `limit` failed live grabs of all teams, latest first, optionally only those before a position.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_failed(self, before: Option<FailureCursor>, limit: u32) -> Result<Vec<FailedGrab>> {
        self.read_failed(failed(before, limit)).await
    }

    /// Up to `limit` failed live grabs of one team, latest created first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_failed_of_team(self, team: TeamId, limit: u32) -> Result<Vec<FailedGrab>> {
        self.read_failed(failed_of(team, limit)).await
    }

    async fn read_failed(self, query: Select<grab::Entity>) -> Result<Vec<FailedGrab>> {
        let rows = query.into_model::<Row>().all(self.store.database.reader()).await?;
        let names: Vec<(Uuid, String)> = team::Entity::find()
            .select_only()
            .columns([team::Column::Id, team::Column::Name])
            .filter(team::Column::Id.is_in(padded(rows.iter().map(|row| row.team_id))))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        rows.into_iter().map(|row| read(row, &names)).collect()
    }
}

fn read(row: Row, names: &[(Uuid, String)]) -> Result<FailedGrab> {
    let Row { id, team_id, request, error_code, session_id, attempts, finished_at } = row;
    let name = names.iter().find(|(team, _)| *team == team_id).map(|(_, name)| name.clone());
    let reason = error_code.as_deref().and_then(FailureReason::parse);
    Ok(FailedGrab {
        grab: GrabId(id),
        team: TeamId(team_id),
        team_name: name.ok_or(Error::Inconsistent("grab without a team"))?,
        reason: reason.ok_or(Error::Inconsistent("unknown failure reason"))?,
        host: grab::read_spec(&request)?.url.host(),
        session: session_id.map(SessionId),
        attempts: read_count(attempts.into())?,
        finished_at: codes::read_time(finished_at).ok_or(Error::Inconsistent("ended grab without finished_at"))?,
    })
}

fn columns(query: Select<grab::Entity>) -> Select<grab::Entity> {
    query.select_only().columns([
        grab::Column::Id,
        grab::Column::TeamId,
        grab::Column::Request,
        grab::Column::ErrorCode,
        grab::Column::SessionId,
        grab::Column::Attempts,
        grab::Column::FinishedAt,
    ])
}

pub(super) fn failed(before: Option<FailureCursor>, limit: u32) -> Select<grab::Entity> {
    // The condition of the partial index.
    let failed = columns(grab::Entity::find()).filter(grab::has_status(FAILED));
    let mut query = failed.filter(grab::is_of(Environment::Live));
    if let Some(FailureCursor { at, grab: id }) = before {
        let sort_key = Expr::tuple([Expr::col(grab::Column::FinishedAt), Expr::col(grab::Column::Id)]);
        query = query.filter(sort_key.lt(Expr::tuple([Expr::value(at.as_ms()), Expr::value(id.0)])));
    }
    query.order_by_desc(grab::Column::FinishedAt).order_by_desc(grab::Column::Id).limit(u64::from(limit))
}

pub(super) fn failed_of(team: TeamId, limit: u32) -> Select<grab::Entity> {
    columns(grab::scoped(team, Environment::Live))
        .filter(grab::has_status(FAILED))
        .order_by_desc(grab::Column::CreatedAt)
        .order_by_desc(grab::Column::Id)
        .limit(u64::from(limit))
}
