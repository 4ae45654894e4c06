//! Live grabs that failed, the latest first: enough to find the fault, and nothing of what was captured but its host.

use grabd_domain::Timestamp;
use grabd_domain::grabs::FailureReason;
use grabd_domain::ids::{GrabId, SessionId, TeamId};
use grabd_domain::target::TargetHost;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use crate::codes::{self, FAILED, read_count};
use crate::entities::{grab, team};
use crate::queries::padded;
use crate::{Error, Result, Store};

/// A grab that failed, as far as it is an operator's business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its id, under which the log tells of it.
    pub grab: GrabId,
    /// Whose it is.
    pub team: TeamId,
    /// What people call the team.
    pub team_name: String,
    /// Why.
    pub reason: FailureReason,
    /// The host of the page.
    pub host: TargetHost,
    /// The session of the renderer that had it in the end; `None`: none had it.
    pub session: Option<SessionId>,
    /// Renders begun.
    pub attempts: u32,
    /// When it failed.
    pub finished_at: Timestamp,
}

/// A place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedAt {
    /// When it failed.
    pub at: Timestamp,
    /// Which one.
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

impl Store {
    /// At most `limit` live grabs of all teams that failed, the latest first: those before a place, when it is given.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_failed(&self, before: Option<FailedAt>, limit: u32) -> Result<Vec<Failed>> {
        self.read_failed(failed(before, limit)).await
    }

    /// At most `limit` live grabs of one team that failed, those that were asked for last first.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_failed_of(&self, team: TeamId, limit: u32) -> Result<Vec<Failed>> {
        self.read_failed(failed_of(team, limit)).await
    }

    async fn read_failed(&self, query: Select<grab::Entity>) -> Result<Vec<Failed>> {
        let rows = query.into_model::<Row>().all(self.database.reader()).await?;
        let names: Vec<(Uuid, String)> = team::Entity::find()
            .select_only()
            .columns([team::Column::Id, team::Column::Name])
            .filter(team::Column::Id.is_in(padded(rows.iter().map(|row| row.team_id))))
            .into_tuple()
            .all(self.database.reader())
            .await?;
        rows.into_iter().map(|row| read(row, &names)).collect()
    }
}

fn read(row: Row, names: &[(Uuid, String)]) -> Result<Failed> {
    let Row { id, team_id, request, error_code, session_id, attempts, finished_at } = row;
    let name = names.iter().find(|(team, _)| *team == team_id).map(|(_, name)| name.clone());
    let reason = error_code.as_deref().and_then(FailureReason::parse);
    Ok(Failed {
        grab: GrabId(id),
        team: TeamId(team_id),
        team_name: name.ok_or(Error::Inconsistent("a grab of no team"))?,
        reason: reason.ok_or(Error::Inconsistent("an unknown reason of failure"))?,
        host: grab::read_spec(&request)?.url.host(),
        session: session_id.map(SessionId),
        attempts: read_count(attempts.into())?,
        finished_at: codes::read_time(finished_at).ok_or(Error::Inconsistent("an ended grab without its time"))?,
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

pub(super) fn failed(before: Option<FailedAt>, limit: u32) -> Select<grab::Entity> {
    // In the very words of the index, which has failures of live grabs alone: an argument would not be seen through.
    let mut query = columns(grab::Entity::find()).filter(Expr::cust("status = 3 AND env = 0"));
    if let Some(FailedAt { at, grab: id }) = before {
        let here = Expr::tuple([Expr::col(grab::Column::FinishedAt), Expr::col(grab::Column::Id)]);
        query = query.filter(here.lt(Expr::tuple([Expr::value(at.as_ms()), Expr::value(id.0)])));
    }
    query.order_by_desc(grab::Column::FinishedAt).order_by_desc(grab::Column::Id).limit(u64::from(limit))
}

pub(super) fn failed_of(team: TeamId, limit: u32) -> Select<grab::Entity> {
    columns(grab::scoped(team, grabd_domain::credentials::Environment::Live))
        .filter(grab::Column::Status.eq(FAILED))
        .order_by_desc(grab::Column::CreatedAt)
        .order_by_desc(grab::Column::Id)
        .limit(u64::from(limit))
}
