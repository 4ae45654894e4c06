//! Figures of the whole service: the queue, how grabs ended, what is owed to endpoints, and the database's size.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, FailureReason};
use grabd_domain::ids::TeamId;
use grabd_domain::webhooks::{DeliveryStatus, Disabled};
use sea_orm::sea_query::{Expr, ExprTrait, Order};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect, Select, Statement,
};
use uuid::Uuid;

use crate::codes::{self, DONE, read_count};
use crate::entities::{delivery, grab, job, team, webhook_endpoint};
use crate::queries::padded;
use crate::{Error, Kind, Result, Store};

/// What is open, of all teams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// For each class that has any.
    pub classes: Vec<Waiting>,
    /// When the grab that waits longest was asked for; `None` when none waits.
    pub oldest: Option<Timestamp>,
    /// The teams with the most open grabs, those with the most first.
    pub teams: Vec<QueueOfTeam>,
}

/// The open grabs of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Which class.
    pub class: Class,
    /// How many wait for a slot.
    pub waiting: u64,
    /// How many a renderer has.
    pub rendering: u64,
}

/// The open grabs of one team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOfTeam {
    /// Which team.
    pub team: TeamId,
    /// What people call it.
    pub name: String,
    /// How many wait for a slot.
    pub waiting: u64,
    /// How many a renderer has.
    pub rendering: u64,
    /// How many of both are asynchronous.
    pub asynchronous: u64,
    /// How many of those it may have; `None`: as configured.
    pub limit: Option<u32>,
}

/// Grabs that ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedAs {
    /// In which environment.
    pub environment: Environment,
    /// Why they failed; `None`: they are done.
    pub failure: Option<FailureReason>,
    /// How many; never none.
    pub grabs: u64,
}

/// What endpoints have not got, and which do not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undelivered {
    /// Messages before their first attempt.
    pub waiting: u64,
    /// Messages that failed and are tried again.
    pub retried: u64,
    /// Endpoints at which nothing has succeeded of late, and that still get messages.
    pub failing: u64,
    /// Endpoints that were disabled because they failed for too long.
    pub disabled: u64,
}

#[derive(FromQueryResult)]
struct TeamRow {
    team_id: Uuid,
    open: i64,
    rendering: i64,
    asynchronous: i64,
}

impl Store {
    /// The queue, with at most `most` teams. Reads the jobs, of which there is one for each open grab.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn queue(&self, most: u32) -> Result<Queue> {
        let reader = self.database.reader();
        let classes: Vec<(i16, i64, i64)> = by_class().into_tuple().all(reader).await?;
        let waiting = |(class, open, rendering): (i16, i64, i64)| {
            let (class, rendering) = (codes::read_class(class)?, number(rendering));
            Ok(Waiting { class, waiting: number(open).saturating_sub(rendering), rendering })
        };
        let classes = classes.into_iter().map(waiting).collect::<Result<Vec<_>>>()?;
        let oldest: Option<i64> = oldest().into_tuple().one(reader).await?;
        let rows = by_team(most).into_model::<TeamRow>().all(reader).await?;
        let ids = padded(rows.iter().map(|row| row.team_id));
        let known = team::Entity::find().filter(team::Column::Id.is_in(ids)).all(reader).await?;
        let teams = rows.into_iter().map(|TeamRow { team_id, open, rendering, asynchronous }| {
            let team = known.iter().find(|team| team.id == team_id).ok_or(Error::Inconsistent("a job of no team"))?;
            let limit = team.async_queue_limit.map(read_count).transpose()?;
            let (name, rendering) = (team.name.clone(), number(rendering));
            let waiting = number(open).saturating_sub(rendering);
            Ok(QueueOfTeam {
                team: TeamId(team_id),
                name,
                waiting,
                rendering,
                asynchronous: number(asynchronous),
                limit,
            })
        });
        Ok(Queue { classes, oldest: codes::read_time(oldest), teams: teams.collect::<Result<_>>()? })
    }

    /// How the grabs of all teams ended that ended at `since` or later, in no order.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn count_ended(&self, since: Timestamp) -> Result<Vec<EndedAs>> {
        let counted: Vec<(i16, i16, Option<String>, i64)> =
            ended(since).into_tuple().all(self.database.reader()).await?;
        let read = |(environment, status, code, grabs): (i16, i16, Option<String>, i64)| {
            let unknown = Error::Inconsistent("an unknown reason of failure");
            let failure = match status {
                DONE => None,
                _ => Some(code.as_deref().and_then(FailureReason::parse).ok_or(unknown)?),
            };
            Ok(EndedAs { environment: codes::read_environment(environment)?, failure, grabs: number(grabs) })
        };
        counted.into_iter().map(read).collect()
    }

    /// What is owed to all endpoints.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn undelivered(&self) -> Result<Undelivered> {
        let reader = self.database.reader();
        let owed: Vec<(i16, i64)> = owed().into_tuple().all(reader).await?;
        let sick: Vec<(Option<i16>, i64)> = sick().into_tuple().all(reader).await?;
        let messages = |status| {
            let code = delivery::state(status);
            owed.iter().find(|(state, _)| *state == code).map_or(0, |(_, count)| number(*count))
        };
        let endpoints = |disabled: Option<Disabled>| {
            let code = disabled.map(webhook_endpoint::disabled);
            sick.iter().find(|(disabled, _)| *disabled == code).map_or(0, |(_, count)| number(*count))
        };
        Ok(Undelivered {
            waiting: messages(DeliveryStatus::Pending),
            retried: messages(DeliveryStatus::Failed),
            failing: endpoints(None),
            disabled: endpoints(Some(Disabled::Failing)),
        })
    }

    /// How large the database is, in bytes, with its indexes and what is free in it.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn size_bytes(&self) -> Result<u64> {
        let query = match self.kind() {
            Kind::Sqlite => "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()",
            Kind::Postgres => "SELECT pg_database_size(current_database()) AS bytes",
        };
        let reader = self.database.reader();
        let row = reader.query_one_raw(Statement::from_string(reader.get_database_backend(), query)).await?;
        let bytes: i64 = row.ok_or(Error::Inconsistent("a database without a size"))?.try_get("", "bytes")?;
        Ok(number(bytes))
    }
}

