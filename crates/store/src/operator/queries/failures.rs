//! Failed live grabs, latest first. Contains what is needed to find the fault; of the captured page only its host.

use grabd_domain::ErrorCause;
use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::FailureReason;
use grabd_domain::ids::{GrabId, SessionId, TeamId};
use grabd_domain::target::TargetHost;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
};
use uuid::Uuid;

use crate::areas::Operators;
use crate::codes::{self, FAILED, read_count};
use crate::entities::{grab, team};
use crate::padded::padded;
use crate::{Error, Result};

/// Failed grabs that one search looks at. Few of them may match, and there may be millions.
pub const MAX_SEARCHED_FAILURES: u32 = 5000;
/// All reasons of failures.
const REASONS: [FailureReason; 4] = [
    FailureReason::RenderBlocked,
    FailureReason::RenderFailed,
    FailureReason::SsrfDetected,
    FailureReason::InternalError,
];

/// Which failed grabs are wanted. Each condition applies if it is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureFilter {
    /// Those of one of these teams.
    pub teams: Option<Vec<TeamId>>,
    /// Those with this reason.
    pub reason: Option<FailureReason>,
    /// Those that are the fault of this party.
    pub cause: Option<ErrorCause>,
    /// Those that failed at this time or later.
    pub since: Option<Timestamp>,
    /// Those that failed before this time.
    pub until: Option<Timestamp>,
}

/// Failed grabs that match a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFailures {
    /// Latest first.
    pub failures: Vec<FailedGrab>,
    /// Where the search ended, if it looked at [`MAX_SEARCHED_FAILURES`] and found fewer than were wanted.
    pub searched_to: Option<FailureCursor>,
}

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
    /// Whose fault it is.
    pub cause: ErrorCause,
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
    error_cause: Option<i16>,
    session_id: Option<Uuid>,
    attempts: i16,
    finished_at: Option<i64>,
}

impl Operators<'_> {
    /// Up to `limit` failed live grabs of all teams that match, latest first, optionally only those before a position.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_failed(
        self,
        filter: &FailureFilter,
        before: Option<FailureCursor>,
        limit: u32,
    ) -> Result<FoundFailures> {
        let failures = self.read_failed(matching(filter, before, limit)).await?;
        let is_complete = !filter.is_selective() || failures.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let searched_to = if is_complete { None } else { self.last_searched(filter, before).await? };
        Ok(FoundFailures { failures, searched_to })
    }

    /// The last of the failures that a search looks at, if there may be more after it.
    async fn last_searched(
        self,
        filter: &FailureFilter,
        before: Option<FailureCursor>,
    ) -> Result<Option<FailureCursor>> {
        let last: Option<(Option<i64>, Uuid)> = searched(filter, before)
            .select_only()
            .columns([grab::Column::FinishedAt, grab::Column::Id])
            .limit(1)
            .offset(u64::from(MAX_SEARCHED_FAILURES) - 1)
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        let cursor =
            |(at, id): (Option<i64>, Uuid)| Some(FailureCursor { at: codes::read_time(at)?, grab: GrabId(id) });
        Ok(last.and_then(cursor))
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
    let Row { id, team_id, request, error_code, error_cause, session_id, attempts, finished_at } = row;
    let name = names.iter().find(|(team, _)| *team == team_id).map(|(_, name)| name.clone());
    let reason = error_code.as_deref().and_then(FailureReason::parse);
    let reason = reason.ok_or(Error::Inconsistent("unknown failure reason"))?;
    Ok(FailedGrab {
        grab: GrabId(id),
        team: TeamId(team_id),
        team_name: name.ok_or(Error::Inconsistent("grab without a team"))?,
        reason,
        cause: error_cause.map_or(Ok(reason.cause()), codes::read_error_cause)?,
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
        grab::Column::ErrorCause,
        grab::Column::SessionId,
        grab::Column::Attempts,
        grab::Column::FinishedAt,
    ])
}

impl FailureFilter {
    /// Whether the filter has conditions that no index answers.
    fn is_selective(&self) -> bool {
        self.teams.is_some() || self.reason.is_some() || self.cause.is_some()
    }
}

/// The failed grabs that a search looks at, before conditions that no index answers.
fn searched(filter: &FailureFilter, before: Option<FailureCursor>) -> Select<grab::Entity> {
    let FailureFilter { teams: _, reason: _, cause: _, since, until } = filter;
    // The condition of the partial index.
    let mut query = grab::Entity::find().filter(grab::has_status(FAILED)).filter(grab::is_of(Environment::Live));
    if let Some(since) = since {
        query = query.filter(grab::Column::FinishedAt.gte(since.as_ms()));
    }
    if let Some(until) = until {
        query = query.filter(grab::Column::FinishedAt.lt(until.as_ms()));
    }
    if let Some(FailureCursor { at, grab: id }) = before {
        let sort_key = Expr::tuple([Expr::col(grab::Column::FinishedAt), Expr::col(grab::Column::Id)]);
        query = query.filter(sort_key.lt(Expr::tuple([Expr::value(at.as_ms()), Expr::value(id.0)])));
    }
    query.order_by_desc(grab::Column::FinishedAt).order_by_desc(grab::Column::Id)
}

pub(super) fn matching(filter: &FailureFilter, before: Option<FailureCursor>, limit: u32) -> Select<grab::Entity> {
    let searched = searched(filter, before);
    if !filter.is_selective() {
        return columns(searched).limit(u64::from(limit));
    }
    let ids = searched.select_only().column(grab::Column::Id).limit(u64::from(MAX_SEARCHED_FAILURES));
    let mut query = columns(grab::Entity::find()).filter(grab::Column::Id.in_subquery(ids.into_query()));
    if let Some(teams) = &filter.teams {
        query = query.filter(grab::Column::TeamId.is_in(padded(teams.iter().map(|team| team.0))));
    }
    if let Some(reason) = filter.reason {
        query = query.filter(grab::Column::ErrorCode.eq(reason.code().as_str()));
    }
    if let Some(cause) = filter.cause {
        // Rows of earlier versions have no cause: it is that of their code.
        let usual = REASONS.into_iter().filter(|reason| reason.cause() == cause).map(|reason| reason.code().as_str());
        let of_code =
            Condition::all().add(grab::Column::ErrorCause.is_null()).add(grab::Column::ErrorCode.is_in(usual));
        query = query.filter(Condition::any().add(grab::Column::ErrorCause.eq(codes::error_cause(cause))).add(of_code));
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
