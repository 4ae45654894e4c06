//! Service-wide figures: the queue, grab results, pending webhook deliveries and the database size.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, FailureReason};
use grabd_domain::ids::TeamId;
use grabd_domain::team_limits::TeamLimit;
use grabd_domain::webhooks::{DeliveryStatus, DisabledReason};
use sea_orm::sea_query::{Expr, ExprTrait, Order};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, JoinType, QueryFilter, QueryOrder, QuerySelect, Select,
    Statement,
};
use uuid::Uuid;

use crate::areas::Operators;
use crate::codes::{self, DONE};
use crate::entities::{delivery, grab, job, team, team_limit, team_storage, webhook_endpoint};
use crate::padded::padded;
use crate::{Error, Kind, Result};

/// The open grabs of all teams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// One entry for each class with open grabs.
    pub classes: Vec<ClassQueue>,
    /// Creation time of the oldest waiting grab; `None` when none waits.
    pub oldest: Option<Timestamp>,
    /// The teams with the most open grabs, in descending order.
    pub teams: Vec<TeamQueue>,
}

/// The open grabs of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassQueue {
    /// The class.
    pub class: Class,
    /// Grabs waiting for a slot.
    pub waiting: u64,
    /// Leased grabs.
    pub rendering: u64,
}

/// The open grabs of one team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamQueue {
    /// The team.
    pub team: TeamId,
    /// Name of the team.
    pub name: String,
    /// Grabs waiting for a slot.
    pub waiting: u64,
    /// Leased grabs.
    pub rendering: u64,
    /// Asynchronous grabs among both.
    pub asynchronous: u64,
    /// The team's own limit of asynchronous grabs; `None`: the configured limit applies.
    pub limit: Option<u32>,
}

/// Milliseconds of an hour.
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Number of grabs with the same result in the same hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeCount {
    /// Full hours from the time since which is counted to their ends.
    pub hour: u32,
    /// The environment.
    pub environment: Environment,
    /// Why they failed; `None` when they are done.
    pub failure: Option<FailureReason>,
    /// Number of grabs, at least one.
    pub grabs: u64,
}

/// Pending deliveries and failing endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryBacklog {
    /// Deliveries before their first attempt.
    pub waiting: u64,
    /// Deliveries that failed and will be retried.
    pub retried: u64,
    /// Enabled endpoints without a success since their first failure.
    pub failing: u64,
    /// Endpoints disabled because they failed for too long.
    pub disabled: u64,
}

#[derive(FromQueryResult)]
struct TeamRow {
    team_id: Uuid,
    open: i64,
    rendering: i64,
    asynchronous: i64,
}