pub(super) fn by_class() -> Select<job::Entity> {
    job::Entity::find()
        .select_only()
        .column(job::Column::Class)
        .column_as(job::Column::GrabId.count(), "open")
        // Only what is leased has an end of its lease.
        .column_as(job::Column::LeaseUntil.count(), "rendering")
        .group_by(job::Column::Class)
}

pub(super) fn by_team(most: u32) -> Select<job::Entity> {
    job::Entity::find()
        .select_only()
        .column(job::Column::TeamId)
        .column_as(job::Column::GrabId.count(), "open")
        .column_as(job::Column::LeaseUntil.count(), "rendering")
        .expr_as(Expr::cust("SUM(CASE WHEN class = 1 THEN 1 ELSE 0 END)"), "asynchronous")
        .group_by(job::Column::TeamId)
        .order_by(job::Column::GrabId.count(), Order::Desc)
        .order_by(job::Column::TeamId, Order::Asc)
        .limit(u64::from(most))
}

/// The ids of grabs sort by when they were asked for.
pub(super) fn oldest() -> Select<job::Entity> {
    job::Entity::find()
        .select_only()
        .column(grab::Column::CreatedAt)
        .inner_join(grab::Entity)
        .filter(job::Column::LeaseUntil.is_null())
        .order_by_asc(job::Column::GrabId)
        .limit(1)
}

pub(super) fn ended(since: Timestamp) -> Select<grab::Entity> {
    grab::Entity::find()
        .select_only()
        .columns([grab::Column::Env, grab::Column::Status, grab::Column::ErrorCode])
        .column_as(grab::Column::FinishedAt.count(), "grabs")
        .filter(grab::Column::FinishedAt.gte(since.as_ms()))
        .group_by(grab::Column::Env)
        .group_by(grab::Column::Status)
        .group_by(grab::Column::ErrorCode)
}

pub(super) fn owed() -> Select<delivery::Entity> {
    delivery::Entity::find()
        .select_only()
        .column(delivery::Column::State)
        .column_as(delivery::Column::Id.count(), "messages")
        .filter(delivery::Column::NextAt.is_not_null())
        .group_by(delivery::Column::State)
}

fn sick() -> Select<webhook_endpoint::Entity> {
    let failing = webhook_endpoint::Column::FailingSince.is_not_null();
    let given_up = webhook_endpoint::Column::Disabled.eq(webhook_endpoint::disabled(Disabled::Failing));
    webhook_endpoint::Entity::find()
        .select_only()
        .column(webhook_endpoint::Column::Disabled)
        .column_as(webhook_endpoint::Column::Id.count(), "endpoints")
        .filter(failing.or(given_up))
        .group_by(webhook_endpoint::Column::Disabled)
}

pub(super) fn number(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