impl Operators<'_> {
    /// Summarizes the queue, with up to `max_teams` teams. Reads all jobs, one per open grab.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn queue(self, max_teams: u32) -> Result<Queue> {
        let reader = self.store.database.reader();
        let classes: Vec<(i16, i64, i64)> = by_class().into_tuple().all(reader).await?;
        let waiting = |(class, open, rendering): (i16, i64, i64)| {
            let (class, rendering) = (codes::read_class(class)?, to_count(rendering));
            Ok(ClassQueue { class, waiting: to_count(open).saturating_sub(rendering), rendering })
        };
        let classes = classes.into_iter().map(waiting).collect::<Result<Vec<_>>>()?;
        let oldest: Option<i64> = oldest().into_tuple().one(reader).await?;
        let rows = by_team(max_teams).into_model::<TeamRow>().all(reader).await?;
        let ids = padded(rows.iter().map(|row| row.team_id));
        let known = team::Entity::find().filter(team::Column::Id.is_in(ids.clone())).all(reader).await?;
        let limits = team_limit::Entity::find()
            .filter(team_limit::Column::Name.eq(TeamLimit::AsyncQueue.as_str()))
            .filter(team_limit::Column::TeamId.is_in(ids))
            .all(reader)
            .await?;
        let teams = rows.into_iter().map(|TeamRow { team_id, open, rendering, asynchronous }| {
            let team = known.iter().find(|team| team.id == team_id).ok_or(Error::Inconsistent("job without a team"))?;
            let limit = limits.iter().find(|row| row.team_id == team_id).and_then(|row| u32::try_from(row.value).ok());
            let (name, rendering) = (team.name.clone(), to_count(rendering));
            let waiting = to_count(open).saturating_sub(rendering);
            Ok(TeamQueue {
                team: TeamId(team_id),
                name,
                waiting,
                rendering,
                asynchronous: to_count(asynchronous),
                limit,
            })
        });
        Ok(Queue { classes, oldest: codes::read_time(oldest), teams: teams.collect::<Result<_>>()? })
    }

    /// Creation time of the oldest waiting grab; `None` when none waits.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn oldest_waiting(self) -> Result<Option<Timestamp>> {
        let oldest: Option<i64> = oldest().into_tuple().one(self.store.database.reader()).await?;
        Ok(codes::read_time(oldest))
    }

    /// Counts the grabs of all teams that ended at `since` or later by hour and result, unordered.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn count_ended(self, since: Timestamp) -> Result<Vec<OutcomeCount>> {
        let counted: Vec<(i64, i16, i16, Option<String>, i64)> =
            ended(since).into_tuple().all(self.store.database.reader()).await?;
        let read = |(hour, environment, status, code, grabs): (i64, i16, i16, Option<String>, i64)| {
            let unknown = Error::Inconsistent("unknown failure reason");
            let failure = match status {
                DONE => None,
                _ => Some(code.as_deref().and_then(FailureReason::parse).ok_or(unknown)?),
            };
            Ok(OutcomeCount {
                hour: u32::try_from(hour).unwrap_or(u32::MAX),
                environment: codes::read_environment(environment)?,
                failure,
                grabs: to_count(grabs),
            })
        };
        counted.into_iter().map(read).collect()
    }

    /// How long the latest live grabs that were done at `since` or later took from their creation to their end, up to `limit`
    /// of them, latest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn latencies(self, since: Timestamp, limit: u32) -> Result<Vec<Duration>> {
        let times: Vec<(i64, i64)> = done(since, limit).into_tuple().all(self.store.database.reader()).await?;
        let latency = |(created_at, finished_at)| Timestamp::from_ms(finished_at).since(Timestamp::from_ms(created_at));
        Ok(times.into_iter().map(latency).collect())
    }

    /// Bytes of the stored images and their attachments, of all teams. Reads one small row for each team.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn image_bytes(self) -> Result<u64> {
        let bytes: Option<i64> = team_storage::Entity::find()
            .select_only()
            .expr_as(Expr::cust("CAST(COALESCE(SUM(bytes), 0) AS BIGINT)"), "total")
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(bytes.map_or(0, to_count))
    }

    /// Counts pending deliveries and failing endpoints of all teams.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn delivery_backlog(self) -> Result<DeliveryBacklog> {
        let reader = self.store.database.reader();
        let pending_deliveries: Vec<(i16, i64)> = pending_deliveries().into_tuple().all(reader).await?;
        let failing_endpoints: Vec<(Option<i16>, i64)> = failing_endpoints().into_tuple().all(reader).await?;
        let messages = |status| {
            let code = delivery::state(status);
            pending_deliveries.iter().find(|(state, _)| *state == code).map_or(0, |(_, count)| to_count(*count))
        };
        let endpoints = |disabled: Option<DisabledReason>| {
            let code = disabled.map(webhook_endpoint::disabled);
            failing_endpoints.iter().find(|(disabled, _)| *disabled == code).map_or(0, |(_, count)| to_count(*count))
        };
        Ok(DeliveryBacklog {
            waiting: messages(DeliveryStatus::Pending),
            retried: messages(DeliveryStatus::Failed),
            failing: endpoints(None),
            disabled: endpoints(Some(DisabledReason::Failing)),
        })
    }

    /// Size of the database in bytes, including indexes and free pages.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn size_bytes(self) -> Result<u64> {
        let query = match self.store.kind() {
            Kind::Sqlite => "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()",
            Kind::Postgres => "SELECT pg_database_size(current_database()) AS bytes",
        };
        let reader = self.store.database.reader();
        let row = reader.query_one_raw(Statement::from_string(reader.get_database_backend(), query)).await?;
        let bytes: i64 = row.ok_or(Error::Inconsistent("database size is missing"))?.try_get("", "bytes")?;
        Ok(to_count(bytes))
    }
}

pub(super) fn by_class() -> Select<job::Entity> {
    job::Entity::find()
        .select_only()
        .column(job::Column::Class)
        .column_as(job::Column::GrabId.count(), "open")
        // COUNT ignores NULL, and `lease_until` is NULL unless the job is leased.
        .column_as(job::Column::LeaseUntil.count(), "rendering")
        .group_by(job::Column::Class)
}

pub(super) fn by_team(max_teams: u32) -> Select<job::Entity> {
    job::Entity::find()
        .select_only()
        .column(job::Column::TeamId)
        .column_as(job::Column::GrabId.count(), "open")
        .column_as(job::Column::LeaseUntil.count(), "rendering")
        .expr_as(Expr::cust("SUM(CASE WHEN class = 1 THEN 1 ELSE 0 END)"), "asynchronous")
        .group_by(job::Column::TeamId)
        .order_by(job::Column::GrabId.count(), Order::Desc)
        .order_by(job::Column::TeamId, Order::Asc)
        .limit(u64::from(max_teams))
}

/// Grab ids sort by creation time.
pub(super) fn oldest() -> Select<job::Entity> {
    job::Entity::find()
        .select_only()
        .column(grab::Column::CreatedAt)
        .join(JoinType::InnerJoin, grab::of_job())
        .filter(job::Column::LeaseUntil.is_null())
        .order_by_asc(job::Column::GrabId)
        .limit(1)
}

pub(super) fn ended(since: Timestamp) -> Select<grab::Entity> {
    let hour = Expr::col(grab::Column::FinishedAt).sub(since.as_ms()).div(HOUR_MS);
    grab::Entity::find()
        .select_only()
        .expr_as(hour, "hour")
        .columns([grab::Column::Env, grab::Column::Status, grab::Column::ErrorCode])
        .column_as(grab::Column::FinishedAt.count(), "grabs")
        .filter(grab::Column::FinishedAt.gte(since.as_ms()))
        // By its name: PostgreSQL does not know that two expressions with the same parameters are equal.
        .group_by(Expr::col("hour"))
        .group_by(grab::Column::Env)
        .group_by(grab::Column::Status)
        .group_by(grab::Column::ErrorCode)
}

pub(super) fn done(since: Timestamp, limit: u32) -> Select<grab::Entity> {
    grab::Entity::find()
        .select_only()
        .columns([grab::Column::CreatedAt, grab::Column::FinishedAt])
        .filter(grab::Column::FinishedAt.gte(since.as_ms()))
        .filter(grab::has_status(DONE))
        .filter(grab::is_of(Environment::Live))
        .order_by_desc(grab::Column::FinishedAt)
        .limit(u64::from(limit))
}

pub(super) fn pending_deliveries() -> Select<delivery::Entity> {
    delivery::Entity::find()
        .select_only()
        .column(delivery::Column::State)
        .column_as(delivery::Column::Id.count(), "messages")
        .filter(delivery::Column::NextAt.is_not_null())
        .group_by(delivery::Column::State)
}

fn failing_endpoints() -> Select<webhook_endpoint::Entity> {
    let failing = webhook_endpoint::Column::FailingSince.is_not_null();
    let disabled_for_failing =
        webhook_endpoint::Column::Disabled.eq(webhook_endpoint::disabled(DisabledReason::Failing));
    webhook_endpoint::Entity::find()
        .select_only()
        .column(webhook_endpoint::Column::Disabled)
        .column_as(webhook_endpoint::Column::Id.count(), "endpoints")
        .filter(failing.or(disabled_for_failing))
        .group_by(webhook_endpoint::Column::Disabled)
}

pub(super) fn to_count(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
